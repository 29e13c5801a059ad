//! Video instructions, on whole words (`vadd`, `vshl`, ...) and on bytes and halfwords of a word
//! (`vadd2`, `vabsdiff4`, `vset4`, ...), with the default selection of lanes. Masks and selectors
//! on operands, which no compiler writes, are not executed. Nor are forms on whole words that an
//! H200 executes otherwise than the PTX ISA says (measured: sm_90, driver 580): `.min` and `.max`
//! as second operations, and `.sat` of unsigned results and of `vshl`.

use device_code::ptx::{Operand, Type};

use super::Op;
use crate::compile::function::{Result, Scope};
use crate::exec::per_lane::op3x;

/// What is done in each lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Do {
    Add,
    Sub,
    Average,
    AbsDiff,
    Min,
    Max,
    Set,
    Shl,
    Shr,
}

const DO: [Do; 9] = [Do::Add, Do::Sub, Do::Average, Do::AbsDiff, Do::Min, Do::Max, Do::Set, Do::Shl, Do::Shr];
const NAMES: [&str; 9] = ["vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset", "vshl", "vshr"];
const COMPARE: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];

/// An instruction's variety, packed into the constant it carries.
#[derive(Debug, Clone, Copy)]
struct Variety {
    what: usize,
    lanes: u32,
    signed: [bool; 3],
    saturate: bool,
    /// The lanes' results are added to the third operand instead of being put side by side.
    sum: bool,
    compare: usize,
    /// Of shifts: the count is taken modulo 32. Otherwise one above 32 is as 32.
    wrap: bool,
}

impl Variety {
    fn pack(self) -> u64 {
        let flags = [self.signed[0], self.signed[1], self.signed[2], self.saturate, self.sum, self.wrap];
        let flags = flags.iter().rev().fold(0, |bits, &flag| bits << 1 | u64::from(flag));
        self.what as u64 | u64::from(self.lanes) << 4 | flags << 8 | (self.compare as u64) << 16
    }

    fn unpack(x: u64) -> Self {
        let flag = |n: u64| x >> (8 + n) & 1 != 0;
        Variety {
            what: (x & 15) as usize,
            lanes: (x >> 4 & 7) as u32,
            signed: [flag(0), flag(1), flag(2)],
            saturate: flag(3),
            sum: flag(4),
            compare: (x >> 16 & 7) as usize,
            wrap: flag(5),
        }
    }
}

fn run(a: u32, b: u32, c: u32, x: u64) -> u32 {
    let v = Variety::unpack(x);
    let bits = 32 / v.lanes;
    let mask = (1u64 << bits) - 1;
    let part = |word: u32, lane: u32, signed: bool| {
        let value = i64::from(word >> (lane * bits)) & mask as i64;
        if signed && value >> (bits - 1) != 0 { value - (1 << bits) } else { value }
    };
    let (least, most) = if v.signed[0] { (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1) } else { (0, mask as i64) };
    let (mut word, mut sum) = (0u64, c);
    for lane in 0..v.lanes {
        let (p, q) = (part(a, lane, v.signed[1]), part(b, lane, v.signed[2]));
        let result = match DO[v.what % DO.len()] {
            Do::Add => p + q,
            Do::Sub => p - q,
            // Rounds away from zero where a sign is possible, up where not.
            Do::Average => (p + q + i64::from(p + q >= 0)) >> 1,
            Do::AbsDiff => (p - q).abs(),
            Do::Min => p.min(q),
            Do::Max => p.max(q),
            Do::Set => i64::from(match v.compare {
                0 => p == q,
                1 => p != q,
                2 => p < q,
                3 => p <= q,
                4 => p > q,
                _ => p >= q,
            }),
            // Only of whole words: the count is an unsigned one.
            Do::Shl => p << if v.wrap { q & 31 } else { q.min(32) },
            Do::Shr => p >> if v.wrap { q & 31 } else { q.min(32) },
        };
        let result = if v.saturate { result.clamp(least, most) } else { result };
        word |= (result as u64 & mask) << (lane * bits);
        sum = sum.wrapping_add(result as u32);
    }
    if v.sum { sum } else { word as u32 }
}

/// Whether hardware executes a form on whole words as the PTX ISA says.
fn is_as_specified(op: Op<'_>, what: Do) -> bool {
    let saturates = op.has("sat") && (what == Do::Shl || op.types().next() == Some(Type::U32));
    let count = !matches!(what, Do::Shl | Do::Shr) || op.types().nth(2) == Some(Type::U32);
    !saturates && count && !op.has("min") && !op.has("max")
}

impl<'m> Scope<'_, 'm> {
    /// Returns false when the instruction is of another family.
    pub(super) fn simd(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<bool> {
        let (name, lanes) = match op.name() {
            name if name.ends_with('4') => (name.trim_end_matches('4'), 4),
            name if name.ends_with('2') => (name.trim_end_matches('2'), 2),
            name => (name, 1),
        };
        let Some(what) = NAMES.iter().position(|known| *known == name) else { return Ok(false) };
        let is_shift = matches!(DO[what], Do::Shl | Do::Shr);
        if if lanes == 1 { DO[what] == Do::Average || !is_as_specified(op, DO[what]) } else { is_shift } {
            self.unsupported(op)?;
            return Ok(true);
        }
        let types: Vec<Type> = op.types().collect();
        let compare = COMPARE.iter().position(|compare| op.has(compare));
        // `vset` names its operands' types only: what it gives is 0 or 1.
        let (result, of_a, of_b) = match types[..] {
            [d, a, b] if DO[what] != Do::Set => (d, a, b),
            [a, b] if compare.is_some() => (Type::U32, a, b),
            _ => {
                self.unsupported(op)?;
                return Ok(true);
            }
        };
        let [d, a, b, rest @ ..] = operands else {
            self.misfit()?;
            return Ok(true);
        };
        let v = Variety {
            what,
            lanes,
            signed: [result, of_a, of_b].map(|ty| ty == Type::S32),
            saturate: op.has("sat"),
            sum: op.has("add"),
            compare: compare.unwrap_or(0),
            wrap: op.has("wrap"),
        };
        let d = self.dst(Some(d))?;
        let a = self.src(Some(a), Type::B32)?;
        let b = self.src(Some(b), Type::B32)?;
        let c = match rest.first() {
            Some(operand) => self.src(Some(operand), Type::B32)?,
            None => self.c.constant(0),
        };
        self.emit(op3x(run).of([a, b, c]).with(v.pack()).to(d));
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variety(what: Do, lanes: u32, signed: bool) -> Variety {
        let what = DO.iter().position(|known| *known == what).expect("listed");
        Variety { what, lanes, signed: [signed; 3], saturate: false, sum: false, compare: 0, wrap: false }
    }

    #[test]
    fn lanes_do_not_touch_each_other() {
        let add = variety(Do::Add, 4, false);
        assert_eq!(run(0xff01_7f80, 0x0102_0180, 0, add.pack()), 0x0003_8000);
        assert_eq!(run(0xff01_7f80, 0x0102_0180, 0, Variety { saturate: true, ..add }.pack()), 0xff03_80ff);
        let add = Variety { saturate: true, ..variety(Do::Add, 2, true) };
        assert_eq!(run(0x7fff_8000, 0x0001_ffff, 0, add.pack()), 0x7fff_8000);
        assert_eq!(run(0x0003_0000, 0x0001_ffff, 0, variety(Do::Sub, 2, false).pack()), 0x0002_0001);
    }

    #[test]
    fn whole_words_are_shifted() {
        for signed in [false, true] {
            let [left, right] =
                [Do::Shl, Do::Shr].map(|what| Variety { signed: [signed, signed, false], ..variety(what, 1, signed) });
            let sign = if signed { u32::MAX } else { 0 };
            for (count, wrapped) in [(0, 0), (1, 1), (31, 31), (32, 0), (33, 1), (u32::MAX, 31)] {
                let by = |v: Variety, wrap| run(0x8000_0001, count, 0, Variety { wrap, ..v }.pack());
                assert_eq!(by(left, true), 0x8000_0001 << wrapped);
                assert_eq!(by(left, false), 0x8000_0001u32.checked_shl(count).unwrap_or(0));
                let shifted = |count: u32| (0x8000_0001u64 | u64::from(sign) << 32) >> count.min(32);
                assert_eq!(by(right, true), shifted(wrapped) as u32);
                assert_eq!(by(right, false), shifted(count) as u32);
            }
        }
    }

    #[test]
    fn differences_averages_and_sums() {
        let diff = variety(Do::AbsDiff, 4, false);
        assert_eq!(run(0x10ff_0005, 0x2000_0003, 9, diff.pack()), 0x10ff_0002);
        assert_eq!(run(0x10ff_0005, 0x2000_0003, 9, Variety { sum: true, ..diff }.pack()), 9 + 0x10 + 0xff + 2);
        assert_eq!(run(0x0003_0004, 0x0004_0004, 0, variety(Do::Average, 2, false).pack()), 0x0004_0004);
        assert_eq!(run(0x80ff_0001, 0x7f00_0002, 0, variety(Do::Max, 4, true).pack()), 0x7f00_0002);
        assert_eq!(run(0x80ff_0001, 0x7f00_0002, 0, variety(Do::Min, 4, false).pack()), 0x7f00_0001);
        assert_eq!(run(0x0101_0202, 0x0100_0203, 0, variety(Do::Set, 4, false).pack()), 0x0100_0100);
    }
}
