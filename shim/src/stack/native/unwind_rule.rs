//! How to get from one frame to its caller's, in one word; and how that word is made out of
//! `.eh_frame`.
//!
//! Owns the encoding of a rule and the reading of unwind information. Does not find that
//! information (see [`super::modules`]) and does not follow rules.
//!
//! Layout of the word: kind (bits 0..4), saved frame pointer (4..6), own (6), interpreter (7),
//! offset of the saved frame pointer (8..24, signed), offset of the CFA (32..64, signed). An
//! unknown rule keeps a fingerprint of the loaded modules in 8..64.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, Operation, ParsedEhFrameHdr, Register,
    RegisterRule, UnwindContext, UnwindContextStorage, UnwindExpression, UnwindSection, UnwindTableRow,
};

use crate::arch;

type Bytes = EndianSlice<'static, LittleEndian>;

/// What the canonical frame address is computed from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CfaBase {
    /// `rsp + offset`
    Sp,
    /// `rbp + offset`
    Fp,
    /// The word at `rbp + offset`: functions that realign their stack.
    FpDeref,
    /// None of these: see [`UnwindRule::is_end`], [`UnwindRule::is_signal`],
    /// [`UnwindRule::is_unknown`].
    Other,
}

/// Where the caller's `rbp` is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SavedFp {
    /// Still in the register.
    Same,
    /// In memory, `offset` from the CFA.
    AtCfa,
    /// In memory, `offset` from `rbp`.
    AtFp,
}

/// One rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnwindRule(u64);

const SP: u64 = 1;
const FP: u64 = 2;
const FP_DEREF: u64 = 3;
const END: u64 = 4;
const SIGNAL: u64 = 5;
const NO_INFO: u64 = 6;
const UNKNOWN: u64 = 7;
const LEAF: u64 = 8;
const OWN: u64 = 1 << 6;
const INTERPRETER: u64 = 1 << 7;

impl UnwindRule {
    /// The outermost frame.
    pub const END: Self = Self(END);
    /// The frame that the kernel built for a signal.
    pub const SIGNAL: Self = Self(SIGNAL);
    /// A known module, but no usable unwind information.
    pub const NO_INFO: Self = Self(NO_INFO);

    /// In no known module. `fingerprint` is that of the modules at this time.
    pub fn unknown(fingerprint: u64) -> Self {
        Self(UNKNOWN | fingerprint << 8)
    }

    fn frame(kind: u64, cfa: i64, fp: SavedFp, fp_offset: i64) -> Option<Self> {
        let cfa = i32::try_from(cfa).ok()? as u32;
        let fp_offset = i16::try_from(fp_offset).ok()? as u16;
        Some(Self(kind | (fp as u64) << 4 | u64::from(fp_offset) << 8 | u64::from(cfa) << 32))
    }

    /// Marks a rule of this library.
    pub fn own(self) -> Self {
        Self(self.0 | OWN)
    }

    /// Marks a rule of Python's interpreter.
    pub fn interpreter(self) -> Self {
        Self(self.0 | INTERPRETER)
    }

    /// Whether the code belongs to Python's interpreter.
    #[inline]
    pub fn is_interpreter(self) -> bool {
        self.0 & INTERPRETER != 0 && !self.is_unknown()
    }

    /// The word.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// From the word.
    #[inline]
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// In 32 bits, never 0: kind, saved frame pointer and own (bits 0..8), offsets in words (8..16
    /// and 16..32). `None` when it does not fit.
    pub fn short(self) -> Option<u32> {
        let (cfa, fp) = (self.cfa_offset(), self.fp_offset());
        if self.is_unknown() || cfa % 8 != 0 || fp % 8 != 0 {
            return None;
        }
        let (cfa, fp) = (i16::try_from(cfa / 8).ok()?, i8::try_from(fp / 8).ok()?);
        Some((self.0 & 0xff) as u32 | u32::from(fp as u8) << 8 | u32::from(cfa as u16) << 16)
    }

    /// From 32 bits.
    #[inline]
    pub fn from_short(short: u32) -> Self {
        let cfa = (i32::from((short >> 16) as i16) * 8) as u32;
        let fp = (i16::from((short >> 8) as i8) * 8) as u16;
        Self(u64::from(short & 0xff) | u64::from(fp) << 8 | u64::from(cfa) << 32)
    }

    /// What the CFA is computed from.
    #[inline]
    pub fn base(self) -> CfaBase {
        match self.0 & 15 {
            SP => CfaBase::Sp,
            FP => CfaBase::Fp,
            FP_DEREF => CfaBase::FpDeref,
            _ => CfaBase::Other,
        }
    }

    /// Offset that goes with [`UnwindRule::base`].
    #[inline]
    pub fn cfa_offset(self) -> i64 {
        i64::from((self.0 >> 32) as i32)
    }

    /// Where the caller's frame pointer is.
    #[inline]
    pub fn saved_fp(self) -> SavedFp {
        match self.0 >> 4 & 3 {
            0 => SavedFp::Same,
            1 => SavedFp::AtCfa,
            _ => SavedFp::AtFp,
        }
    }

    /// Offset that goes with [`UnwindRule::saved_fp`].
    #[inline]
    pub fn fp_offset(self) -> i64 {
        i64::from((self.0 >> 8) as i16)
    }

    /// Whether the code belongs to this library.
    #[inline]
    pub fn is_own(self) -> bool {
        self.0 & 15 != UNKNOWN && self.0 & OWN != 0
    }

    /// Whether this is the outermost frame.
    pub fn is_end(self) -> bool {
        self.0 & 15 == END
    }

    /// Whether the kernel built this frame for a signal.
    pub fn is_signal(self) -> bool {
        self.0 & 15 == SIGNAL
    }

    /// Whether the return address is still in its register.
    pub fn is_leaf(self) -> bool {
        self.0 & 15 == LEAF
    }

    /// Whether the address is in no known module.
    #[inline]
    pub fn is_unknown(self) -> bool {
        self.0 & 15 == UNKNOWN
    }

    /// The fingerprint given to [`UnwindRule::unknown`], as many bits of it as fit.
    pub fn fingerprint(self) -> u64 {
        self.0 >> 8
    }
}

/// Storage for gimli's interpreter: on the stack, 2 KiB.
struct OnStack;

impl UnwindContextStorage<usize> for OnStack {
    type Rules = [(Register, RegisterRule<usize>); arch::MOST_RULES];
    type Stack = [UnwindTableRow<usize, Self>; 3];
}

/// Works out the rule for `pc`. `header` is the module's `.eh_frame_hdr` at `header_at`;
/// `segment_end` gives the end of the loaded, readable segment that holds an address.
pub(crate) fn compile(
    pc: u64,
    header: &'static [u8],
    header_at: u64,
    segment_end: impl Fn(u64) -> Option<u64>,
) -> UnwindRule {
    let bases = BaseAddresses::default().set_eh_frame_hdr(header_at);
    let Ok(hdr) = EhFrameHdr::new(header, LittleEndian).parse(&bases, 8) else { return UnwindRule::NO_INFO };
    // An indirect pointer is never used for this field.
    let Ok(section_at) = hdr.eh_frame_ptr().direct() else { return UnwindRule::NO_INFO };
    let Some(end) = segment_end(section_at) else { return UnwindRule::NO_INFO };
    // SAFETY: `segment_end` says that the bytes up to `end` are loaded with the module; the module
    // stays while one of its functions is being called, and the caller holds the loader's list
    // lock.
    let section = unsafe { core::slice::from_raw_parts(section_at as *const u8, (end - section_at) as usize) };
    let mut section = EhFrame::new(section, LittleEndian);
    section.set_vendor(arch::VENDOR);
    let bases = bases.set_eh_frame(section_at);
    from_section(pc, &hdr, &section, &bases).unwrap_or(UnwindRule::NO_INFO)
}

#[inline(never)]
fn from_section(
    pc: u64,
    hdr: &ParsedEhFrameHdr<Bytes>,
    section: &EhFrame<Bytes>,
    bases: &BaseAddresses,
) -> Option<UnwindRule> {
    let fde = match hdr.table() {
        Some(table) => table.fde_for_address(section, bases, pc, EhFrame::cie_from_offset).ok()?,
        None => section.fde_for_address(bases, pc, EhFrame::cie_from_offset).ok()?,
    };
    if fde.is_signal_trampoline() {
        return Some(UnwindRule::SIGNAL);
    }
    let mut context = UnwindContext::<usize, OnStack>::new_in();
    let row = fde.unwind_info_for_address(section, bases, &mut context, pc).ok()?;
    let encoding = fde.cie().encoding();
    if fde.cie().return_address_register() != arch::RA {
        return None;
    }
    let ra = match row.register(arch::RA) {
        Some(RegisterRule::Offset(offset)) => Some(offset),
        Some(RegisterRule::Undefined) => return Some(UnwindRule::END),
        None | Some(RegisterRule::SameValue) if arch::HAS_LINK => None,
        _ => return None,
    };
    let (fp, fp_offset) = match row.register(arch::FP) {
        None | Some(RegisterRule::SameValue) => (SavedFp::Same, 0),
        Some(RegisterRule::Offset(offset)) => (SavedFp::AtCfa, offset),
        Some(RegisterRule::Expression(expression)) => match simple(&expression, section, encoding)? {
            (arch::FP, offset, false) => (SavedFp::AtFp, offset),
            _ => return None,
        },
        // Lost: nothing that follows can depend on it, or it is wrong and the reads are bounded.
        Some(RegisterRule::Undefined) => (SavedFp::Same, 0),
        _ => return None,
    };
    let (kind, cfa) = match row.cfa() {
        CfaRule::RegisterAndOffset { register: arch::SP, offset } => (SP, *offset),
        CfaRule::RegisterAndOffset { register: arch::FP, offset } => (FP, *offset),
        CfaRule::RegisterAndOffset { .. } => return None,
        CfaRule::Expression(expression) => match simple(expression, section, encoding)? {
            (arch::SP, offset, false) => (SP, offset),
            (arch::FP, offset, false) => (FP, offset),
            (arch::FP, offset, true) => (FP_DEREF, offset),
            _ => return None,
        },
    };
    match ra {
        None if kind == SP && fp == SavedFp::Same => UnwindRule::frame(LEAF, cfa, fp, 0),
        None => None,
        // What follows of a word is where both are: the return address lies where the rule's reader
        // looks for it, or the rule cannot be said.
        Some(ra) if arch::HAS_LINK && fp == SavedFp::Same => UnwindRule::frame(kind, cfa, fp, ra - 8),
        Some(ra) if arch::HAS_LINK => {
            (fp == SavedFp::AtCfa && ra == fp_offset + 8).then(|| UnwindRule::frame(kind, cfa, fp, fp_offset))?
        }
        Some(-8) => UnwindRule::frame(kind, cfa, fp, fp_offset),
        Some(_) => None,
    }
}

/// An expression of the form `register + offset`, perhaps dereferenced: (register, offset,
/// dereferenced).
fn simple(
    expression: &UnwindExpression<usize>,
    section: &EhFrame<Bytes>,
    encoding: gimli::Encoding,
) -> Option<(Register, i64, bool)> {
    let mut operations = expression.get(section).ok()?.operations(encoding);
    let Operation::RegisterOffset { register, offset, .. } = operations.next().ok()?? else { return None };
    match operations.next().ok()? {
        None => Some((register, offset, false)),
        Some(Operation::Deref { size: 8, space: false, .. }) if operations.next().ok()?.is_none() => {
            Some((register, offset, true))
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_keeps_its_fields() {
        for (kind, base) in [(SP, CfaBase::Sp), (FP, CfaBase::Fp), (FP_DEREF, CfaBase::FpDeref)] {
            for cfa in [8, 16, -8, 1 << 20, i64::from(i32::MAX), i64::from(i32::MIN)] {
                for (fp, at) in
                    [(SavedFp::Same, 0), (SavedFp::AtCfa, -16), (SavedFp::AtFp, 24), (SavedFp::AtCfa, -32768)]
                {
                    let rule = UnwindRule::frame(kind, cfa, fp, at).expect("fits");
                    assert_eq!(
                        (rule.base(), rule.cfa_offset(), rule.saved_fp(), rule.fp_offset()),
                        (base, cfa, fp, at)
                    );
                    assert!(!rule.is_own() && rule.own().is_own());
                    assert_eq!(rule.own().cfa_offset(), cfa);
                    assert!(!rule.is_unknown() && !rule.is_end() && !rule.is_signal());
                    let fits = (-(1 << 18)..1 << 18).contains(&cfa) && cfa % 8 == 0 && (-1024..1024).contains(&at);
                    assert_eq!(rule.short().map(UnwindRule::from_short), fits.then_some(rule));
                    assert_eq!(rule.own().short().map(UnwindRule::from_short), fits.then_some(rule.own()));
                }
            }
        }
        assert_eq!(UnwindRule::frame(SP, 1 << 40, SavedFp::Same, 0), None);
        assert_eq!(UnwindRule::frame(SP, 8, SavedFp::AtCfa, 1 << 20), None);
        let unknown = UnwindRule::unknown(0x00ff_ffff_ffff_ffff);
        assert!(unknown.is_unknown() && !unknown.is_own());
        assert_eq!(unknown.fingerprint(), 0x00ff_ffff_ffff_ffff);
        assert_eq!(unknown.base(), CfaBase::Other);
        assert_eq!(unknown.short(), None);
        for rule in [UnwindRule::END, UnwindRule::SIGNAL, UnwindRule::NO_INFO, UnwindRule::NO_INFO.own()] {
            assert_eq!(rule.short().map(UnwindRule::from_short), Some(rule));
        }
    }

    #[test]
    fn damaged_unwind_information_is_no_information() {
        static HEADER: [u8; 12] = [1, 0x1b, 0x03, 0x3b, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0];
        for len in 0..HEADER.len() {
            assert_eq!(compile(5, &HEADER[..len], HEADER.as_ptr() as u64, |_| None), UnwindRule::NO_INFO);
        }
        static NOISE: [u8; 64] = [0xa5; 64];
        let at = NOISE.as_ptr() as u64;
        assert_eq!(compile(5, &NOISE, at, |_| Some(at + 64)), UnwindRule::NO_INFO);
    }
}
