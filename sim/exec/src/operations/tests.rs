//! Walks the table of operations: rows, operands, and what columns say together.

use std::collections::HashSet;

use device_code::ptx::Type;

use super::*;
use crate::exec::per_lane::{op1, op3, set, setp};
use crate::operations::build::blank;
use crate::operations::encoding::Fields;
use crate::program::{LaneOp, UpdateOp, WideAccess};

/// `((((), a), b), c)` for the parameters `a`, `b`, `c` of a row.
macro_rules! parameters {
    () => {
        ()
    };
    ($first:ident) => {
        ((), $first)
    };
    ($first:ident, $second:ident) => {
        (((), $first), $second)
    };
}
pub(super) use parameters;

/// A parameter of operations: its values.
pub(super) trait Parameter: Sized {
    fn values() -> Vec<Self>;
}

impl Parameter for bool {
    fn values() -> Vec<bool> {
        vec![false, true]
    }
}

impl Parameter for LaneTy {
    fn values() -> Vec<LaneTy> {
        use LaneTy::*;
        vec![U8, U16, U32, U64, I8, I16, I32, I64, F32, F64]
    }
}

impl Parameter for WideAccess {
    fn values() -> Vec<WideAccess> {
        use WideAccess::*;
        vec![Load, Store, Exchange, CompareAndSwap]
    }
}

impl Parameter for LaneOp {
    fn values() -> Vec<LaneOp> {
        let less = |a: u32, b: u32| a < b;
        vec![op1(|a: u32| a).op, op3(|a: u32, b: u32, c: u32| a + b * c).op, setp(less).op, set(less).op]
    }
}

impl Parameter for Update {
    fn values() -> Vec<Update> {
        use UpdateOp::*;
        let ops = [Add, Min, Max, Inc, Dec, And, Or, Xor, Exchange, Compare, AddEverywhere, Arrive];
        let types = ["b16", "b32", "b64", "u32", "s32", "u64", "s64", "f16", "f16x2", "bf16", "bf16x2", "f32", "f64"];
        let all = ops.into_iter().flat_map(|op| types.map(|ty| Update { op, ty: Type::from_name(ty).unwrap() }));
        all.filter(|&update| update.exists()).collect()
    }
}

pub(super) fn times<R: Copy, P: Parameter + Copy>(rows: &[R]) -> Vec<(R, P)> {
    rows.iter().flat_map(|&row| P::values().into_iter().map(move |value| (row, value))).collect()
}

fn all() -> impl Iterator<Item = Operation> {
    Operation::rows().into_iter().flatten()
}

#[test]
fn every_row_has_a_name_and_operations() {
    let mut names = HashSet::new();
    for row in Operation::rows() {
        let name = row.first().expect("a row has operations").name();
        assert!(names.insert(name), "{name} is there twice");
        assert!(row.iter().all(|op| op.name() == name));
    }
}

#[test]
fn operands_have_different_names_and_no_role_of_their_own() {
    for op in all() {
        let mut names = HashSet::new();
        for operand in op.operands() {
            assert!(names.insert(operand.name), "{}: {} is there twice", op.name(), operand.name);
            let nowhere = matches!(operand.place, Place::Nowhere);
            assert_eq!(operand.role == Role::Any, nowhere, "{}: {} has a role or a place", op.name(), operand.name);
        }
    }
}

/// What one column says of an operation the others must not deny.
#[test]
fn columns_agree() {
    for op in all() {
        let (name, roles) = (op.name(), op.operands().iter().map(|operand| operand.role).collect::<Vec<_>>());
        let (stops, foreign) = (matches!(op.kind(), Kind::Stop), matches!(op.kind(), Kind::Foreign));
        assert!(stops || op.whole() == Whole::Stops, "{name}: `whole` is asked of what stops");
        assert!(stops || op.then() == Then::Next, "{name}: `then` is asked of what stops");
        assert!(foreign || !op.is_pure(), "{name}: `pure` is asked of what the interpreter executes for lanes");
        assert!(stops || !roles.contains(&Role::Any), "{name}: native code has to know the operands");
        let goes_on = !matches!(op.whole(), Whole::Stops | Whole::Interpreted);
        assert!(!goes_on || !roles.contains(&Role::Any), "{name}: a region that goes on has to know the operands");
        if op.is_pure() || matches!(op.whole(), Whole::Everybody | Whole::Shuffle | Whole::Vote) {
            assert!(roles.contains(&Role::Write) || roles.contains(&Role::Set), "{name} has no result");
        }
    }
}

/// Native code has instructions for the atomic operations of whole words.
#[test]
fn updates_of_words_are_native() {
    let native = Update::values().into_iter().filter(|&update| !matches!(update.kind(), Kind::Stop)).count();
    // and, or, xor, exch, cas: 10 types. add: 6, and 2 of floats. min, max: 4.
    assert_eq!(native, 5 * 10 + 6 + 2 + 2 * 4);
}

#[test]
fn conditions_choose_operands() {
    let listed = |inst: &Inst| inst.listed(&Program::empty()).to_string();
    let [d, a, b, c] = [2, 3, 4, 5].map(Slot);
    let (truth, p) = (Pred(3), Pred(2));
    let vote = |d, p, mode| build::Vote { truth, members: Slot::NONE, d, p, mode }.into();
    assert_eq!(listed(&vote(Some(d), None, 3)), "Vote truth=p3 members=none d=r2");
    assert_eq!(listed(&vote(None, Some(p), 0)), "Vote truth=p3 members=none p=p2");
    let bar = |truth, d, p, what| build::Barrier { number: a, threads: b, truth, d, p, what }.into();
    let truth = Some(Pred(5));
    assert_eq!(listed(&bar(None, None, None, crate::block::BARRIER_SYNC)), "Barrier number=r3 threads=r4");
    assert_eq!(listed(&bar(truth, Some(d), None, BARRIER_POPC)), "Barrier number=r3 threads=r4 truth=p5 d=r2");
    assert_eq!(listed(&bar(truth, None, Some(p), BARRIER_POPC + 1)), "Barrier number=r3 threads=r4 truth=p5 p=p2");
    let carried = build::WithCarry { a, b, c: Some(c), carry: None, d, over: Some(Slot(7)), how: 0b1010 };
    assert_eq!(listed(&carried.into()), "WithCarry a=r3 b=r4 c=r5 d=r2 over=r7");
    let mut select: Inst = build::Select { a, b: Slot(Slot::CONSTANT), which: Pred::NEVER, d }.into();
    select.guard = Pred(1 | Pred::NEGATED);
    assert_eq!(listed(&select), "@!p1 Select a=r3 b=c0 which=false d=r2");
    let third = setp(|a: u32, b: u32| a < b).of([a, b]);
    assert_eq!(listed(&third.test(p, Pred(9))), "Lane a=r3 b=r4 p=p2 q=p9");
    assert_eq!(listed(&third.combined(1, Pred(5)).test(p, Pred(9))), "Lane a=r3 b=r4 combined=p5 p=p2 q=p9");
    assert_eq!(listed(&op1(|a: u32| a).of([a, b, c]).to(d)), "Lane a=r3 d=r2");
}

/// An operand whose condition does not hold, and one that is missing though its condition does.
#[test]
fn operands_are_given_where_their_conditions_hold() {
    let vote = |d, p, mode| Inst::from(build::Vote { truth: Pred(3), members: Slot::NONE, d, p, mode });
    let (d, p) = (Slot(2), Pred(2));
    for (d, p, mode) in [(Some(d), None, 0), (None, Some(p), 3), (None, None, 3), (Some(d), Some(p), 0)] {
        assert!(std::panic::catch_unwind(|| vote(d, p, mode)).is_err(), "{d:?} {p:?} {mode}");
    }
}

/// Takes instructions with random fields apart and makes them again of what came out.
fn make_again<Row: build::Taken>(ops: Vec<Operation>, name: &str) {
    const EACH: usize = 20;
    let program = Program { slots: (0..1 << 14).map(Slot).collect(), ..Program::empty() };
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 32
    };
    for op in ops {
        let mut made = 0;
        for _ in 0..100 * EACH {
            let [d, a, b, c] = [(); 4].map(|()| Slot(random() as u32));
            let x = [random() & 1, random(), random() << 32 | random()][random() as usize % 3];
            let y = [random() % 8, random() % 100, random() >> 12][random() as usize % 3] as u32;
            // Counts of lists are there: small ones, one of them, and those of four lists.
            let z = [random() & 0x3f3f, 16 | random() & 15, random() & 0xc0ff_ffff, random() >> 1];
            let z = z[random() as usize % 4] as u32;
            let inst = Inst { fields: Fields { d, a, b, c, x, y, z }, ..blank(op) };
            let there = |operand: &Operand| match operand.place {
                Place::List(list) => list(&inst).0 + list(&inst).1 <= program.slots.len(),
                Place::Span(span) => span(&inst).1 > 0,
                _ => true,
            };
            if !op.operands().iter().all(there) {
                continue;
            }
            let taken = Row::taken(&inst, &program);
            let expected = format!("{taken:?}");
            // Others have slots in the program, too.
            let mut slots = vec![Slot(1); 3];
            let again = taken.build(&mut slots);
            let program = Program { slots, ..Program::empty() };
            assert_eq!(format!("{:?}", Row::taken(&again, &program)), expected, "{name}");
            made += 1;
            if made == EACH {
                break;
            }
        }
        assert_eq!(made, EACH, "{name}: too few instructions are possible");
    }
}

#[test]
fn what_is_read_of_an_instruction_makes_it_again() {
    macro_rules! rows {
        ($($(#[$doc:meta])* $name:ident $(($($p:ident: $ty:ty),+))? = $run:expr, $kind:expr,
            $operands:tt, $keys:tt;)*) => {
            let mut rows = Operation::rows().into_iter();
            $(make_again::<build::$name>(rows.next().expect("a row for each"), stringify!($name));)*
        };
    }
    for_each_operation!(rows);
}

/// The names read the fields that listings and the effects of native code go by.
#[test]
fn operands_are_read_where_the_table_says() {
    let [d, a, b, c] = [2, 3, 4, 5].map(Slot);
    let of_pred = |pred: Pred| u64::from(pred.0);
    let of_slot = |slot: Slot| u64::from(slot.0);
    let x = 0x8007_7fff_0009_8006;
    let inst = |op| Inst { fields: Fields { d, a, b, c, x, y: 0x1_0000, z: 0x47 }, ..blank(op) };
    let add = inst(Operation::Add3);
    let add = operands::Add3::of(&add);
    assert_eq!([add.a(), add.b(), add.c(), add.d()].map(of_slot), [3, 4, 5, 2]);
    let packed = [Pred(6 | Pred::NEGATED), Pred(9), Pred::ALWAYS, Pred(7 | Pred::NEGATED)].map(of_pred);
    assert_eq!([add.carry(), add.carry2(), add.over(), add.over2()].map(of_pred), packed);
    let load = inst(Operation::Load(LaneTy::U32));
    let load = operands::Load::of(&load);
    assert_eq!((load.count(), load.bits(), load.strength()), (4, c.0, b.0));
    let operands::Location { row, offset, space, strength } = load.location();
    assert_eq!((row, offset, space, strength), (a, x, 7, b.0));
    let into = inst(Operation::ToRegister);
    assert!(operands::ToRegister::of(&into).from().eq((0x47..0x4e).map(Pred)));
    let program = Program { slots: (100..110).map(Slot).collect(), ..Program::empty() };
    let pack = Inst { fields: Fields { d, a, b, c, x: 2, y: 1, z: 3 }, ..blank(Operation::Repack) };
    let pack = operands::Repack::of(&pack);
    assert_eq!(pack.into(&program), [101, 102, 103].map(Slot));
    assert_eq!(pack.from(&program), [104, 105].map(Slot));
}

#[test]
#[should_panic(expected = "Vote has no d")]
fn operands_that_are_not_there_are_not_read() {
    let any = Inst { fields: Fields { y: 1, ..Fields::NONE }, ..blank(Operation::Vote) };
    operands::Vote::of(&any).d();
}

#[test]
#[should_panic(expected = "Vote is no Select")]
fn other_rows_are_not_read() {
    operands::Select::of(&blank(Operation::Vote));
}
