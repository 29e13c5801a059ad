//! What the special function unit computes, for all lanes of a pack: functions of the host, of
//! which the compiler makes vectors twice as wide as those of native code. In place they would be
//! long.

use cranelift_codegen::ir::{InstBuilder, types};

use crate::context::{RegionContext, at};
use crate::pack::gather_scatter::has_wide;
use crate::pack::lanes::{Lanes, Narrow, Pack, each};
use crate::values::plain;
use sim_exec::float::FTZ;
use sim_exec::float::approximate::{self, Approximation, SpecialFunction, special};
use sim_exec::operations::operands;
use sim_exec::program::{LANES, LaneOp};

/// Lanes of the narrowest pack.
const STEP: usize = 8;

/// Replaces the words in `aside` by a function of them and those in `near`: of so many lanes.
#[inline(always)]
fn apply(context: &mut RegionContext, lanes: u64, f: impl Fn(f32, f32) -> f32) -> u64 {
    let (first, second) = (&mut context.aside, &context.near);
    for step in 0..(lanes as usize).min(LANES) / STEP {
        for lane in step * STEP..(step + 1) * STEP {
            first[lane] = f(f32::from_bits(first[lane]), f32::from_bits(second[lane])).to_bits();
        }
    }
    0
}

/// The address of a function that computes it.
macro_rules! of_lanes {
    ($f:expr) => {{
        /// # Safety
        /// The context is that of a region that runs.
        unsafe extern "C" fn plain(context: *mut RegionContext, lanes: u64) -> u64 {
            // SAFETY: the caller's promise: nobody else has it.
            apply(unsafe { &mut *context }, lanes, $f)
        }
        /// # Safety
        /// As above, and the processor has AVX2.
        #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
        unsafe extern "C" fn wide(context: *mut RegionContext, lanes: u64) -> u64 {
            // SAFETY: the caller's promise: nobody else has it.
            apply(unsafe { &mut *context }, lanes, $f)
        }
        if has_wide() { wide as *const () } else { plain as *const () }
    }};
}

/// The function of the host for an instruction. `flush`: subnormals are flushed.
fn function(approximation: Approximation, flush: bool) -> *const () {
    macro_rules! either {
        ($name:ident $(, $full:literal)?) => {
            if flush {
                of_lanes!(|a, b| either!(@ $name, a, b, FTZ $(, $full)?))
            } else {
                of_lanes!(|a, b| either!(@ $name, a, b, 0 $(, $full)?))
            }
        };
        (@ $name:ident, $a:ident, $b:ident, $x:expr) => {{
            let _ = $b;
            approximate::$name($a, $x)
        }};
        (@ $name:ident, $a:ident, $b:ident, $x:expr, $full:literal) => {
            approximate::$name($a, $b, $x, $full)
        };
    }
    match approximation {
        Approximation::Sin => of_lanes!(|a, _| approximate::sin(a, 0)),
        Approximation::Cos => of_lanes!(|a, _| approximate::cos(a, 0)),
        Approximation::Ex2 => either!(ex2),
        Approximation::Lg2 => either!(lg2),
        Approximation::Rcp => either!(rcp),
        Approximation::Rsqrt => either!(rsqrt),
        Approximation::Sqrt => either!(sqrt),
        Approximation::Div => either!(div, false),
        Approximation::FullDiv => either!(div, true),
        Approximation::Unit(function) => match function {
            SpecialFunction::Cos => of_lanes!(|a, _| special(SpecialFunction::Cos, a)),
            SpecialFunction::Sin => of_lanes!(|a, _| special(SpecialFunction::Sin, a)),
            SpecialFunction::Ex2 => of_lanes!(|a, _| special(SpecialFunction::Ex2, a)),
            SpecialFunction::Lg2 => of_lanes!(|a, _| special(SpecialFunction::Lg2, a)),
            SpecialFunction::Rcp => of_lanes!(|a, _| special(SpecialFunction::Rcp, a)),
            SpecialFunction::Rsq => of_lanes!(|a, _| special(SpecialFunction::Rsq, a)),
            SpecialFunction::Sqrt => of_lanes!(|a, _| special(SpecialFunction::Sqrt, a)),
            SpecialFunction::Tanh => of_lanes!(|a, _| special(SpecialFunction::Tanh, a)),
        },
    }
}

/// What the unit computes. Lanes that do not take part have some value computed, too.
pub(crate) fn approximate(
    i: operands::Lane<'_>,
    op: &LaneOp,
    approximation: Approximation,
    p: &mut Pack<'_, '_>,
) -> Lanes {
    let context = p.e.v.context;
    let (a, _) = p.singles(i.a(), true);
    let second = matches!(approximation, Approximation::Div | Approximation::FullDiv).then(|| i.b());
    let mut operands = vec![(a, at!(aside))];
    if let Some(slot) = second {
        operands.push((p.singles(slot, true).0, at!(near)));
    }
    for (values, offset) in operands {
        for (part, value) in values.into_iter().enumerate() {
            p.e.v.b.ins().store(plain(), value, context, offset + 16 * part as i32);
        }
    }
    debug_assert!(op.operands >= 1);
    let flush = i.constant() & FTZ != 0;
    let lanes = p.e.v.int(types::I64, p.width.lanes() as u64);
    p.e.v.call(function(approximation, flush) as usize, &[context, lanes]);
    let values: Narrow =
        each(p.width, |part| p.e.v.b.ins().load(types::F32X4, plain(), context, at!(aside) + 16 * part as i32));
    Lanes::Singles(values, false)
}
