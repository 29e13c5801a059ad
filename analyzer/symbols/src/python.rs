//! Lines of Python code objects.
//!
//! Owns the decoding of the three encodings of line tables. CPython describes them in
//! `Objects/lnotab_notes.txt` (3.8 to 3.10) and in `Objects/locations.md` and
//! `InternalDocs/code_objects.md` (3.11 and later).

use trace::LineTable;

/// A Python code object, as far as a stack needs it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodeObject {
    file: String,
    name: String,
    first_line: u32,
    encoding: LineTable,
    table: Box<[u8]>,
}

impl CodeObject {
    /// From the fields of [`trace::Op::PyCode`].
    pub fn new(file: String, name: String, first_line: u32, encoding: LineTable, table: &[u8]) -> Self {
        Self { file, name, first_line, encoding, table: table.into() }
    }

    /// Path of the source file as Python knows it.
    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    /// Qualified name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The line of the instruction at byte `offset`. Code without a line of its own (added by the
    /// compiler) has that of the code before it; `None` only when there is no such instruction.
    pub fn line(&self, offset: u32) -> Option<u32> {
        let first = i64::from(self.first_line);
        let line = match self.encoding {
            LineTable::Lnotab => lnotab(&self.table, first, offset),
            LineTable::V310 => v310(&self.table, first, offset),
            LineTable::V311 => v311(&self.table, first, offset),
        };
        line.and_then(|line| u32::try_from(line).ok()).or(Some(self.first_line)).filter(|line| *line > 0)
    }
}

/// Pairs of (bytes of code, lines), the second signed.
fn lnotab(table: &[u8], first: i64, offset: u32) -> Option<i64> {
    let mut line = first;
    let mut address = 0;
    for pair in table.chunks_exact(2) {
        address += u32::from(pair[0]);
        if address > offset {
            break;
        }
        line += i64::from(pair[1] as i8);
    }
    Some(line)
}

/// Pairs of (bytes of code, lines): the lines are added first, and hold for those bytes; -128
/// lines: no line.
fn v310(table: &[u8], first: i64, offset: u32) -> Option<i64> {
    let mut line = first;
    let mut last = None;
    let mut end = 0;
    for pair in table.chunks_exact(2) {
        let delta = pair[1] as i8;
        if delta != -128 {
            line += i64::from(delta);
            if pair[0] != 0 {
                last = Some(line);
            }
        }
        end += u32::from(pair[0]);
        if offset < end {
            return last;
        }
    }
    None
}

/// Entries of one byte (top bit set: kind and length), followed by the data of that kind.
fn v311(table: &[u8], first: i64, offset: u32) -> Option<i64> {
    let mut bytes = table.iter().copied().peekable();
    let mut line = first;
    let mut last = None;
    let mut end = 0;
    while let Some(head) = bytes.next() {
        let kind = head >> 3 & 15;
        let delta = match kind {
            15 => None,
            13 | 14 => Some(signed(&mut bytes)?),
            10..=12 => Some(i64::from(kind) - 10),
            _ => Some(0),
        };
        if let Some(delta) = delta {
            line = line.checked_add(delta)?;
            last = Some(line);
        }
        end += (u32::from(head & 7) + 1) * 2;
        if offset < end {
            return last;
        }
        // Columns do not matter here; every byte that begins an entry has its top bit set, and no
        // other has.
        while bytes.next_if(|byte| byte & 0x80 == 0).is_some() {}
    }
    None
}

/// A number in groups of six bits, lowest first, bit 6 set when more follow; its own lowest bit is
/// the sign.
fn signed(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let mut value = 0_u64;
    for shift in (0..60).step_by(6) {
        let byte = bytes.next()?;
        value |= u64::from(byte & 63) << shift;
        if byte & 64 == 0 {
            let magnitude = (value >> 1) as i64;
            return Some(if value & 1 == 0 { magnitude } else { -magnitude });
        }
    }
    None
}
