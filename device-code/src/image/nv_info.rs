//! `.nv.info` records: facts that the compiler notes about a kernel.
//!
//! Owns their format: u8 format, u8 attribute, then nothing (format 1), a byte (2), a u16 (3), or a
//! u16 length and as many bytes (4).

use super::cubin::{BranchTargets, ParamInfo};

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record<'d> {
    pub(crate) attribute: u8,
    pub(crate) value: u16,
    pub(crate) data: &'d [u8],
}

/// Attribute numbers.
pub(super) mod attr {
    pub(crate) const MAX_THREADS: u8 = 0x05;
    pub(crate) const PARAM_CBANK: u8 = 0x0a;
    pub(crate) const EXTERNS: u8 = 0x0f;
    pub(crate) const REQNTID: u8 = 0x10;
    pub(crate) const FRAME_SIZE: u8 = 0x11;
    pub(crate) const MIN_STACK_SIZE: u8 = 0x12;
    pub(crate) const KPARAM_INFO: u8 = 0x17;
    pub(crate) const CBANK_PARAM_SIZE: u8 = 0x19;
    pub(crate) const EXIT_INSTR_OFFSETS: u8 = 0x1c;
    pub(crate) const COOP_GROUP_INSTR_OFFSETS: u8 = 0x28;
    pub(crate) const REGCOUNT: u8 = 0x2f;
    pub(crate) const INDIRECT_BRANCH_TARGETS: u8 = 0x34;
    pub(crate) const CTA_PER_CLUSTER: u8 = 0x3d;
    pub(crate) const EXPLICIT_CLUSTER: u8 = 0x3e;
    pub(crate) const KPARAM_INFO_V2: u8 = 0x45;
    pub(crate) const SYSCALL_OFFSETS: u8 = 0x46;
}

/// The records of a section, up to the first damaged one (`Err` holds its offset).
pub(super) fn records(section: &[u8]) -> Result<Vec<Record<'_>>, usize> {
    let mut list = Vec::new();
    let mut at = 0;
    while at + 4 <= section.len() {
        let (format, attribute) = (section[at], section[at + 1]);
        let value = u16::from_le_bytes([section[at + 2], section[at + 3]]);
        let data: &[u8] = match format {
            1..=3 => &[],
            4 => section.get(at + 4..at + 4 + usize::from(value)).ok_or(at)?,
            _ => return Err(at),
        };
        // The payload is a multiple of four bytes in all files seen; the next record follows it
        // directly.
        list.push(Record { attribute, value, data });
        at += 4 + data.len();
    }
    Ok(list)
}

impl Record<'_> {
    /// The `n`th little-endian word of the data.
    pub(crate) fn word(&self, n: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.data.get(n * 4..n * 4 + 4)?.try_into().ok()?))
    }

    /// All words of the data.
    pub(crate) fn words(&self) -> impl Iterator<Item = u32> + '_ {
        self.data.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]))
    }

    /// A parameter: u32 index, u16 ordinal, u16 offset, then size and attributes packed in one of
    /// two ways.
    pub(crate) fn param(&self) -> Option<ParamInfo> {
        let second = self.word(1)?;
        let third = self.word(2)?;
        let (size, space) = match self.attribute {
            // size 18..32, constant bank 12..17, space 8..12, log2 of the alignment 0..8.
            attr::KPARAM_INFO => (third >> 18 & 0x3fff, third >> 8 & 0xf),
            // u16 size, u8 unknown, u8 space: for parameters that do not fit into the older record.
            attr::KPARAM_INFO_V2 => (third & 0xffff, third >> 24 & 0xf),
            _ => return None,
        };
        Some(ParamInfo {
            ordinal: second as u16,
            offset: second >> 16,
            size,
            // 5 marks pointers on sm_100 and later; older compilers leave 0.
            marked_pointer: space == 5,
        })
    }

    /// Indirect branches: (u32 address, u16, u16, u32 count, count addresses) repeated.
    pub(crate) fn branch_targets(&self) -> Vec<BranchTargets> {
        let mut words = self.words();
        let mut list = Vec::new();
        while let (Some(pc), Some(_), Some(count)) = (words.next(), words.next(), words.next()) {
            // `take` ends with the data, so a huge count allocates nothing.
            list.push(BranchTargets { pc, targets: words.by_ref().take(count as usize).collect() });
        }
        list
    }
}
