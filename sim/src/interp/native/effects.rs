//! Which registers each instruction reads and writes.

use super::decode::{Fields, Kind, Tag, kind, tags};
use crate::interp::block::BARRIER_POPC;
use crate::interp::exec_sass::predicates;
use crate::interp::program::{ArgumentHome, Inst, Pred, Program, ResultUse, Slot};

/// A register of a frame: a row by its number, or a predicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Register {
    Row(u32),
    Pred(u32),
}

/// The registers that an instruction reads and writes.
#[derive(Debug, Default, Clone)]
pub(super) struct Effects {
    pub reads: Vec<Register>,
    pub writes: Vec<Register>,
    /// It may read every register.
    pub all: bool,
}

impl Effects {
    fn read(&mut self, slot: Slot) {
        if slot != Slot::NONE && slot.0 & Slot::CONSTANT == 0 {
            self.reads.push(Register::Row(slot.0));
        }
    }

    fn write(&mut self, slot: Slot) {
        if slot != Slot::NONE && slot.0 & Slot::CONSTANT == 0 {
            self.writes.push(Register::Row(slot.0));
        }
    }

    fn test(&mut self, pred: u32) {
        if pred & !Pred::NEGATED != Pred::ALWAYS.0 {
            self.reads.push(Register::Pred(pred & !Pred::NEGATED));
        }
    }

    fn set(&mut self, pred: u32) {
        if pred != Pred::ALWAYS.0 {
            self.writes.push(Register::Pred(pred & !Pred::NEGATED));
        }
    }

    fn home(&mut self, home: &ArgumentHome, write: bool) {
        if let ArgumentHome::Row(slot) = home {
            if write { self.write(*slot) } else { self.read(*slot) }
        }
    }
}

/// The predicates of [`integer::packed`].
pub(super) fn unpacked(bits: u64) -> Pred {
    let number = bits as u32 & 0x7fff;
    let number = if number == 0x7fff { Pred::ALWAYS.0 } else { number };
    Pred(number | (bits as u32 >> 15 & 1) << 31)
}

/// What an instruction reads and writes, its guard included.
pub(super) fn effects(program: &Program, inst: &Inst) -> Effects {
    let mut e = Effects::default();
    if inst.guard != Pred::ALWAYS {
        e.test(inst.guard.0);
    }
    let i = inst;
    let slots = |first: usize, count: usize| program.slots.get(first..first + count).unwrap_or(&[]);
    match kind(inst) {
        Kind::Lane(op) => {
            let sources = [i.a, i.b, i.c];
            let count = usize::from(op.operands);
            sources[..count].iter().for_each(|&slot| e.read(slot));
            match op.outcome {
                ResultUse::Value => e.write(i.d),
                outcome => {
                    if i.y != crate::interp::exec::per_lane::COMBINE_NONE {
                        e.test(i.c.0);
                    }
                    if outcome == ResultUse::Choice {
                        e.write(i.d);
                    } else {
                        e.set(i.d.0);
                        e.set(i.z);
                    }
                }
            }
        }
        Kind::Nothing => {}
        Kind::Branch => {}
        Kind::Select => {
            e.read(i.a);
            e.read(i.b);
            e.test(i.c.0);
            e.write(i.d);
        }
        Kind::Predicate => {
            e.test(i.a.0);
            e.test(i.b.0);
            e.set(i.d.0);
        }
        Kind::Repack => {
            let (into, from) = (i.z as usize, i.x as usize);
            slots(i.y as usize + into, from).iter().for_each(|&slot| e.read(slot));
            slots(i.y as usize, into).iter().for_each(|&slot| e.write(slot));
        }
        Kind::Special | Kind::ParamAddress | Kind::FrameAddress | Kind::DynamicShared => e.write(i.d),
        Kind::ConvertAddress => {
            e.read(i.a);
            e.write(i.d);
        }
        Kind::LoadParam { .. } | Kind::Load { .. } => {
            if let Kind::Load { .. } = kind(inst) {
                e.read(i.a);
            }
            match (i.z >> 4) as usize {
                1 => e.write(i.d),
                count => slots(i.y as usize, count).iter().for_each(|&slot| e.write(slot)),
            }
        }
        Kind::Store { .. } => {
            e.read(i.a);
            match (i.z >> 4) as usize {
                1 => e.read(i.b),
                count => slots(i.y as usize, count).iter().for_each(|&slot| e.read(slot)),
            }
        }
        Kind::Atom { .. } => {
            [i.a, i.b, i.c].iter().for_each(|&slot| e.read(slot));
            e.write(i.d);
        }
        Kind::IntCompare => {
            e.read(i.a);
            e.read(i.b);
            e.test(i.c.0);
            if i.y & predicates::EXTENDED != 0 {
                e.test(i.x as u32);
            }
            e.set(i.d.0);
            e.set(i.z);
        }
        Kind::FloatCompare { .. } => {
            e.read(i.a);
            e.read(i.b);
            e.test(i.c.0);
            e.set(i.d.0);
            e.set(i.z);
        }
        Kind::Table => {
            [i.a, i.b, i.c].iter().for_each(|pred| e.test(pred.0));
            e.set(i.d.0);
            e.set(i.z);
        }
        Kind::NotZero => {
            e.read(i.a);
            e.test(i.c.0);
            e.set(i.d.0);
        }
        Kind::Add3 => {
            [i.a, i.b, i.c].iter().for_each(|&slot| e.read(slot));
            e.test(unpacked(i.x).0);
            e.test(unpacked(i.x >> 16).0);
            e.write(i.d);
            e.set(unpacked(i.x >> 32).0);
            e.set(unpacked(i.x >> 48).0);
        }
        Kind::AddWide => {
            e.read(i.a);
            e.read(i.b);
            e.test(unpacked(i.x).0);
            e.write(i.d);
            e.set(unpacked(i.x >> 32).0);
        }
        Kind::WithCarry => {
            e.read(i.a);
            e.read(i.b);
            if i.y >> 3 & 1 != 0 {
                e.read(i.c);
            }
            let flag = Slot(i.x as u32);
            if i.y & 1 != 0 {
                e.read(flag);
            }
            e.write(i.d);
            if i.y >> 1 & 1 != 0 {
                e.write(flag);
            }
        }
        Kind::Foreign | Kind::Stop => match tags().get(&(inst.run as usize)) {
            Some(Tag::Foreign(fields) | Tag::Stop(fields)) => fields_used(&mut e, program, inst, *fields),
            Some(Tag::Known(Kind::Load { .. })) => {
                e.read(i.a);
                match (i.z >> 4) as usize {
                    1 => e.write(i.d),
                    count => slots(i.y as usize, count).iter().for_each(|&slot| e.write(slot)),
                }
            }
            Some(Tag::Known(Kind::Store { .. })) => {
                e.read(i.a);
                match (i.z >> 4) as usize {
                    1 => e.read(i.b),
                    count => slots(i.y as usize, count).iter().for_each(|&slot| e.read(slot)),
                }
            }
            _ => e.all = true,
        },
    }
    e
}

fn fields_used(e: &mut Effects, program: &Program, i: &Inst, fields: Fields) {
    let slots = |first: usize, count: usize| program.slots.get(first..first + count).unwrap_or(&[]);
    match fields {
        Fields::None => {}
        Fields::Result => e.write(i.d),
        Fields::FromOne => {
            e.read(i.a);
            e.write(i.d);
        }
        Fields::FromTwo => {
            e.read(i.a);
            e.read(i.b);
            e.write(i.d);
        }
        Fields::FromThree => {
            [i.a, i.b, i.c].iter().for_each(|&slot| e.read(slot));
            e.write(i.d);
        }
        Fields::Update => {
            e.read(i.d);
            e.write(i.d);
        }
        Fields::Read => e.read(i.a),
        Fields::ReadThree => [i.a, i.b, i.c].iter().for_each(|&slot| e.read(slot)),
        Fields::Shuffle => {
            [i.a, i.b, i.c, Slot(i.x as u32)].iter().for_each(|&slot| e.read(slot));
            e.write(i.d);
            e.set(i.z);
        }
        Fields::Vote => {
            e.test(i.a.0);
            e.read(i.b);
            if i.y == 3 { e.write(i.d) } else { e.set(i.d.0) }
        }
        Fields::Elect => {
            e.read(i.a);
            e.write(i.d);
            e.set(i.z);
        }
        Fields::Match => {
            e.read(i.a);
            e.read(i.b);
            e.write(i.d);
            if i.y == 1 {
                e.set(i.z);
            }
        }
        Fields::Barrier => {
            e.read(i.a);
            e.read(i.b);
            if i.y >= BARRIER_POPC {
                e.test(i.c.0);
                if i.y == BARRIER_POPC { e.write(i.d) } else { e.set(i.d.0) }
            }
        }
        Fields::Texture => {
            e.read(i.a);
            let (results, coordinates) = ((i.z & 0xff) as usize, (i.z >> 8 & 0xff) as usize);
            let values = (i.z >> 16) as usize;
            let first = i.y as usize;
            slots(first + results, coordinates + values).iter().for_each(|&slot| e.read(slot));
            slots(first, results).iter().for_each(|&slot| e.write(slot));
        }
        Fields::Multiply => {
            let counts = [0, 6, 12, 18].map(|at| (i.z >> at & 63) as usize);
            let first = i.y as usize;
            slots(first + counts[0], counts[1] + counts[2] + counts[3]).iter().for_each(|&slot| e.read(slot));
            slots(first, counts[0]).iter().for_each(|&slot| e.write(slot));
        }
        Fields::Narrow => e.all = true,
        Fields::Rows => {
            e.read(i.a);
            let list = slots(i.y as usize, (i.z >> 4 & 15) as usize);
            list.iter().for_each(|&slot| if i.x == 1 { e.read(slot) } else { e.write(slot) });
        }
        Fields::Transfer => {
            e.read(i.a);
            e.read(i.b);
            let (list, store) = (slots(i.y as usize, (i.z >> 8 & 63) as usize), i.z >> 30 & 1 != 0);
            list.iter().for_each(|&slot| if store { e.read(slot) } else { e.write(slot) });
        }
        Fields::Call => match program.calls.get(i.x as usize) {
            Some(site) => {
                e.read(i.a);
                site.arguments.iter().for_each(|home| e.home(home, false));
                site.returns.iter().for_each(|home| e.home(home, true));
            }
            None => e.all = true,
        },
        Fields::Return => match program.functions.get(i.y as usize) {
            Some(function) => {
                e.read(Slot(0));
                function.returns.iter().for_each(|home| e.home(home, false));
            }
            None => e.all = true,
        },
        Fields::PredAB => {
            e.read(i.a);
            e.read(i.b);
            e.set(i.d.0);
        }
        Fields::PredA => {
            e.read(i.a);
            e.set(i.d.0);
        }
        Fields::PredPairAB => {
            e.read(i.a);
            e.read(i.b);
            e.test(i.c.0);
            e.set(i.d.0);
            e.set(i.z);
        }
        Fields::HalfSet => {
            e.read(i.a);
            e.read(i.b);
            e.test(i.c.0);
            e.write(i.d);
        }
        Fields::ToRegister => {
            e.read(i.a);
            e.read(i.b);
            (0..7).for_each(|n| e.test(i.z + n));
            e.write(i.d);
        }
        Fields::FromRegister => {
            e.read(i.a);
            e.read(i.b);
            // They keep what they have where the mask leaves them out.
            (0..7).for_each(|n| e.test(i.z + n));
            (0..7).for_each(|n| e.set(i.z + n));
        }
        Fields::LoadBank => {
            e.read(i.a);
            (0..i.y).for_each(|word| e.write(Slot(i.d.0 + word)));
        }
        Fields::JumpApart => {
            e.read(i.a);
            e.test(i.c.0);
        }
        Fields::All => e.all = true,
    }
}
