//! What native code knows of each instruction: what it computes, and where control goes. Which
//! registers it reads and writes is in `effects`. An instruction that is not known here stops
//! native code, and the interpreter executes it. So nothing has to be known for right results.
//!
//! Knows all executions by their function, and how each uses the fields of [`Inst`]. Such functions
//! are never inlined, so that each has one address.

use std::collections::HashMap;
use std::sync::OnceLock;

use device_code::ptx::Type;

use crate::interp::compile::bits::with_carry;
use crate::interp::compile::convert;
use crate::interp::compile::load_store::atomic_by_name;
use crate::interp::exec::{call, control, fragment, load_store, matrix, narrow_matrix, texture, warp_sync};
use crate::interp::exec_sass::{convergence, floats, halves, integer, jumps, memory, predicates};
use crate::interp::float::float16::{Brain, Half};
use crate::interp::program::{Inst, InstFn, LaneOp, Pred, Program, Sem};

/// An atomic operation that native code has instructions for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AtomKind {
    Add,
    Min { signed: bool },
    Max { signed: bool },
    And,
    Or,
    Xor,
    Exchange,
    Compare,
    AddSingle,
    AddDouble,
}

/// What an instruction is.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Nothing,
    Lane(LaneOp),
    Select,
    Predicate,
    Repack,
    Special,
    LoadParam {
        size: u32,
        signed: bool,
    },
    ParamAddress,
    FrameAddress,
    DynamicShared,
    ConvertAddress,
    Load {
        size: u32,
        signed: bool,
    },
    Store {
        size: u32,
    },
    Atom {
        kind: AtomKind,
        size: u32,
    },
    Branch,
    IntCompare,
    Table,
    NotZero,
    Add3,
    AddWide,
    FloatCompare {
        double: bool,
    },
    WithCarry,
    /// Something of each lane alone: the interpreter executes it for one lane.
    Foreign,
    /// Control leaves native code in front of it.
    Stop,
}

#[derive(Clone, Copy)]
pub(super) enum Tag {
    Known(Kind),
    /// Of each lane alone; its fields.
    Foreign(Fields),
    /// Of the warp; its fields.
    Stop(Fields),
}

/// How an instruction uses its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fields {
    /// Row `d`.
    Result,
    /// Row `d` from row `a`, from `a` and `b`, from all three.
    FromOne,
    FromTwo,
    FromThree,
    /// Row `d` is read and written; no other.
    Update,
    /// Row `a` only; all three.
    Read,
    ReadThree,
    None,
    Shuffle,
    Vote,
    Elect,
    Match,
    Barrier,
    /// Rows in the list.
    Texture,
    Multiply,
    Narrow,
    Rows,
    Transfer,
    Call,
    Return,
    /// Predicate `d` from rows `a` and `b`; from row `a`; and `z`, combined with predicate `c`.
    PredAB,
    PredA,
    PredPairAB,
    /// Row `d` from rows `a`, `b` and predicate `c`.
    HalfSet,
    ToRegister,
    FromRegister,
    LoadBank,
    /// Row `a` and predicate `c`, for a jump.
    JumpApart,
    /// Everything.
    All,
}

pub(super) fn tags() -> &'static HashMap<usize, Tag> {
    static TAGS: OnceLock<HashMap<usize, Tag>> = OnceLock::new();
    TAGS.get_or_init(|| {
        let mut map = HashMap::new();
        let mut known = |run: InstFn, kind: Kind| {
            map.insert(run as usize, Tag::Known(kind));
        };
        known(control::nothing, Kind::Nothing);
        known(control::select, Kind::Select);
        known(control::predicate, Kind::Predicate);
        known(control::repack, Kind::Repack);
        known(control::special, Kind::Special);
        known(control::branch, Kind::Branch);
        known(load_store::param_address, Kind::ParamAddress);
        known(load_store::frame_address, Kind::FrameAddress);
        known(load_store::dynamic_shared_address, Kind::DynamicShared);
        known(load_store::convert_address, Kind::ConvertAddress);
        known(predicates::compare, Kind::IntCompare);
        known(predicates::logic, Kind::Table);
        known(predicates::not_zero, Kind::NotZero);
        known(integer::add3, Kind::Add3);
        known(integer::add_wide, Kind::AddWide);
        known(floats::compare, Kind::FloatCompare { double: false });
        known(floats::compare_doubles, Kind::FloatCompare { double: true });
        known(with_carry, Kind::WithCarry);
        macro_rules! cells {
            ($($ty:ty, $size:expr, $signed:expr);*) => {$(
                known(load_store::load::<$ty>(), Kind::Load { size: $size, signed: $signed });
                known(load_store::load_param::<$ty>(), Kind::LoadParam { size: $size, signed: $signed });
            )*};
        }
        cells!(u8, 1, false; u16, 2, false; u32, 4, false; u64, 8, false; i8, 1, true; i16, 2, true; i32, 4, true);
        known(load_store::store::<u8>(), Kind::Store { size: 1 });
        known(load_store::store::<u16>(), Kind::Store { size: 2 });
        known(load_store::store::<u32>(), Kind::Store { size: 4 });
        known(load_store::store::<u64>(), Kind::Store { size: 8 });
        let whole = [Type::U32, Type::S32, Type::U64, Type::S64];
        let atoms = [
            ("add", AtomKind::Add, &whole[..]),
            ("and", AtomKind::And, &whole[..]),
            ("or", AtomKind::Or, &whole[..]),
            ("xor", AtomKind::Xor, &whole[..]),
            ("exch", AtomKind::Exchange, &whole[..]),
            ("cas", AtomKind::Compare, &whole[..]),
            ("min", AtomKind::Min { signed: false }, &[Type::U32, Type::U64][..]),
            ("max", AtomKind::Max { signed: false }, &[Type::U32, Type::U64][..]),
            ("min", AtomKind::Min { signed: true }, &[Type::S32, Type::S64][..]),
            ("max", AtomKind::Max { signed: true }, &[Type::S32, Type::S64][..]),
            ("add", AtomKind::AddSingle, &[Type::F32][..]),
            ("add", AtomKind::AddDouble, &[Type::F64][..]),
        ];
        for (name, kind, types) in atoms {
            for &ty in types {
                if let Some((run, _)) = atomic_by_name(name, ty) {
                    known(run, Kind::Atom { kind, size: ty.size() });
                }
            }
        }
        let mut foreign = |run: InstFn, fields: Fields| {
            map.insert(run as usize, Tag::Foreign(fields));
        };
        foreign(convert::float_to_float, Fields::FromOne);
        foreign(convert::float_to_int, Fields::FromOne);
        foreign(convert::int_to_float, Fields::FromOne);
        foreign(convert::int_to_int, Fields::FromOne);
        foreign(convert::pack_pair, Fields::FromTwo);
        foreign(floats::check_quotient, Fields::PredAB);
        foreign(floats::choose_double, Fields::PredPairAB);
        foreign(halves::run::<Half, false>, Fields::FromThree);
        foreign(halves::run::<Half, true>, Fields::FromThree);
        foreign(halves::run::<Brain, false>, Fields::FromThree);
        foreign(halves::run::<Brain, true>, Fields::FromThree);
        foreign(halves::set::<Half>, Fields::HalfSet);
        foreign(halves::set::<Brain>, Fields::HalfSet);
        foreign(halves::set_preds::<Half>, Fields::PredPairAB);
        foreign(halves::set_preds::<Brain>, Fields::PredPairAB);
        foreign(halves::special, Fields::FromOne);
        foreign(predicates::to_register, Fields::ToRegister);
        foreign(predicates::from_register, Fields::FromRegister);
        foreign(memory::is_in_space, Fields::PredA);
        foreign(load_store::is_space, Fields::PredA);
        macro_rules! banks {
            ($($ty:ty),*) => {$( foreign(memory::load_bank::<$ty>(), Fields::LoadBank); )*};
        }
        banks!(u8, u16, u32, i8, i16);
        foreign(load_store::copy_async, Fields::ReadThree);
        let mut stop = |run: InstFn, fields: Fields| {
            map.insert(run as usize, Tag::Stop(fields));
        };
        stop(control::exit, Fields::None);
        stop(control::trap, Fields::None);
        stop(control::fence, Fields::None);
        stop(control::give_way, Fields::None);
        stop(control::branch_table, Fields::Read);
        stop(warp_sync::warp_barrier, Fields::Read);
        stop(warp_sync::shuffle, Fields::Shuffle);
        stop(warp_sync::vote, Fields::Vote);
        stop(warp_sync::active_mask, Fields::Result);
        stop(warp_sync::elect, Fields::Elect);
        stop(warp_sync::match_values, Fields::Match);
        stop(warp_sync::reduce, Fields::FromTwo);
        stop(warp_sync::barrier, Fields::Barrier);
        stop(warp_sync::cluster_arrive, Fields::None);
        stop(warp_sync::cluster_wait, Fields::None);
        stop(texture::access, Fields::Texture);
        stop(matrix::multiply, Fields::Multiply);
        stop(narrow_matrix::multiply_narrow, Fields::Narrow);
        stop(matrix::rows, Fields::Rows);
        stop(fragment::transfer, Fields::Transfer);
        stop(matrix::transpose, Fields::FromOne);
        stop(call::call, Fields::Call);
        stop(call::ret, Fields::Return);
        stop(convergence::begin, Fields::Result);
        stop(convergence::set, Fields::FromOne);
        stop(convergence::meet, Fields::Read);
        stop(convergence::sleep, Fields::None);
        stop(convergence::give_way, Fields::None);
        stop(convergence::leave, Fields::Update);
        stop(predicates::differs, Fields::PredA);
        stop(jumps::branch_if_apart, Fields::JumpApart);
        stop(jumps::jump_address, Fields::All);
        stop(jumps::call_address, Fields::All);
        map
    })
}

/// What an instruction is.
pub(super) fn kind(inst: &Inst) -> Kind {
    if let Some(op) = inst.lane {
        return Kind::Lane(op);
    }
    match tags().get(&(inst.run as usize)) {
        Some(Tag::Known(Kind::Load { .. })) if is_volatile(inst) => Kind::Stop,
        Some(Tag::Known(Kind::Store { .. })) if is_volatile(inst) => Kind::Stop,
        Some(Tag::Known(kind)) => *kind,
        Some(Tag::Foreign(_)) => Kind::Foreign,
        Some(Tag::Stop(_)) | None => Kind::Stop,
    }
}

/// Whether what comes of an instruction that the interpreter executes for a lane depends on its
/// registers alone.
pub(super) fn is_pure(inst: &Inst) -> bool {
    let fields = match tags().get(&(inst.run as usize)) {
        Some(Tag::Foreign(fields)) => fields,
        _ => return false,
    };
    !matches!(fields, Fields::ReadThree | Fields::LoadBank | Fields::PredA)
}

/// What an instruction is in a region of whole warps. Volatile accesses are as good as others
/// there: the whole warp executes one instruction, then the next.
pub(super) fn kind_of_warp(inst: &Inst) -> Kind {
    match tags().get(&(inst.run as usize)) {
        Some(Tag::Known(kind)) if inst.lane.is_none() => *kind,
        _ => kind(inst),
    }
}

/// Whether it is a volatile access. The warp executes these as one: programs of old count on it.
pub(super) fn is_volatile_access(inst: &Inst) -> bool {
    matches!(kind(inst), Kind::Stop) && !matches!(kind_of_warp(inst), Kind::Stop)
}

fn is_volatile(inst: &Inst) -> bool {
    inst.b == load_store::VOLATILE || inst.d == load_store::VOLATILE
}

/// Where control goes behind an instruction that stops native code: the next instruction, or
/// others. None: anywhere, or to an end.
pub(super) fn continues(program: &Program, inst: &Inst, pc: u32) -> Vec<u32> {
    let is = |run: InstFn| std::ptr::fn_addr_eq(inst.run, run);
    let guarded = inst.guard != Pred::ALWAYS;
    if is(control::exit) || is(control::trap) || is(call::ret) || is(jumps::jump_address) {
        return if guarded { vec![pc + 1] } else { Vec::new() };
    }
    if is(control::branch_table) {
        let mut targets = program.tables.get(inst.y as usize).cloned().unwrap_or_default();
        targets.push(pc + 1);
        return targets;
    }
    if is(jumps::branch_if_apart) {
        return vec![inst.x as u32, pc + 1];
    }
    vec![pc + 1]
}

/// True for a barrier that gives no result.
pub(super) fn writes_nothing(inst: &Inst) -> bool {
    std::ptr::fn_addr_eq(inst.run, warp_sync::barrier as InstFn) && inst.y == crate::interp::block::BARRIER_SYNC
}

/// True for an instruction of a whole warp behind which it mostly goes on at the next one.
pub(super) fn passes(inst: &Inst) -> bool {
    let known = inst.lane.is_none().then(|| tags().get(&(inst.run as usize))).flatten();
    let fields = match known {
        Some(Tag::Stop(fields)) => fields,
        Some(Tag::Known(_)) => return matches!(kind(inst), Kind::Stop),
        _ => return false,
    };
    let is = |run: InstFn| std::ptr::fn_addr_eq(inst.run, run);
    match fields {
        Fields::Shuffle | Fields::Vote | Fields::Elect | Fields::Match | Fields::Barrier | Fields::FromTwo => true,
        Fields::Texture | Fields::Multiply | Fields::Narrow | Fields::Rows | Fields::Transfer | Fields::FromOne => true,
        Fields::Read | Fields::Result | Fields::None => {
            is(warp_sync::warp_barrier)
                || is(warp_sync::active_mask)
                || is(control::fence)
                || is(convergence::begin)
                || is(convergence::meet)
        }
        Fields::Update => is(convergence::leave),
        _ => false,
    }
}

/// True for an instruction behind which its lanes have ended.
pub(super) fn ends(inst: &Inst) -> bool {
    let is = |run: InstFn| std::ptr::fn_addr_eq(inst.run, run);
    is(control::exit) || is(control::trap)
}

/// True when a NaN that it results in is always the one that the hardware makes.
pub(super) fn gives_hardware_nan(op: &LaneOp) -> bool {
    matches!(
        op.sem,
        Sem::FloatAdd
            | Sem::FloatSub
            | Sem::FloatMul
            | Sem::FloatFma
            | Sem::FlagAdd
            | Sem::FlagSub
            | Sem::FlagMul
            | Sem::FlagFma
            | Sem::FlagDiv
            | Sem::FlagSqrt
            | Sem::FlagNeg
            | Sem::FlagAbs
            | Sem::FlagMin
            | Sem::FlagMax
    )
}

/// Whether what it writes may have more than 32 bits.
pub(super) fn may_be_wide(inst: &Inst) -> bool {
    let is = |run: InstFn| std::ptr::fn_addr_eq(inst.run, run);
    let narrow = is(warp_sync::vote)
        || is(warp_sync::shuffle)
        || is(warp_sync::active_mask)
        || is(warp_sync::elect)
        || is(warp_sync::match_values)
        || is(warp_sync::reduce)
        || is(warp_sync::barrier)
        || is(matrix::rows)
        || is(matrix::transpose)
        || is(convert::pack_pair)
        || is(halves::run::<Half, false>)
        || is(halves::run::<Half, true>)
        || is(halves::run::<Brain, false>)
        || is(halves::run::<Brain, true>)
        || is(halves::set::<Half>)
        || is(halves::set::<Brain>)
        || is(halves::special)
        || is(convergence::begin)
        || is(texture::access)
        || is(convert::float_to_int) && inst.z <= 32
        || is(convert::float_to_float) && inst.z != convert::FLOAT64
        || is(convert::int_to_float) && inst.z != convert::FLOAT64
        || is(convert::int_to_int) && inst.x >> 32 == 0
        || is(matrix::multiply) && inst.x >> 12 & 7 != matrix::Element::F64 as u64;
    !narrow
}

/// Whether a special register has 64 bits.
pub(super) fn wide_special(inst: &Inst) -> bool {
    use control::Special;
    [Special::Clock64, Special::Timer, Special::Gridid].iter().any(|&kind| inst.y == kind as u32)
}
