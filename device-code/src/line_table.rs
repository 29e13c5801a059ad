//! Source lines of machine code: the line tables that compilers leave in cubins (`nvcc -lineinfo`,
//! `-G`; Triton's by default).
//!
//! Owns the reading of `.debug_line` (DWARF, by the crate `gimli`) with what NVIDIA adds to it.
//! Does not choose the instruction. Lines of PTX belong to `ptx`. A damaged table counts as an
//! empty one.
//!
//! Two things differ from the table of a host program. Every code section begins at address 0, and
//! only a relocation of the start of the sequence says which section is meant; it is written into
//! the high half of the address before the table is read. And an extended operation 0x90 of two
//! numbers says where the rows after it were inlined: the number of an earlier row of the same
//! sequence (from 1), which stands for the call, and the name of the function; 0 ends that. (Seen
//! in tables of nvcc 13.0, and as `nvdisasm -g` shows them.)

use crate::image::Cubin;
use gimli::{AttributeValue, DebugLine, DebugLineOffset, EndianSlice, LineInstruction, LineRow, LittleEndian, Reader};

/// A place in a source file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceLine {
    /// The file, as the compiler was given it, with its folder.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

impl std::fmt::Display for SourceLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A row: the code from here on up to the next row of the section.
#[derive(Clone, Copy, Debug)]
struct Row {
    section: u32,
    offset: u32,
    file: u32,
    /// 0: no line, as behind the end of a sequence.
    line: u32,
    /// Index of the row of the call that was inlined.
    outer: Option<u32>,
}

/// The line tables of a cubin.
#[derive(Debug, Default)]
pub struct LineTable {
    files: Vec<String>,
    rows: Vec<Row>,
    /// Rows by section and offset; of several at one place the last one counts.
    order: Vec<u32>,
}

/// Rows that are read; a table with more is damaged, or too large to be useful.
const MAX_ROWS: usize = 4 << 20;
/// Functions inlined into each other that are followed.
const MAX_INLINED: usize = 32;
/// `DW_LNE` of NVIDIA: the rows that follow were inlined.
const INLINED_CALL: u8 = 0x90;

impl LineTable {
    /// Reads the tables of a cubin; empty when it has none.
    #[must_use]
    pub fn of(cubin: &Cubin<'_>) -> LineTable {
        let mut table = LineTable::default();
        let named = |name| cubin.sections().iter().position(|s| s.name == name);
        let Some(index) = named(".debug_line") else { return table };
        let mut bytes = cubin.sections()[index].data.to_vec();
        for r in cubin.relocs(index) {
            let target = cubin.symbols().get(r.symbol).and_then(|s| Some((s.section?, s.offset)));
            let at = usize::try_from(r.offset).ok();
            let place = at.and_then(|at| bytes.get_mut(at..at.checked_add(8)?));
            if let (Some((section, offset)), Some(place)) = (target, place) {
                let address = (section as u64) << 32 | (offset.wrapping_add_signed(r.addend) & 0xffff_ffff);
                place.copy_from_slice(&address.to_le_bytes());
            }
        }
        let mut at = 0;
        while at < bytes.len() && table.rows.len() < MAX_ROWS {
            let Some(next) = table.unit(&bytes, at) else { break };
            at = next;
        }
        let rows = &table.rows;
        table.order = (0..rows.len() as u32).collect();
        table.order.sort_by_key(|r| (rows[*r as usize].section, rows[*r as usize].offset));
        table
    }

    /// Reads the program at an offset of the section; the offset behind it.
    fn unit(&mut self, bytes: &[u8], at: usize) -> Option<usize> {
        let section = DebugLine::new(bytes, LittleEndian);
        let mut program = section.program(DebugLineOffset(at), 8, None, None).ok()?;
        let header = program.header().clone();
        let size = 4 + header.unit_length();
        // Files by their number in the table, to numbers of ours.
        let mut files: Vec<Option<u32>> = Vec::new();
        let mut row = LineRow::new(&header);
        let (mut first, mut outer) = (self.rows.len(), None);
        let mut instructions = header.instructions();
        while let Ok(Some(instruction)) = instructions.next_instruction(&header) {
            if let LineInstruction::UnknownExtended(op, mut operands) = instruction
                && op.0 == INLINED_CALL
            {
                let call = operands.read_uleb128().unwrap_or(0);
                let call = usize::try_from(call).ok().and_then(|n| (first + n).checked_sub(1));
                outer = call.filter(|n| *n >= first && *n < self.rows.len()).map(|n| n as u32);
                continue;
            }
            if !row.execute(instruction, &mut program).ok()? {
                continue;
            }
            let number = usize::try_from(row.file_index()).ok().filter(|n| *n < 1 << 16)?;
            if files.len() <= number {
                files.resize(number + 1, None);
            }
            let file = match files[number] {
                Some(file) => file,
                None => {
                    let name = file_name(program.header(), row.file_index()).unwrap_or_default();
                    let known = self.files.iter().position(|f| *f == name).unwrap_or_else(|| {
                        self.files.push(name);
                        self.files.len() - 1
                    });
                    *files[number].insert(known as u32)
                }
            };
            let line = row.line().and_then(|l| u32::try_from(l.get()).ok()).unwrap_or(0);
            let line = if row.end_sequence() { 0 } else { line };
            let (section, offset) = ((row.address() >> 32) as u32, row.address() as u32);
            self.rows.push(Row { section, offset, file, line, outer });
            if row.end_sequence() {
                (first, outer) = (self.rows.len(), None);
            }
            row.reset(&header);
            if self.rows.len() >= MAX_ROWS {
                return None;
            }
        }
        at.checked_add(size)
    }

    /// The lines of the instruction at an offset of a code section: its own, then those of the
    /// calls that were inlined, outwards.
    #[must_use]
    pub fn lines(&self, section: usize, offset: u32) -> Vec<SourceLine> {
        let Ok(section) = u32::try_from(section) else { return Vec::new() };
        let key = |r: &u32| {
            let row = &self.rows[*r as usize];
            (row.section, row.offset)
        };
        let after = self.order.partition_point(|r| key(r) <= (section, offset));
        let mut found =
            after.checked_sub(1).map(|n| self.order[n]).filter(|r| self.rows[*r as usize].section == section);
        let mut out = Vec::new();
        while let Some(row) = found.and_then(|r| self.rows.get(r as usize)) {
            let file = self.files.get(row.file as usize).filter(|f| !f.is_empty());
            let Some(file) = file.filter(|_| row.line > 0) else { break };
            out.push(SourceLine { file: file.clone(), line: row.line });
            // A call stands before what was inlined, so this ends.
            found = row.outer.filter(|o| Some(*o) < found && out.len() < MAX_INLINED);
        }
        out
    }

    /// Whether there are lines at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

fn file_name(header: &gimli::LineProgramHeader<Bytes<'_>>, number: u64) -> Option<String> {
    let text = |v: AttributeValue<Bytes<'_>>| match v {
        AttributeValue::String(s) => Some(String::from_utf8_lossy(s.slice()).into_owned()),
        _ => None,
    };
    let file = header.file(number)?;
    let name = text(file.path_name())?;
    if name.starts_with('/') {
        return Some(name);
    }
    match file.directory(header).and_then(text) {
        Some(folder) if !folder.is_empty() => Some(format!("{folder}/{name}")),
        _ => Some(name),
    }
}

/// Of the lines of one instruction the one that a reader looks for: the innermost that is not in a
/// header of CUDA's own.
#[must_use]
pub fn user_line(lines: &[SourceLine]) -> Option<&SourceLine> {
    lines.iter().find(|l| !is_cuda_header(&l.file)).or_else(|| lines.first())
}

fn is_cuda_header(file: &str) -> bool {
    const FOLDERS: [&str; 7] =
        ["/crt/", "/cccl/", "/cub/", "/thrust/", "/cuda/std/", "/cooperative_groups", "/nvidia/cu13/"];
    let name = file.rsplit('/').next().unwrap_or(file);
    let intrinsics = ["sm_", "cuda_", "device_", "math_functions", "surface_", "texture_", "vector_functions"];
    FOLDERS.iter().any(|f| file.contains(f))
        || (file.contains("/include/") && intrinsics.iter().any(|p| name.starts_with(p)))
}
