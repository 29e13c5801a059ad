//! Instruction families of integers and bits.

use device_code::ptx::{Operand, Type};

use super::bits::{bfe, bfi, bfind, bmsk, dot, fns, halves, lop3, prmt, szext, wide};
use super::{Op, bits};
use crate::compile::function::{Result, Scope};
use crate::exec::per_lane;
use crate::exec::per_lane::{LaneFn, op1, op2, op3, op3x, set, setp};
use crate::operations::build;
use crate::program::{Pred, Sem, Slot};

/// `f(a)` for each integer type.
macro_rules! int1 {
    ($ty:expr, |$a:ident| $e:expr) => {
        int1!($ty, Call, |$a| $e)
    };
    ($ty:expr, $sem:ident, |$a:ident| $e:expr) => {
        match $ty {
            Type::U16 | Type::B16 => Some(op1(|$a: u16| $e).is(Sem::$sem)),
            Type::U32 | Type::B32 => Some(op1(|$a: u32| $e).is(Sem::$sem)),
            Type::U64 | Type::B64 => Some(op1(|$a: u64| $e).is(Sem::$sem)),
            Type::S16 => Some(op1(|$a: i16| $e).is(Sem::$sem)),
            Type::S32 => Some(op1(|$a: i32| $e).is(Sem::$sem)),
            Type::S64 => Some(op1(|$a: i64| $e).is(Sem::$sem)),
            _ => None,
        }
    };
}

/// `f(a, b)` for each integer type.
macro_rules! int2 {
    ($ty:expr, |$a:ident, $b:ident| $e:expr) => {
        int2!($ty, Call, |$a, $b| $e)
    };
    ($ty:expr, $sem:ident, |$a:ident, $b:ident| $e:expr) => {
        match $ty {
            Type::U16 | Type::B16 => Some(op2(|$a: u16, $b: u16| $e).is(Sem::$sem)),
            Type::U32 | Type::B32 => Some(op2(|$a: u32, $b: u32| $e).is(Sem::$sem)),
            Type::U64 | Type::B64 => Some(op2(|$a: u64, $b: u64| $e).is(Sem::$sem)),
            Type::S16 => Some(op2(|$a: i16, $b: i16| $e).is(Sem::$sem)),
            Type::S32 => Some(op2(|$a: i32, $b: i32| $e).is(Sem::$sem)),
            Type::S64 => Some(op2(|$a: i64, $b: i64| $e).is(Sem::$sem)),
            _ => None,
        }
    };
}

/// `f(a, b)` with a wider type for each integer type, the low or high half of it kept.
macro_rules! high2 {
    ($ty:expr) => {
        match $ty {
            Type::U16 => Some(op2(|a: u16, b: u16| ((u32::from(a) * u32::from(b)) >> 16) as u16).is(Sem::MulHigh)),
            Type::U32 => Some(op2(|a: u32, b: u32| ((u64::from(a) * u64::from(b)) >> 32) as u32).is(Sem::MulHigh)),
            Type::U64 => Some(op2(|a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 64) as u64).is(Sem::MulHigh)),
            Type::S16 => Some(op2(|a: i16, b: i16| ((i32::from(a) * i32::from(b)) >> 16) as i16).is(Sem::MulHigh)),
            Type::S32 => Some(op2(|a: i32, b: i32| ((i64::from(a) * i64::from(b)) >> 32) as i32).is(Sem::MulHigh)),
            Type::S64 => Some(op2(|a: i64, b: i64| ((i128::from(a) * i128::from(b)) >> 64) as i64).is(Sem::MulHigh)),
            _ => None,
        }
    };
}

/// The upper 32 of the 48 bits of a product of 24-bit numbers.
fn high24(a: i32, b: i32) -> i32 {
    ((i64::from(a << 8 >> 8) * i64::from(b << 8 >> 8)) >> 16) as i32
}

impl<'m> Scope<'_, 'm> {
    /// Returns false when the instruction is of another family.
    pub(super) fn integer(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<bool> {
        if let Some(run) = halves(op) {
            self.simple(op, operands, Type::B32, run)?;
            return Ok(true);
        }
        let Some(ty) = op.ty() else { return Ok(false) };
        let integer = matches!(
            ty,
            Type::U16 | Type::U32 | Type::U64 | Type::S16 | Type::S32 | Type::S64 | Type::B16 | Type::B32 | Type::B64
        );
        let handled = match op.name() {
            "setp" | "set" => return self.compare(op, operands),
            "slct" => return self.slct(op, operands),
            _ if !integer && !matches!(ty, Type::Pred) => return Ok(false),
            "add" | "sub" | "addc" | "subc" | "madc" if op.has("cc") || op.name().ends_with('c') => {
                return self.carry(op, operands, ty);
            }
            "mad" if op.has("cc") => return self.carry(op, operands, ty),
            "mul" | "mad" | "mul24" | "mad24" => return self.multiply(op, operands, ty),
            "add" if op.has("sat") => Some(op2(|a: i32, b: i32| a.saturating_add(b))),
            "sub" if op.has("sat") => Some(op2(|a: i32, b: i32| a.saturating_sub(b))),
            "add" => int2!(ty, Add, |a, b| a.wrapping_add(b)),
            "sub" => int2!(ty, Sub, |a, b| a.wrapping_sub(b)),
            // Division by zero and its remainder are all ones, as what ptxas makes of them gives.
            // (Measured on an H100, 16 to 64 bits.)
            "div" => int2!(ty, |a, b| if b == 0 { !0 } else { a.wrapping_div(b) }),
            "rem" => int2!(ty, |a, b| if b == 0 { !0 } else { a.wrapping_rem(b) }),
            "min" if op.has("relu") => Some(op2(|a: i32, b: i32| a.min(b).max(0))),
            "max" if op.has("relu") => Some(op2(|a: i32, b: i32| a.max(b).max(0))),
            "min" => int2!(ty, Min, |a, b| a.min(b)),
            "max" => int2!(ty, Max, |a, b| a.max(b)),
            "and" => int2!(ty, And, |a, b| a & b),
            "or" => int2!(ty, Or, |a, b| a | b),
            "xor" => int2!(ty, Xor, |a, b| a ^ b),
            "not" => int1!(ty, Not, |a| !a),
            "cnot" => int1!(ty, |a| u64::from(a == 0)),
            "abs" => match ty {
                Type::S16 => Some(op1(|a: i16| a.wrapping_abs()).is(Sem::Abs)),
                Type::S32 => Some(op1(|a: i32| a.wrapping_abs()).is(Sem::Abs)),
                _ => Some(op1(|a: i64| a.wrapping_abs()).is(Sem::Abs)),
            },
            "neg" => int1!(ty, Neg, |a| a.wrapping_neg()),
            "popc" => int1!(ty, |a| a.count_ones()),
            "clz" => int1!(ty, |a| a.leading_zeros()),
            "brev" => int1!(ty, |a| a.reverse_bits()),
            "bfind" => Some(bfind(ty, op.has("shiftamt"))),
            "fns" => Some(op3(fns)),
            "shl" => match ty.size() {
                2 => Some(op2(|a: u16, b: u32| if b > 15 { 0 } else { a << b }).is(Sem::Shl)),
                4 => Some(op2(|a: u32, b: u32| if b > 31 { 0 } else { a << b }).is(Sem::Shl)),
                _ => Some(op2(|a: u64, b: u32| if b > 63 { 0 } else { a << b }).is(Sem::Shl)),
            },
            "shr" => match ty {
                Type::S16 => Some(op2(|a: i16, b: u32| a >> b.min(15)).is(Sem::Shr)),
                Type::S32 => Some(op2(|a: i32, b: u32| a >> b.min(31)).is(Sem::Shr)),
                Type::S64 => Some(op2(|a: i64, b: u32| a >> b.min(63)).is(Sem::Shr)),
                Type::U16 | Type::B16 => Some(op2(|a: u16, b: u32| if b > 15 { 0 } else { a >> b }).is(Sem::Shr)),
                Type::U32 | Type::B32 => Some(op2(|a: u32, b: u32| if b > 31 { 0 } else { a >> b }).is(Sem::Shr)),
                _ => Some(op2(|a: u64, b: u32| if b > 63 { 0 } else { a >> b }).is(Sem::Shr)),
            },
            "shf" => Some(match (op.part(1), op.part(2)) {
                ("l", "wrap") => {
                    op3(|a: u32, b: u32, c: u32| (wide(a, b) << (c & 31) >> 32) as u32).is(Sem::FunnelLeft)
                }
                ("l", _) => op3(|a: u32, b: u32, c: u32| ((u128::from(wide(a, b)) << c.min(32)) >> 32) as u32),
                ("r", "wrap") => op3(|a: u32, b: u32, c: u32| (wide(a, b) >> (c & 31)) as u32).is(Sem::FunnelRight),
                _ => op3(|a: u32, b: u32, c: u32| (wide(a, b) >> c.min(32)) as u32),
            }),
            "sad" => match ty {
                Type::S16 => Some(op3(|a: i16, b: i16, c: u16| c.wrapping_add(a.abs_diff(b)))),
                Type::S32 => Some(op3(|a: i32, b: i32, c: u32| c.wrapping_add(a.abs_diff(b)))),
                Type::S64 => Some(op3(|a: i64, b: i64, c: u64| c.wrapping_add(a.abs_diff(b)))),
                Type::U16 => Some(op3(|a: u16, b: u16, c: u16| c.wrapping_add(a.abs_diff(b)))),
                Type::U32 => Some(op3(|a: u32, b: u32, c: u32| c.wrapping_add(a.abs_diff(b)))),
                _ => Some(op3(|a: u64, b: u64, c: u64| c.wrapping_add(a.abs_diff(b)))),
            },
            "bfe" => Some(match ty {
                Type::U32 => op3(|a: u32, b: u32, c: u32| bfe(u64::from(a), b, c, 32, false)),
                Type::S32 => op3(|a: u32, b: u32, c: u32| bfe(u64::from(a), b, c, 32, true) as u32),
                Type::U64 => op3(|a: u64, b: u32, c: u32| bfe(a, b, c, 64, false)),
                _ => op3(|a: u64, b: u32, c: u32| bfe(a, b, c, 64, true)),
            }),
            "bfi" => return self.bfi(operands, ty),
            "bmsk" => {
                let clamp = op.has("clamp");
                Some(if clamp {
                    op2(|a: u32, b: u32| bmsk(a.min(32), b.min(32)))
                } else {
                    op2(|a: u32, b: u32| bmsk(a & 31, b & 31))
                })
            }
            "szext" => Some(szext(ty, op.has("clamp"))),
            "prmt" => Some(match op.parts.get(2).map(String::as_str) {
                None => op3(|a: u32, b: u32, c: u32| prmt(a, b, c)),
                Some("f4e") => {
                    op3(|a: u32, b: u32, c: u32| prmt(a, b, [0x3210, 0x4321, 0x5432, 0x6543][(c & 3) as usize]))
                }
                Some("b4e") => {
                    op3(|a: u32, b: u32, c: u32| prmt(a, b, [0x5670, 0x6701, 0x7012, 0x0123][(c & 3) as usize]))
                }
                Some("rc8") => op3(|a: u32, b: u32, c: u32| prmt(a, b, (c & 3) * 0x1111)),
                Some("ecl") => {
                    op3(|a: u32, b: u32, c: u32| prmt(a, b, [0x3210, 0x3211, 0x3222, 0x3333][(c & 3) as usize]))
                }
                Some("ecr") => {
                    op3(|a: u32, b: u32, c: u32| prmt(a, b, [0x0000, 0x1110, 0x2210, 0x3210][(c & 3) as usize]))
                }
                Some("rc16") => {
                    op3(|a: u32, b: u32, c: u32| prmt(a, b, [0x1010, 0x3232, 0x1010, 0x3232][(c & 3) as usize]))
                }
                Some(_) => return self.unsupported(op),
            }),
            "lop3" => return self.lop3(op, operands),
            "dp4a" => Some(dot(op, false)),
            "dp2a" => Some(dot(op, true)),
            _ => return Ok(false),
        };
        let Some(run) = handled else { return self.unsupported(op) };
        let (_, sources) = self.simple(op, operands, ty, run)?;
        let _ = sources;
        Ok(true)
    }

    /// Emits `d = run(a, b, c)` with as many sources as there are operands.
    pub(super) fn simple(
        &mut self,
        op: Op<'m>,
        operands: &'m [Operand],
        ty: Type,
        run: LaneFn,
    ) -> Result<(Slot, [Slot; 3])> {
        if !(2..=4).contains(&operands.len()) {
            return self.misfit();
        }
        let mut sources = [Slot::NONE; 3];
        for (at, operand) in operands[1..].iter().enumerate() {
            // Shift amounts and bit positions are 32 bits whatever the type.
            let narrow = at > 0 && matches!(op.name(), "shl" | "shr" | "bfe" | "shf" | "szext");
            sources[at] = self.src(Some(operand), if narrow { Type::B32 } else { ty })?;
        }
        for at in operands.len() - 1..3 {
            sources[at] = sources[0];
        }
        let d = self.dst(operands.first())?;
        self.emit(run.of(sources).to(d));
        Ok((d, sources))
    }

    fn multiply(&mut self, op: Op<'m>, operands: &'m [Operand], ty: Type) -> Result<bool> {
        let mode = op.part(1);
        let wide = mode == "wide";
        let run = match (op.name(), mode) {
            ("mul", "lo") => int2!(ty, Mul, |a, b| a.wrapping_mul(b)),
            ("mul", "hi") => high2!(ty),
            ("mul", "wide") => match ty {
                Type::U16 => Some(op2(|a: u16, b: u16| u32::from(a) * u32::from(b)).is(Sem::MulWide)),
                Type::S16 => Some(op2(|a: i16, b: i16| i32::from(a) * i32::from(b)).is(Sem::MulWide)),
                Type::U32 => Some(op2(|a: u32, b: u32| u64::from(a) * u64::from(b)).is(Sem::MulWide)),
                Type::S32 => Some(op2(|a: i32, b: i32| i64::from(a) * i64::from(b)).is(Sem::MulWide)),
                _ => None,
            },
            ("mad", "lo") => match ty.size() {
                2 => Some(op3(|a: u16, b: u16, c: u16| a.wrapping_mul(b).wrapping_add(c)).is(Sem::MulAdd)),
                4 => Some(op3(|a: u32, b: u32, c: u32| a.wrapping_mul(b).wrapping_add(c)).is(Sem::MulAdd)),
                _ => Some(op3(|a: u64, b: u64, c: u64| a.wrapping_mul(b).wrapping_add(c)).is(Sem::MulAdd)),
            },
            ("mad", "hi") if op.has("sat") => {
                Some(op3(|a: i32, b: i32, c: i32| (((i64::from(a) * i64::from(b)) >> 32) as i32).saturating_add(c)))
            }
            ("mad", "hi") => match ty {
                Type::U16 => {
                    Some(op3(|a: u16, b: u16, c: u16| (((u32::from(a) * u32::from(b)) >> 16) as u16).wrapping_add(c)))
                }
                Type::S16 => {
                    Some(op3(|a: i16, b: i16, c: i16| (((i32::from(a) * i32::from(b)) >> 16) as i16).wrapping_add(c)))
                }
                Type::U32 => {
                    Some(op3(|a: u32, b: u32, c: u32| (((u64::from(a) * u64::from(b)) >> 32) as u32).wrapping_add(c)))
                }
                Type::S32 => {
                    Some(op3(|a: i32, b: i32, c: i32| (((i64::from(a) * i64::from(b)) >> 32) as i32).wrapping_add(c)))
                }
                Type::U64 => {
                    Some(op3(|a: u64, b: u64, c: u64| (((u128::from(a) * u128::from(b)) >> 64) as u64).wrapping_add(c)))
                }
                _ => {
                    Some(op3(|a: i64, b: i64, c: i64| (((i128::from(a) * i128::from(b)) >> 64) as i64).wrapping_add(c)))
                }
            },
            ("mad", "wide") => match ty {
                Type::U16 => Some(
                    op3(|a: u16, b: u16, c: u32| (u32::from(a) * u32::from(b)).wrapping_add(c)).is(Sem::MulAddWide),
                ),
                Type::S16 => Some(
                    op3(|a: i16, b: i16, c: i32| (i32::from(a) * i32::from(b)).wrapping_add(c)).is(Sem::MulAddWide),
                ),
                Type::U32 => Some(
                    op3(|a: u32, b: u32, c: u64| (u64::from(a) * u64::from(b)).wrapping_add(c)).is(Sem::MulAddWide),
                ),
                Type::S32 => Some(
                    op3(|a: i32, b: i32, c: i64| (i64::from(a) * i64::from(b)).wrapping_add(c)).is(Sem::MulAddWide),
                ),
                _ => None,
            },
            ("mul24", "lo") => Some(if ty == Type::S32 {
                op2(|a: i32, b: i32| (i64::from(a << 8 >> 8) * i64::from(b << 8 >> 8)) as i32)
            } else {
                op2(|a: u32, b: u32| (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff))
            }),
            ("mul24", "hi") => Some(if ty == Type::S32 {
                op2(high24)
            } else {
                op2(|a: u32, b: u32| ((u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)) >> 16) as u32)
            }),
            ("mad24", "lo") => Some(if ty == Type::S32 {
                op3(|a: i32, b: i32, c: i32| ((i64::from(a << 8 >> 8) * i64::from(b << 8 >> 8)) as i32).wrapping_add(c))
            } else {
                op3(|a: u32, b: u32, c: u32| (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff).wrapping_add(c))
            }),
            ("mad24", "hi") if op.has("sat") => Some(op3(|a: i32, b: i32, c: i32| high24(a, b).saturating_add(c))),
            ("mad24", "hi") => Some(if ty == Type::S32 {
                op3(|a: i32, b: i32, c: i32| high24(a, b).wrapping_add(c))
            } else {
                op3(|a: u32, b: u32, c: u32| {
                    (((u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)) >> 16) as u32).wrapping_add(c)
                })
            }),
            _ => None,
        };
        let Some(run) = run else { return self.unsupported(op) };
        if wide && operands.len() == 4 {
            // The addend is as wide as the result: an immediate must not be cut to the factors'
            // width.
            let double = if bits(ty) == 16 { Type::B32 } else { Type::B64 };
            let (a, b) = (self.src(operands.get(1), ty)?, self.src(operands.get(2), ty)?);
            let addend = match operands.get(3) {
                Some(Operand::Int(value)) if double == Type::B64 => self.c.constant(*value),
                other => self.src(other, double)?,
            };
            let d = self.dst(operands.first())?;
            self.emit(run.of([a, b, addend]).to(d));
        } else {
            self.simple(op, operands, ty, run)?;
        }
        Ok(true)
    }

    /// Extended-precision arithmetic: the carry is a row of its own.
    fn carry(&mut self, op: Op<'m>, operands: &'m [Operand], ty: Type) -> Result<bool> {
        let flag = match self.carry {
            Some(slot) => slot,
            None => {
                let slot = self.temporary();
                self.carry = Some(slot);
                slot
            }
        };
        let reads = op.name().ends_with('c');
        let multiply = op.name().starts_with("mad");
        let subtract = op.name().starts_with("sub");
        let high = op.has("hi");
        let signed = matches!(ty, Type::S32 | Type::S64);
        let y = u32::from(reads)
            | u32::from(op.has("cc")) << 1
            | u32::from(subtract) << 2
            | u32::from(multiply) << 3
            | u32::from(high) << 4
            | u32::from(signed) << 5
            | u32::from(bits(ty) == 64) << 6;
        let mut sources = [Slot::NONE; 3];
        for (at, operand) in operands.iter().skip(1).take(3).enumerate() {
            sources[at] = self.src(Some(operand), ty)?;
        }
        if sources[1] == Slot::NONE || (multiply && sources[2] == Slot::NONE) {
            return self.misfit();
        }
        let d = self.dst(operands.first())?;
        let [a, b, c] = sources;
        let (c, carry, over) = (multiply.then_some(c), reads.then_some(flag), op.has("cc").then_some(flag));
        self.emit(build::WithCarry { a, b, c, carry, d, over, how: y });
        Ok(true)
    }

    fn bfi(&mut self, operands: &'m [Operand], ty: Type) -> Result<bool> {
        // bfi d, a, b, c, e: five operands; position and length go together into one row.
        let d = self.dst(operands.first())?;
        let (a, b) = (self.src(operands.get(1), ty)?, self.src(operands.get(2), ty)?);
        let (c, e) = (self.src(operands.get(3), Type::B32)?, self.src(operands.get(4), Type::B32)?);
        let both = self.temporary();
        // Fields of 64 bits are inserted by code of ptxas, which takes the numbers as they are.
        let pair = match bits(ty) {
            64 => op2(|c: u32, e: u32| u64::from(c.min(0xff)) | u64::from(e.min(0xff)) << 8),
            _ => op2(|c: u32, e: u32| u64::from(c & 0xff) | u64::from(e & 0xff) << 8),
        };
        self.emit(pair.of([c, e]).to(both));
        let run = if bits(ty) == 64 {
            op3(|a: u64, b: u64, p: u64| bfi(a, b, p, 64))
        } else {
            op3(|a: u32, b: u32, p: u64| bfi(u64::from(a), u64::from(b), p, 32) as u32)
        };
        self.emit(run.of([a, b, both]).to(d));
        Ok(true)
    }

    fn lop3(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<bool> {
        // lop3.b32 d, a, b, c, table;   lop3.BoolOp.b32 d|p, a, b, c, table, q;
        let Some(Operand::Int(table)) = operands.get(4) else { return self.misfit() };
        let a = self.src(operands.get(1), Type::B32)?;
        let b = self.src(operands.get(2), Type::B32)?;
        let c = self.src(operands.get(3), Type::B32)?;
        let run = op3x(|a: u32, b: u32, c: u32, table: u64| lop3(a, b, c, table as u32)).is(Sem::Lop3);
        if let Some(Operand::Pair(pair)) = operands.first() {
            let d = if matches!(pair.0, Operand::Sink) { self.temporary() } else { self.dst(Some(&pair.0))? };
            let p = self.dst_pred(Some(&pair.1))?;
            let q = self.src_pred(operands.get(5))?;
            self.emit(run.of([a, b, c]).with(*table).to(d));
            let y = if op.has("and") { per_lane::COMBINE_AND } else { per_lane::COMBINE_OR };
            let zero = self.c.constant(0);
            let ne = setp(|a: u32, b: u32| a != b).is(Sem::Ne);
            self.emit(ne.of([d, zero]).combined(y, q).test(p, Pred::ALWAYS));
        } else {
            let d = self.dst(operands.first())?;
            self.emit(run.of([a, b, c]).with(*table).to(d));
        }
        Ok(true)
    }

    fn slct(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<bool> {
        let Some(ty) = op.types().next() else { return self.unsupported(op) };
        let by = op.ty().unwrap_or(Type::S32);
        let run = if by == Type::F32 {
            op3(|a: u64, b: u64, c: f32| if c >= 0.0 { a } else { b })
        } else {
            op3(|a: u64, b: u64, c: i32| if c >= 0 { a } else { b })
        };
        let d = self.dst(operands.first())?;
        let (a, b) = (self.src(operands.get(1), ty)?, self.src(operands.get(2), ty)?);
        let c = self.src(operands.get(3), by)?;
        self.emit(run.of([a, b, c]).to(d));
        Ok(true)
    }

    /// `setp` and `set` of integers; floats are compared elsewhere.
    fn compare(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<bool> {
        let Some(ty) = op.ty() else { return Ok(false) };
        macro_rules! comparisons {
            ($make:ident, $signed:expr, $unsigned:ty, $signed_ty:ty) => {
                match (op.part(1), $signed) {
                    ("eq", _) => $make(|a: $unsigned, b: $unsigned| a == b).is(Sem::Eq),
                    ("ne", _) => $make(|a: $unsigned, b: $unsigned| a != b).is(Sem::Ne),
                    ("lt", true) => $make(|a: $signed_ty, b: $signed_ty| a < b).is(Sem::Lt),
                    ("le", true) => $make(|a: $signed_ty, b: $signed_ty| a <= b).is(Sem::Le),
                    ("gt", true) => $make(|a: $signed_ty, b: $signed_ty| a > b).is(Sem::Gt),
                    ("ge", true) => $make(|a: $signed_ty, b: $signed_ty| a >= b).is(Sem::Ge),
                    ("lt" | "lo", false) => $make(|a: $unsigned, b: $unsigned| a < b).is(Sem::Lt),
                    ("le" | "ls", false) => $make(|a: $unsigned, b: $unsigned| a <= b).is(Sem::Le),
                    ("gt" | "hi", false) => $make(|a: $unsigned, b: $unsigned| a > b).is(Sem::Gt),
                    ("ge" | "hs", false) => $make(|a: $unsigned, b: $unsigned| a >= b).is(Sem::Ge),
                    _ => return self.unsupported(op),
                }
            };
        }
        macro_rules! by_type {
            ($make:ident) => {
                match ty {
                    Type::U16 | Type::B16 => comparisons!($make, false, u16, i16),
                    Type::S16 => comparisons!($make, true, u16, i16),
                    Type::U32 | Type::B32 => comparisons!($make, false, u32, i32),
                    Type::S32 => comparisons!($make, true, u32, i32),
                    Type::U64 | Type::B64 => comparisons!($make, false, u64, i64),
                    Type::S64 => comparisons!($make, true, u64, i64),
                    _ => return Ok(false),
                }
            };
        }
        let run = if op.name() == "setp" { by_type!(setp) } else { by_type!(set) };
        self.comparison(op, operands, ty, run)?;
        Ok(true)
    }

    /// Emits a comparison with its results and its third predicate.
    pub(super) fn comparison(&mut self, op: Op<'m>, operands: &'m [Operand], ty: Type, run: LaneFn) -> Result<()> {
        let y = match op.part(2) {
            "and" => per_lane::COMBINE_AND,
            "or" => per_lane::COMBINE_OR,
            "xor" => per_lane::COMBINE_XOR,
            _ => per_lane::COMBINE_NONE,
        };
        let (a, b) = (self.src(operands.get(1), ty)?, self.src(operands.get(2), ty)?);
        let mut outcome = run.of([a, b]);
        if y != per_lane::COMBINE_NONE {
            outcome = outcome.combined(y, self.src_pred(operands.get(3))?);
        }
        if op.name() == "setp" {
            let (p, q) = match operands.first() {
                Some(Operand::Pair(pair)) => (self.dst_pred(Some(&pair.0))?, self.dst_pred(Some(&pair.1))?),
                other => (self.dst_pred(other)?, Pred::ALWAYS),
            };
            self.emit(outcome.test(p, q));
        } else {
            let d = self.dst(operands.first())?;
            let result = op.types().next().unwrap_or(Type::U32);
            let holds = match result {
                Type::F32 => u64::from(1f32.to_bits()),
                Type::F16 => 0x3c00,
                Type::Bf16 => 0x3f80,
                _ => u64::MAX >> (64 - bits(result)),
            };
            self.emit(outcome.with(holds).to(d));
        }
        Ok(())
    }
}
