//! Reads 64-bit ELF files. Nothing in a file is believed: what is damaged is not there.

/// Part of a file that the program loads.
const LOAD: u32 = 1;
/// A segment that holds code.
const EXECUTABLE: u32 = 1;
/// Kinds of sections: all symbols, and those that are loaded.
const SYMBOL_TABLE: u32 = 2;
const DYNAMIC_SYMBOLS: u32 = 11;
/// Bytes of a symbol.
const SYMBOL: usize = 24;
const FUNCTION: u8 = 2;

/// A file.
#[derive(Clone, Copy)]
pub(crate) struct Elf<'a> {
    bytes: &'a [u8],
}

/// A segment of code, in addresses of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Its first byte.
    pub start: u64,
    /// Behind its last byte.
    pub end: u64,
    /// Where it lies in the file.
    pub offset: u64,
}

/// A function, in addresses of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Function<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Its first byte.
    pub address: u64,
}

/// A symbol table and its strings.
#[derive(Clone, Copy)]
pub(crate) struct Symbols<'a> {
    table: &'a [u8],
    strings: &'a [u8],
}

fn part(bytes: &[u8], at: u64, len: u64) -> Option<&[u8]> {
    let at = usize::try_from(at).ok()?;
    bytes.get(at..at.checked_add(usize::try_from(len).ok()?)?)
}

fn word16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn word32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn word64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

impl<'a> Elf<'a> {
    /// A file of this processor.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Elf<'a>> {
        (bytes.starts_with(b"\x7fELF\x02\x01") && word16(bytes, 18)? == crate::arch::MACHINE).then_some(Elf { bytes })
    }

    /// The entries of a table of headers, whose place and size stand in the file's header.
    fn headers(&self, table: usize, size: usize, count: usize, least: u64) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        let start = word64(bytes, table).unwrap_or(0);
        let size = u64::from(word16(bytes, size).unwrap_or(0));
        let count = if size < least { 0 } else { u64::from(word16(bytes, count).unwrap_or(0)) };
        (0..count).map_while(move |n| part(bytes, start.checked_add(n * size)?, size))
    }

    fn sections(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.headers(40, 58, 60, 64)
    }

    /// The segment of code that holds an address.
    pub(crate) fn code(&self, address: u64) -> Option<Segment> {
        let segments = self.headers(32, 54, 56, 56).filter_map(|header| {
            let is_code = word32(header, 0)? == LOAD && word32(header, 4)? & EXECUTABLE != 0;
            let (offset, start, len) = (word64(header, 8)?, word64(header, 16)?, word64(header, 32)?);
            is_code.then_some(Segment { start, end: start.checked_add(len)?, offset })
        });
        let mut segments = segments;
        segments.find(|segment| (segment.start..segment.end).contains(&address))
    }

    /// Bytes of a segment's code.
    pub(crate) fn code_bytes(&self, segment: &Segment, address: u64, len: u64) -> Option<&'a [u8]> {
        let behind = address.checked_sub(segment.start)?;
        part(self.bytes, segment.offset.checked_add(behind)?, len)
    }

    /// All symbols, unless they were stripped.
    pub(crate) fn symbols(&self) -> Option<Symbols<'a>> {
        self.table(SYMBOL_TABLE)
    }

    /// The symbols that others can see.
    pub(crate) fn dynamic_symbols(&self) -> Option<Symbols<'a>> {
        self.table(DYNAMIC_SYMBOLS)
    }

    fn table(&self, kind: u32) -> Option<Symbols<'a>> {
        let content = |header: &[u8]| part(self.bytes, word64(header, 24)?, word64(header, 32)?);
        let header = self.sections().find(|header| word32(header, 4) == Some(kind))?;
        let strings = self.sections().nth(usize::try_from(word32(header, 40)?).ok()?)?;
        Some(Symbols { table: content(header)?, strings: content(strings)? })
    }
}

impl<'a> Symbols<'a> {
    /// The functions that the file defines, in the order of the table.
    pub(crate) fn functions(self) -> impl Iterator<Item = Function<'a>> {
        self.table.chunks_exact(SYMBOL).filter_map(move |symbol| {
            let is_function = symbol.get(4)? & 15 == FUNCTION && word16(symbol, 6)? != 0;
            if !is_function {
                return None;
            }
            let strings = self.strings.get(usize::try_from(word32(symbol, 0)?).ok()?..)?;
            let len = strings.iter().position(|byte| *byte == 0)?;
            Some(Function { name: strings.get(..len)?, address: word64(symbol, 8)? })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn this() -> Vec<u8> {
        std::fs::read("/proc/self/exe").expect("this test")
    }

    #[test]
    fn finds_the_functions_of_this_test() {
        let bytes = this();
        let elf = Elf::parse(&bytes).expect("an ELF file");
        let symbols = elf.symbols().expect("tests are not stripped");
        let main = symbols.functions().find(|function| function.name == b"main").expect("a main");
        let segment = elf.code(main.address).expect("it lies in code");
        assert!(elf.code_bytes(&segment, main.address, 16).is_some());
        assert!(elf.code_bytes(&segment, segment.start.wrapping_sub(1), 1).is_none());
        assert_eq!(elf.code(u64::MAX), None);
    }

    #[test]
    fn damaged_files_hold_nothing_or_something_but_never_panic() {
        assert!(Elf::parse(b"").is_none() && Elf::parse(b"#!/bin/sh\n").is_none());
        let bytes = this();
        let look = |bytes: &[u8]| {
            let Some(elf) = Elf::parse(bytes) else { return };
            let _ = elf.code(0x1000);
            let _ = elf.symbols().map(|symbols| symbols.functions().count());
        };
        for len in [6, 19, 20, 40, 63, 64, 200, 4096, bytes.len() / 2, bytes.len() - 1] {
            look(&bytes[..len]);
        }
        for at in 16..64 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0xff;
            look(&damaged);
        }
    }
}
