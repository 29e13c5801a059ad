//! Registers of products of warp groups (`wgmma`), for those who look for races: who touches one
//! while a product uses it, and what a product uses without a fence (PTX ISA, "wgmma.fence",
//! "wgmma.wait_group"). Owns what instructions do to the state of a warp; products and their
//! groups are carried out elsewhere.
//!
//! What PTX says of registers is not what a source says. Compilers copy values between registers
//! for their own reasons, so a copy is no use: it makes the target hold what the source holds. They
//! also move pure instructions to where a value is used, past a fence that the source has between
//! the two. So a fence counts wherever it is behind the last product before the write. Machine code
//! has its registers more than once, and is not looked at.

use sim_races::{Kind as AccessKind, RegisterUse};

use crate::exec::bulk::thread_of;
use crate::exec::matrix::held_registers::{Copied, Held, Used, Written};
use crate::program::{Inst, LANES, Next, Slot};
use crate::warp::Warp;

/// An instruction is about to be executed.
#[inline(never)]
pub(crate) fn touch(w: &mut Warp<'_>, _: &Inst, mask: u32) -> Next {
    let rows = w.env.product_rows.as_ref();
    let touched = rows.and_then(|rows| rows.by_instruction[w.pc as usize].as_deref());
    let Some(touched) = touched else { return Next::Step };
    let Some(mut registers) = w.registers.take() else { return Next::Step };
    let (base, site, lane) = (w.rbase, w.pc, mask.trailing_zeros());
    for &Copied { source, from, into } in &touched.copies {
        let mut held = from.map_or_else(Held::default, |from| *registers.at(base + from));
        // What a product only reads is as good in another register.
        held.used = held.used.filter(|used| used.sum);
        let target = registers.at(base + into);
        // A constant for what a product may still read is a write, if it is another value.
        if let (None, Some(used)) = (from, target.used)
            && !used.sum
            && changes(w, (source, into), mask)
        {
            tell(w, used, site, lane, AccessKind::Write);
        }
        *registers.at(base + into) = held;
    }
    for &row in &touched.reads {
        if let Some(used) = registers.at(base + row).used.filter(|used| used.sum) {
            tell(w, used, site, lane, AccessKind::Read);
        }
    }
    for &row in &touched.writes {
        if let Some(used) = registers.at(base + row).used {
            tell(w, used, site, lane, AccessKind::Write);
        }
        let written = Some(Written { site, lane, fences: registers.before_last });
        *registers.at(base + row) = Held { written, used: None };
    }
    w.registers = Some(registers);
    Next::Step
}

/// Whether a copy of a constant changes a row.
fn changes(w: &Warp<'_>, (source, into): (u32, u32), mask: u32) -> bool {
    let differs = |lane: usize| w.get(Slot(source), lane) != w.get(Slot(into), lane);
    (0..LANES).filter(|lane| mask >> lane & 1 != 0).any(differs)
}

fn tell(w: &mut Warp<'_>, used: Used, site: u32, lane: u32, kind: AccessKind) {
    let thread = thread_of(w, lane as usize);
    let product = (used.site, if used.sum { AccessKind::Write } else { AccessKind::Read });
    if let Some(events) = w.env.events {
        events.uses_register(&RegisterUse { thread, product, other: (site, kind), fence: false });
    }
}

/// A product is issued, of these sums and a first factor in registers. `keep`: it reads its sums.
pub(crate) fn issue(w: &mut Warp<'_>, (sums, factor): (&[Slot], &[Slot]), keep: bool) {
    let Some(mut registers) = w.registers.take() else { return };
    let (base, site) = (w.rbase, w.pc);
    let parts = sums.iter().map(|&slot| (slot, true)).chain(factor.iter().map(|&slot| (slot, false)));
    let mut unfenced: Option<Written> = None;
    for (slot, sum) in parts {
        if slot == Slot::NONE || slot.0 & Slot::CONSTANT != 0 {
            continue;
        }
        let row = slot.0;
        let fences = registers.fences;
        let group = registers.group;
        let held = registers.at(base + row);
        let written = held.written.filter(|written| written.fences == fences && (keep || !sum));
        unfenced = unfenced.or(written);
        if sum {
            held.written = None;
        }
        held.used = Some(Used { site, group, sum });
    }
    registers.before_last = registers.fences;
    w.registers = Some(registers);
    if let Some(written) = unfenced {
        let thread = thread_of(w, written.lane as usize);
        if let Some(events) = w.env.events {
            let (product, other) = ((site, AccessKind::Read), (written.site, AccessKind::Write));
            events.uses_register(&RegisterUse { thread, product, other, fence: true });
        }
    }
}
