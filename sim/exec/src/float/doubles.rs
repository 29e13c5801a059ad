//! Sums, products and signs of doubles, and which NaN is their result: the hardware hands NaNs on.
//! Rounds to nearest only; directed rounding is in `float`.

/// A NaN as the hardware hands it on: made quiet.
#[inline(always)]
pub(crate) fn quiet(nan: f64) -> f64 {
    f64::from_bits(nan.to_bits() | 1 << 51)
}

/// The NaN that arithmetic on doubles results in: of the operands' NaNs the first, made quiet.
///
/// The hardware takes the second operand's before an addend's, and the first operand's last.
/// (Measured on an H100 with every pair and triple of six NaNs: DADD, DMUL, DFMA.)
#[cold]
fn nan_of(operands: [f64; 3]) -> f64 {
    let first = operands.into_iter().find(|operand| operand.is_nan());
    first.map_or(f64::from_bits(0xfff8_0000_0000_0000), quiet)
}

/// `-a`. A NaN keeps its sign, as on the hardware, where this is `0 - a`.
#[inline(always)]
pub(crate) fn negate_double(a: f64) -> f64 {
    if a.is_nan() { quiet(a) } else { -a }
}

/// `|a|`. A NaN keeps its sign, as of [`negate_double`].
#[inline(always)]
pub(crate) fn absolute_double(a: f64) -> f64 {
    if a.is_nan() { quiet(a) } else { a.abs() }
}

/// `a + b`, also of NaNs what is the same on every host.
#[inline(always)]
pub fn add_doubles(a: f64, b: f64) -> f64 {
    let r = a + b;
    if r.is_nan() { nan_of([b, a, a]) } else { r }
}

/// `a - b`, as [`add_doubles`].
#[inline(always)]
pub(crate) fn subtract_doubles(a: f64, b: f64) -> f64 {
    let r = a - b;
    if r.is_nan() { nan_of([b, a, a]) } else { r }
}

/// `a * b`, as [`add_doubles`].
#[inline(always)]
pub(crate) fn multiply_doubles(a: f64, b: f64) -> f64 {
    let r = a * b;
    if r.is_nan() { nan_of([b, a, a]) } else { r }
}

/// `a * b + c`, as [`add_doubles`].
#[inline(always)]
pub(crate) fn fuse_doubles(a: f64, b: f64, c: f64) -> f64 {
    let r = a.mul_add(b, c);
    if r.is_nan() { nan_of([b, c, a]) } else { r }
}

/// What `atom.add.f64` leaves in global memory: of NaNs the operand's before the one in memory, as
/// it is. (Measured on an H100.)
pub fn add_double_in_global(old: f64, operand: f64) -> f64 {
    let sum = old + operand;
    if !sum.is_nan() {
        return sum;
    }
    let nan = [operand, old].into_iter().find(|value| value.is_nan());
    nan.unwrap_or(f64::from_bits(0xfff8_0000_0000_0000))
}
