//! Where the fields of CPython's structures are, for each version.
//!
//! Owns the tables, and the checks of what an interpreter says of itself. Does not read frames.
//!
//! Offsets for 3.8 to 3.12 are facts of the ABI on 64-bit Linux
//! (`Include/cpython/code.h`, `Include/internal/pycore_frame.h`, `Include/cpython/pystate.h`,
//! `Include/cpython/frameobject.h` of each version); they never changed within one minor version.
//! From 3.13 on the interpreter carries them itself, as `_Py_DebugOffsets` at the start of
//! `_PyRuntime` (`Include/internal/pycore_debug_offsets.h`).

/// Largest offset believed.
pub(super) const MAX_OFFSET: u64 = 2048;
/// `ob_size` of a bytes object, in all versions.
pub(super) const BYTES_SIZE: u64 = 16;
/// First byte of a bytes object, in all versions.
pub(super) const BYTES_DATA: u64 = 32;

/// How line tables are encoded; the numbers are those of `trace::LineTable`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Encoding {
    /// `co_lnotab` of Python 3.8 and 3.9.
    Lnotab = 0,
    /// `co_linetable` of Python 3.10.
    V310 = 1,
    /// `co_linetable` of Python 3.11 and later.
    V311 = 2,
}

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        /// Why the frames of an interpreter are not read.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
        #[repr(u32)]
        pub enum Refusal { $($(#[$doc])* #[error($text)] $name = $code,)* }

        impl Refusal {
            /// From the number; `None` for 0.
            pub(super) fn from_code(code: u32) -> Option<Self> {
                match code { $($code => Some(Self::$name),)* _ => None }
            }
        }
    };
}

refusals! {
    /// Not CPython, or not a version like `3.11.2`.
    BadVersion = 1, "the version of Python is not understood";
    /// Older than 3.8 or newer than 3.14.
    UnknownVersion = 2, "only Python 3.8 to 3.14 is supported";
    /// A needed symbol is not exported.
    MissingSymbol = 3, "the Python interpreter does not export its symbols";
    /// Built without the GIL.
    FreeThreaded = 4, "free-threaded builds of Python are not supported";
    /// `_Py_DebugOffsets` is not what it should be.
    BadOffsets = 5, "the Python interpreter describes itself in an unknown way";
    /// A pointer led nowhere.
    BadPointer = 6, "Python frames were not where they should be";
    /// Something was no frame.
    BadFrame = 7, "Python frames did not look as they should";
}

/// Byte offsets of fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Offsets {
    /// Frame: the calling frame.
    pub previous: u64,
    /// Frame: its code object.
    pub code: u64,
    /// Frame: last instruction (a pointer, or an index).
    pub instruction: u64,
    /// Frame: who owns it (3.12 on).
    pub owner: u64,
    /// Frame: outermost of its run of the loop (3.11).
    pub entry: u64,
    /// Object: its type.
    pub object_type: u64,
    /// Code: file name.
    pub file: u64,
    /// Code: qualified name, or name.
    pub name: u64,
    /// Code: first line.
    pub first_line: u64,
    /// Code: line table.
    pub lines: u64,
    /// Code: instructions (3.11 on).
    pub instructions: u64,
}

/// How to get from a thread state to its innermost frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FrameChain {
    /// A field.
    Direct {
        /// Its offset.
        current: u64,
    },
    /// A field of what another field points to.
    ThroughCFrame {
        /// Offset in the thread state.
        cframe: u64,
        /// Offset in the C frame.
        current: u64,
    },
}

/// What the last instruction is given as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Instruction {
    /// A 32-bit index in units of so many bytes.
    Index(i64),
    /// A pointer into the code object.
    Pointer,
}

/// How runs of the interpreter's loop are distinguished.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Runs {
    /// Every frame is a run of its own.
    EveryFrame,
    /// A flag in the frame.
    Flag,
    /// A frame of the interpreter's own, with an owner of at least this number.
    Owner(u8),
}

/// Text of a unicode object: where data begins, for ASCII and for other text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TextLayout {
    /// Pure ASCII.
    pub ascii: u64,
    /// Anything else.
    pub other: u64,
}

/// Everything that depends on the version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CPythonLayout {
    /// Fields.
    pub offsets: Offsets,
    /// First frame.
    pub chain: FrameChain,
    /// Line tables.
    pub encoding: Encoding,
    /// Text.
    pub text: TextLayout,
    instruction: Instruction,
    runs: Runs,
}

impl CPythonLayout {
    /// The layout of a version. `runtime` is the address of `_PyRuntime`.
    ///
    /// # Safety
    /// From 3.13 on, `runtime` is the address of that variable.
    pub(super) unsafe fn of(major: u32, minor: u32, runtime: u64) -> Result<Self, Refusal> {
        match (major, minor) {
            (3, 8 | 9) => Ok(Self::with_frame_objects(104, 1, Encoding::Lnotab)),
            (3, 10) => Ok(Self::with_frame_objects(96, 2, Encoding::V310)),
            (3, 11) => Ok(V311),
            (3, 12) => Ok(V312),
            // SAFETY: the caller's promise; the structure begins with a cookie, version and flags.
            (3, 13 | 14) => unsafe { Self::self_described(minor, runtime) },
            _ => Err(Refusal::UnknownVersion),
        }
    }

    /// 3.8 to 3.10: every frame is an object.
    fn with_frame_objects(instruction: u64, unit: i64, encoding: Encoding) -> Self {
        Self {
            offsets: Offsets {
                previous: 24,
                code: 32,
                instruction,
                owner: 0,
                entry: 0,
                object_type: 8,
                file: 104,
                name: 112,
                first_line: 40,
                lines: 120,
                instructions: 0,
            },
            chain: FrameChain::Direct { current: 24 },
            encoding,
            text: TextLayout { ascii: 48, other: 72 },
            instruction: Instruction::Index(unit),
            runs: Runs::EveryFrame,
        }
    }

    /// 3.13 and 3.14: the interpreter says where its fields are.
    ///
    /// # Safety
    /// As for [`CPythonLayout::of`].
    unsafe fn self_described(minor: u32, runtime: u64) -> Result<Self, Refusal> {
        // SAFETY: the caller's promise. Both versions have more than 640 bytes there.
        let word = |offset: u64| unsafe { ((runtime + offset) as *const u64).read() };
        if word(0) != u64::from_le_bytes(*b"xdebugpy") || word(8) >> 16 != u64::from(3 << 8 | minor) {
            return Err(Refusal::BadOffsets);
        }
        if word(16) != 0 {
            return Err(Refusal::FreeThreaded);
        }
        // Where the offsets themselves are: 3.14 has three more fields before the frame's and three
        // after.
        let (current, frame, code, object, bytes, text) =
            if minor == 13 { (184, 232, 280, 360, 520, 544) } else { (208, 256, 320, 408, 600, 624) };
        let mut all_sane = true;
        let mut offset = |at: u64| {
            let offset = word(at);
            all_sane &= offset <= MAX_OFFSET;
            offset
        };
        let offsets = Offsets {
            previous: offset(frame),
            code: offset(frame + 8),
            instruction: offset(frame + 16),
            owner: offset(frame + 32),
            entry: 0,
            object_type: offset(object),
            file: offset(code),
            name: offset(code + 16),
            lines: offset(code + 24),
            first_line: offset(code + 32),
            instructions: offset(code + 64),
        };
        let chain = FrameChain::Direct { current: offset(current) };
        // Text and bytes are read by fixed offsets: they must agree.
        let fixed = [(bytes, BYTES_SIZE), (bytes + 8, BYTES_DATA), (text, 32), (text + 8, 16), (text + 16, 40)];
        let agrees = fixed.iter().all(|(at, expected)| word(*at) == *expected);
        if !all_sane || !agrees || offsets.object_type != 8 || offsets.code == offsets.previous {
            return Err(Refusal::BadOffsets);
        }
        Ok(Self { offsets, chain, ..V312 })
    }

    /// Whether a frame is the interpreter's own rather than a program's. `owner` reads the frame's
    /// owner.
    #[inline(always)]
    pub(super) fn is_own_frame(&self, owner: impl FnOnce() -> Option<u8>) -> Option<bool> {
        match self.runs {
            Runs::Owner(first) => Some(owner()? >= first),
            _ => Some(false),
        }
    }

    /// Whether a program's frame is marked as outermost of its run. `flag` reads the mark.
    #[inline(always)]
    pub(super) fn is_entry(&self, flag: impl FnOnce() -> Option<u8>) -> Option<bool> {
        match self.runs {
            Runs::EveryFrame => Some(true),
            Runs::Flag => Some(flag()? != 0),
            Runs::Owner(_) => Some(false),
        }
    }

    /// Byte offset of the last instruction. -1 or -2 before the first one.
    #[inline(always)]
    pub(super) fn instruction_offset(&self, code: u64, value: u64) -> i64 {
        match self.instruction {
            Instruction::Index(unit) => i64::from(value as u32 as i32) * unit,
            Instruction::Pointer => value.wrapping_sub(code + self.offsets.instructions) as i64,
        }
    }
}

const V311: CPythonLayout = CPythonLayout {
    offsets: Offsets {
        previous: 48,
        code: 32,
        instruction: 56,
        owner: 69,
        entry: 68,
        object_type: 8,
        file: 112,
        name: 128,
        first_line: 72,
        lines: 136,
        instructions: 184,
    },
    chain: FrameChain::ThroughCFrame { cframe: 56, current: 8 },
    encoding: Encoding::V311,
    text: TextLayout { ascii: 48, other: 72 },
    instruction: Instruction::Pointer,
    runs: Runs::Flag,
};

const V312: CPythonLayout = CPythonLayout {
    offsets: Offsets {
        previous: 8,
        code: 0,
        instruction: 56,
        owner: 70,
        entry: 0,
        object_type: 8,
        file: 112,
        name: 128,
        first_line: 68,
        lines: 136,
        instructions: 192,
    },
    chain: FrameChain::ThroughCFrame { cframe: 56, current: 0 },
    encoding: Encoding::V311,
    text: TextLayout { ascii: 40, other: 56 },
    instruction: Instruction::Pointer,
    runs: Runs::Owner(3),
};

/// `(3, 11)` out of `3.11.7 (main, ...)`.
pub(super) fn parse_version(text: &[u8]) -> Result<(u32, u32), Refusal> {
    let text = core::str::from_utf8(text).map_err(|_| Refusal::BadVersion)?;
    let mut parts = text.split(['.', ' ', '+', 'a', 'b', 'r']);
    let mut number = || parts.next().and_then(|part| part.parse().ok()).ok_or(Refusal::BadVersion);
    Ok((number()?, number()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        assert_eq!(parse_version(b"3.11.7 (main, May  9 2026, 07:35:25) [GCC 12.2.0]"), Ok((3, 11)));
        assert_eq!(parse_version(b"3.9.2 (default"), Ok((3, 9)));
        assert_eq!(parse_version(b"3.14.0rc1+ (heads"), Ok((3, 14)));
        assert_eq!(parse_version(b"3.14+"), Ok((3, 14)));
        for bad in [&b""[..], b"3", b"three.eleven", b"\xff.1", b"3."] {
            assert_eq!(parse_version(bad), Err(Refusal::BadVersion));
        }
    }

    #[test]
    fn unknown_versions_are_refused() {
        for (major, minor) in [(2, 7), (3, 7), (3, 15), (4, 0)] {
            // SAFETY: these versions read nothing.
            assert_eq!(unsafe { CPythonLayout::of(major, minor, 0) }, Err(Refusal::UnknownVersion));
        }
    }

    #[test]
    fn damaged_self_description_is_refused() {
        let mut words = [0_u64; 128];
        // SAFETY: 1 KiB of words.
        let of = |words: &[u64; 128], minor| unsafe { CPythonLayout::of(3, minor, words.as_ptr() as u64) };
        assert_eq!(of(&words, 13), Err(Refusal::BadOffsets));
        words[0] = u64::from_le_bytes(*b"xdebugpy");
        words[1] = 0x030d_05f0;
        assert_eq!(of(&words, 14), Err(Refusal::BadOffsets), "another version");
        assert_eq!(of(&words, 13), Err(Refusal::BadOffsets), "all offsets zero");
        words[2] = 1;
        assert_eq!(of(&words, 13), Err(Refusal::FreeThreaded));
        words[2] = 0;
        for (at, value) in [(184, 72), (232, 8), (240, 0), (248, 56), (264, 70), (280, 112), (296, 128), (304, 136)] {
            words[at / 8] = value;
        }
        for (at, value) in [(312, 68), (344, 200), (360, 8), (520, 16), (528, 32), (544, 32), (552, 16), (560, 40)] {
            words[at / 8] = value;
        }
        let layout = of(&words, 13).expect("as 3.13 describes itself");
        assert_eq!(layout.offsets, Offsets { instructions: 200, ..V312.offsets });
        assert_eq!(layout.chain, FrameChain::Direct { current: 72 });
        words[248 / 8] = 1 << 40;
        assert_eq!(of(&words, 13), Err(Refusal::BadOffsets));
    }

    #[test]
    fn instruction_offsets() {
        let old = CPythonLayout::with_frame_objects(96, 2, Encoding::V310);
        assert_eq!(old.instruction_offset(0, 21), 42);
        assert_eq!(old.instruction_offset(0, 0xffff_ffff), -2);
        assert_eq!(V311.instruction_offset(4096, 4096 + 184 + 10), 10);
        assert_eq!(V311.instruction_offset(4096, 4096 + 184 - 2), -2);
    }

    #[test]
    fn every_refusal_has_a_text() {
        for code in 1..=7 {
            assert!(Refusal::from_code(code).is_some_and(|refusal| !refusal.to_string().is_empty()));
        }
        assert_eq!(Refusal::from_code(0), None);
        assert_eq!(Refusal::from_code(8), None);
    }
}
