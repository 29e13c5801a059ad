//! Instruction families of barrier objects (`mbarrier`), of bulk and tensor copies, and of tensor
//! maps that kernels change.

use device_code::ptx::{Operand, Type};

use super::Op;
use crate::compile::function::{Result, SCRATCH, Scope};
use crate::compile::load_store::{atomic, space_of};
use crate::exec::bulk::mbarrier;
use crate::exec::load_store::{GLOBAL, SHARED};
use crate::exec::tensor::map::Field;
use crate::exec::{bulk, tensor};
use crate::operations::build;
use crate::program::Slot;

/// The types of elements, by their numbers in tensor maps.
pub(crate) const TILE_TYPES: [Type; 11] = [
    Type::U8,
    Type::U16,
    Type::U32,
    Type::S32,
    Type::U64,
    Type::S64,
    Type::F16,
    Type::F32,
    Type::F32,
    Type::F64,
    Type::Bf16,
];

impl<'m> Scope<'_, 'm> {
    /// Returns false when the instruction is of another family. (`cp` begins with the other copies,
    /// which hand bulk ones on.)
    pub(super) fn barrier_objects(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<bool> {
        match op.name() {
            "mbarrier" => self.mbarrier(op, operands)?,
            "tensormap" => self.tensor_map(op, operands)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `mbarrier`.
    fn mbarrier(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<()> {
        let one = self.c.constant(1);
        let what = op.part(1);
        match what {
            // Not told as a write: libraries count references by accesses that release nothing.
            "inval" => self.emit(build::Nothing {}),
            "pending_count" => {
                let d = self.dst(operands.first())?;
                let a = self.src(operands.get(1), Type::B64)?;
                self.emit(build::MbarrierPending { state: a, d });
            }
            "test_wait" | "try_wait" => {
                let p = self.dst_pred(operands.first())?;
                let parity = op.has("parity");
                let (address, offset, space) = self.address(operands.get(1), SHARED)?;
                let phase = self.src(operands.get(2), if parity { Type::B32 } else { Type::B64 })?;
                let space = space_for(op, space);
                let mut parity = u32::from(parity) | if op.has("relaxed") { mbarrier::TEST_RELAXED } else { 0 };
                // The scope of the block is that of waits that name none.
                parity |= if op.has("cluster") { 0 } else { mbarrier::TEST_NEAR };
                self.emit(build::MbarrierTest { address, phase, p, offset, space, parity });
            }
            "init" | "arrive" | "arrive_drop" | "expect_tx" | "complete_tx" => {
                let returns = what.starts_with("arrive") && !matches!(operands.first(), Some(Operand::Memory(..)));
                let d = if returns { self.dst(operands.first())? } else { SCRATCH };
                let rest = &operands[usize::from(returns)..];
                let (address, offset, space) = self.address(rest.first(), SHARED)?;
                let number = match rest.get(1) {
                    Some(operand) => self.src(Some(operand), Type::B32)?,
                    None => one,
                };
                let what = match what {
                    "init" => mbarrier::INIT,
                    "arrive" if op.has("expect_tx") => mbarrier::ARRIVE_EXPECT,
                    "arrive" => mbarrier::ARRIVE,
                    "arrive_drop" if op.has("expect_tx") => mbarrier::ARRIVE_DROP_EXPECT,
                    "arrive_drop" => mbarrier::ARRIVE_DROP,
                    "expect_tx" => mbarrier::EXPECT,
                    _ => mbarrier::COMPLETE,
                };
                let space = space_for(op, space);
                let what = what | if op.has("relaxed") { mbarrier::RELAXED } else { 0 };
                let what = what | if op.has("cluster") { mbarrier::FAR } else { 0 };
                self.emit(build::MbarrierOperate { address, number, d, offset, space, what });
            }
            _ => return self.unsupported(op),
        }
        Ok(())
    }

    /// `cp.async.bulk` without tensors, and `cp.async.mbarrier.arrive`.
    pub(super) fn bulk(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<()> {
        if op.has("mbarrier") {
            // What was copied is there already: with its own arrival counted in, nothing changes.
            let (address, offset, space) = self.address(operands.first(), SHARED)?;
            let number = self.c.constant(u64::from(op.has("noinc")));
            let space = space_for(op, space);
            let what = mbarrier::COPIES_ARRIVE;
            self.emit(build::MbarrierOperate { address, number, d: SCRATCH, offset, space, what });
            return Ok(());
        }
        if op.has("prefetch") {
            self.emit(build::Nothing {});
            return Ok(());
        }
        if op.has("commit_group") {
            self.emit(build::CommitBulk {});
            return Ok(());
        }
        if op.has("wait_group") {
            let Some(&Operand::Int(groups)) = operands.first() else { return self.misfit() };
            self.emit(build::AwaitBulk { pending: groups as u32, read: u32::from(op.has("read")) });
            return Ok(());
        }
        if op.has("tensor") {
            return self.tile(op, operands);
        }
        if op.part(1) == "reduce" {
            return self.bulk_reduce(op, operands);
        }
        // Both ways in report to a barrier; the way out is waited for by groups.
        let way = match (op.part(3), op.part(4)) {
            ("shared" | "shared::cta" | "shared::cluster", "global") => bulk::INWARD,
            ("shared::cluster", "shared" | "shared::cta") => bulk::ACROSS,
            ("global", "shared" | "shared::cta") => bulk::OUTWARD,
            _ => return self.unsupported(op),
        };
        let to = self.whole_address(operands.first())?;
        let from = self.whole_address(operands.get(1))?;
        let size = self.src(operands.get(2), Type::B32)?;
        let barrier = if way == bulk::OUTWARD { None } else { Some(self.whole_address(operands.get(3))?) };
        let blocks = match op.has("multicast::cluster") {
            true => self.src(operands.get(4), Type::B16)?,
            false => Slot::NONE,
        };
        self.emit(build::BulkCopy { to, from, size, blocks, barrier, direction: way });
        Ok(())
    }

    /// An address with its offset in one row.
    fn whole_address(&mut self, operand: Option<&'m Operand>) -> Result<Slot> {
        let (slot, offset, _) = self.address(operand, SHARED)?;
        if offset == 0 {
            return Ok(slot);
        }
        let constant = self.c.constant(offset);
        let sum = self.temporary();
        self.emit(crate::exec::per_lane::op2(|a: u64, b: u64| a.wrapping_add(b)).of([slot, constant]).to(sum));
        Ok(sum)
    }

    /// `cp.async.bulk.tensor` and `cp.reduce.async.bulk.tensor`.
    fn tile(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<()> {
        let other_mode = |part: &String| part.starts_with("im2col::") || part.starts_with("tile::");
        if op.parts.iter().any(other_mode) || op.has("cta_group::2") {
            return self.unsupported(op);
        }
        let Some(at) = op.parts.iter().position(|part| part == "tensor") else { return self.unsupported(op) };
        let is_shared = |part: &str| matches!(part, "shared" | "shared::cta" | "shared::cluster");
        let (to, from) = (op.part(at + 2), op.part(at + 3));
        let reduces = op.part(1) == "reduce";
        let (what, map, shared) = match (is_shared(to), is_shared(from)) {
            (true, false) if op.has("multicast::cluster") && !reduces => {
                (tensor::LOAD_TO_BLOCKS, operands.get(1), operands.first())
            }
            (true, false) if !reduces => (tensor::LOAD, operands.get(1), operands.first()),
            (false, true) if reduces => (tensor::REDUCE, operands.first(), operands.get(1)),
            (false, true) => (tensor::STORE, operands.first(), operands.get(1)),
            _ => return self.unsupported(op),
        };
        let Some(Operand::MemoryList(list)) = map else { return self.misfit() };
        let mut coordinates = Vec::new();
        for part in &list.2 {
            for element in self.elements(Some(part)) {
                coordinates.push(self.src(Some(element), Type::S32)?);
            }
        }
        if op.part(at + 1) != format!("{}d", coordinates.len()) {
            return self.misfit();
        }
        // Loads of images say how far from each pixel they read along the axes between channels and
        // images.
        let (is_offset, image) = (op.has("im2col"), op.parts.iter().any(|part| part.starts_with("im2col")));
        let mut offsets = Vec::new();
        if is_offset {
            for element in self.elements(operands.get(3)) {
                offsets.push(self.src(Some(element), Type::B16)?);
            }
            if offsets.len() + 2 != coordinates.len() {
                return self.misfit();
            }
        }
        offsets.resize(3, self.c.constant(0));
        // A map says itself how many axes it has: one with more is not read past the list.
        coordinates.resize(5, self.c.constant(0));
        let (map, shared) = (self.whole_address(map)?, self.whole_address(shared)?);
        // The blocks stand behind the coordinates, then the offsets.
        coordinates.push(match what {
            tensor::LOAD_TO_BLOCKS => self.src(operands.get(3 + usize::from(is_offset)), Type::B16)?,
            _ => self.c.constant(0),
        });
        coordinates.extend(offsets);
        let loads = matches!(what, tensor::LOAD | tensor::LOAD_TO_BLOCKS);
        let barrier = if loads { self.whole_address(operands.get(2))? } else { Slot::NONE };
        let mut reduction = 0;
        if reduces {
            // The type of the elements is the map's: an operation for each.
            reduction = self.c.program.reductions.len() as u32;
            self.c.program.reductions.extend(TILE_TYPES.map(|ty| atomic(op, ty)));
        }
        let (element, operand) = (self.temporary(), self.temporary());
        let image = u32::from(image);
        self.emit(build::TensorTile { map, shared, barrier, coordinates, element, operand, what, image, reduction });
        Ok(())
    }

    /// `tensormap.replace` and `tensormap.cp_fenceproxy`.
    fn tensor_map(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<()> {
        if op.part(1) == "cp_fenceproxy" {
            let (to, from) = (self.whole_address(operands.first())?, self.whole_address(operands.get(1))?);
            self.emit(build::TensorMapCopy { to, from });
            return Ok(());
        }
        let field = Field::by_name(op.part(3)).filter(|_| op.part(1) == "replace" && op.part(2) == "tile");
        let Some((kind, field)) = field else { return self.unsupported(op) };
        let (address, offset, space) = self.address(operands.first(), SHARED)?;
        let space = space_for(op, space);
        let axis = match (kind.has_axis(), operands.get(1)) {
            (true, Some(&Operand::Int(axis @ 0..5))) => axis as u32,
            (false, _) => 0,
            _ => return self.misfit(),
        };
        let ty = if op.has("b64") { Type::B64 } else { Type::B32 };
        let value = self.src(operands.get(1 + usize::from(kind.has_axis())), ty)?;
        self.emit(build::TensorMapReplace { address, value, offset, space, field, axis });
        Ok(())
    }

    /// `cp.reduce.async.bulk`: to global memory in groups, to shared memory with a barrier.
    fn bulk_reduce(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<()> {
        let space = match (op.part(4), op.part(5)) {
            ("global", "shared::cta" | "shared") => GLOBAL,
            ("shared::cluster", "shared::cta" | "shared") => SHARED,
            _ => return self.unsupported(op),
        };
        let Some(ty) = op.ty() else { return self.unsupported(op) };
        let Some(update) = atomic(op, ty) else { return self.unsupported(op) };
        let (to, from) = (self.whole_address(operands.first())?, self.whole_address(operands.get(1))?);
        let size = self.src(operands.get(2), Type::B32)?;
        let barrier = if space == SHARED { self.whole_address(operands.get(3))? } else { Slot::NONE };
        let (element, operand) = (self.temporary(), self.temporary());
        let reduction = self.c.program.reductions.len() as u32;
        self.c.program.reductions.push(Some(update));
        let bytes = ty.size();
        self.emit(build::BulkReduce { to, from, size, barrier, element, operand, reduction, space, bytes });
        Ok(())
    }
}

/// An address without a space in the opcode is a generic one.
fn space_for(op: Op<'_>, found: u32) -> u32 {
    if space_of(op) == SHARED { found } else { space_of(op) }
}
