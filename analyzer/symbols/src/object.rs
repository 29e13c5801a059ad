//! One object file: functions and lines at its addresses.
//!
//! Owns the search for debug information (in the file, by build id or debug link under
//! `/usr/lib/debug`, with its supplementary file) and the fall-back to the symbol table. Addresses
//! are the file's own (`st_value`).

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use memmap2::Mmap;
use object::{Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, SymbolKind};

use super::demangle;
use system::local_files;

/// Where separate debug information is installed.
const DEBUG_ROOT: &str = "/usr/lib/debug";

/// A function at an address, or one inlined there.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct SourceLocation {
    /// Demangled name, when known.
    pub(crate) function: Option<String>,
    /// Path of the source file.
    pub(crate) file: Option<String>,
    /// Line in it.
    pub(crate) line: Option<u32>,
    /// Whether it was inlined into the next place.
    pub(crate) inlined: bool,
}

/// An object file that was opened.
pub(crate) struct ObjectFile {
    /// By address.
    symbols: Vec<Symbol>,
    /// All names, one after the other.
    names: String,
    debug: Option<Loader>,
}

#[derive(Clone, Copy)]
struct Symbol {
    address: u64,
    size: u64,
    name: (u32, u32),
}

impl ObjectFile {
    /// Opens the file, which may be held open already. If it is missing or was replaced, opens a
    /// copy or its debug information under the search path or the system's folder: by build id, or
    /// by name with the right build id.
    pub(crate) fn find(path: &Path, build_id: &[u8], held: Option<&File>) -> Option<Self> {
        let held = held.and_then(|held| Self::held(held, path, build_id));
        if let Some(file) = held.or_else(|| Self::open(path, build_id)) {
            return Some(file);
        }
        let by_id = build_id_files(build_id);
        let by_name = local_files::search_path().iter().flat_map(|root| {
            let inside = root.join(path.strip_prefix("/").unwrap_or(path));
            [Some(inside), path.file_name().map(|name| root.join(name))]
        });
        // Without a build id, a file of that name may be another one.
        let by_name = by_name.flatten().filter(|_| !build_id.is_empty());
        by_id.into_iter().chain(by_name).find_map(|candidate| Self::open(&candidate, build_id))
    }

    /// Opens the file. `None` when it is missing, is no object file, or has another build id than
    /// the one recorded.
    pub(crate) fn open(path: &Path, build_id: &[u8]) -> Option<Self> {
        Self::read(&map(path)?, path, path, build_id)
    }

    /// Reads a file that is open, whatever its path leads to by now.
    fn held(file: &File, path: &Path, build_id: &[u8]) -> Option<Self> {
        // The reader of debug information opens files by their names.
        let name = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        Self::read(&map_file(file)?, path, &name, build_id)
    }

    /// Reads the bytes of a file, which can be opened under `name`.
    fn read(bytes: &[u8], path: &Path, name: &Path, build_id: &[u8]) -> Option<Self> {
        let file = object::File::parse(bytes).ok()?;
        let id = file.build_id().ok().flatten().unwrap_or_default();
        if !build_id.is_empty() && id != build_id {
            return None;
        }
        let mut this = Self { symbols: Vec::new(), names: String::new(), debug: None };
        if has_debug_info(&file) {
            this.debug = load(name, path, &file);
        } else {
            for candidate in separate_files(path, &file) {
                let Some(map) = self::map(&candidate) else { continue };
                let Ok(separate) = object::File::parse(&*map) else { continue };
                if separate.build_id().ok().flatten().unwrap_or_default() != id {
                    continue;
                }
                this.add_symbols(&separate);
                if has_debug_info(&separate) {
                    this.debug = load(&candidate, &candidate, &separate);
                    break;
                }
            }
        }
        this.add_symbols(&file);
        // Of several names for one address: the one with a size, then the shortest, which has the
        // fewest underscores.
        let names = std::mem::take(&mut this.names);
        let text = |symbol: &Symbol| &names[symbol.name.0 as usize..symbol.name.1 as usize];
        // Libraries have half a million symbols, and few share an address: names are compared last.
        this.symbols.sort_unstable_by(|a, b| {
            let length = |symbol: &Symbol| symbol.name.1 - symbol.name.0;
            let by_size = || b.size.cmp(&a.size).then_with(|| length(a).cmp(&length(b)));
            a.address.cmp(&b.address).then_with(by_size).then_with(|| text(a).cmp(text(b)))
        });
        this.symbols.dedup_by_key(|symbol| symbol.address);
        this.names = names;
        Some(this)
    }

    fn add_symbols(&mut self, file: &object::File<'_>) {
        let tables = [file.symbol_table(), file.dynamic_symbol_table()];
        for symbol in tables.iter().flatten().flat_map(|table| table.symbols()) {
            if !symbol.is_definition() || !matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Unknown) {
                continue;
            }
            let Ok(name) = symbol.name() else { continue };
            if name.is_empty() || symbol.address() == 0 {
                continue;
            }
            let Ok(start) = u32::try_from(self.names.len()) else { return };
            let Ok(end) = u32::try_from(self.names.len() + name.len()) else { return };
            self.names.push_str(name);
            self.symbols.push(Symbol { address: symbol.address(), size: symbol.size(), name: (start, end) });
        }
    }

    /// The functions at `address`: one, preceded by those inlined into it there, innermost first.
    /// Empty when nothing is known.
    pub(crate) fn at(&self, address: u64) -> Vec<SourceLocation> {
        let mut places = self.debug.as_ref().map(|debug| from_debug_info(debug, address)).unwrap_or_default();
        if places.last().is_none_or(|place| place.function.is_none()) {
            let function = self.symbol(address).map(demangle).or_else(|| self.signal_trampoline(address));
            match places.last_mut() {
                Some(place) => place.function = function,
                None if function.is_some() => places.push(SourceLocation { function, ..SourceLocation::default() }),
                None => {}
            }
        }
        places.retain(|place| place.function.is_some() || place.file.is_some());
        places
    }

    /// A signal handler returns to the first instruction of the C library's trampoline: one below
    /// is no function.
    fn signal_trampoline(&self, address: u64) -> Option<String> {
        let at = self.symbols.binary_search_by_key(&(address + 1), |symbol| symbol.address).ok()?;
        let name = self.symbols[at].name;
        let name = &self.names[name.0 as usize..name.1 as usize];
        name.contains("restore_rt").then(|| "<signal handler called>".to_string())
    }

    fn symbol(&self, address: u64) -> Option<&str> {
        let after = self.symbols.partition_point(|symbol| symbol.address <= address);
        let symbol = self.symbols[..after].last()?;
        // A symbol without a size (hand-written assembly) reaches to the next one. Others end at
        // their size.
        let inside = symbol.size == 0 || address - symbol.address < symbol.size;
        inside.then(|| &self.names[symbol.name.0 as usize..symbol.name.1 as usize])
    }
}

fn from_debug_info(debug: &Loader, address: u64) -> Vec<SourceLocation> {
    let mut places = Vec::new();
    let Ok(mut frames) = debug.find_frames(address) else { return places };
    while let Ok(Some(frame)) = frames.next() {
        let function = frame.function.as_ref().and_then(|name| name.raw_name().ok().map(|name| demangle(&name)));
        let (file, line) = frame.location.map_or((None, None), |at| (at.file.map(str::to_string), at.line));
        places.push(SourceLocation { function, file, line: line.filter(|line| *line > 0), inlined: true });
    }
    if let Some(last) = places.last_mut() {
        last.inlined = false;
    }
    places
}

fn map(path: &Path) -> Option<Mmap> {
    map_file(&local_files::open(path).ok()?)
}

fn map_file(file: &File) -> Option<Mmap> {
    // SAFETY: the mapping is private and read-only. Truncating an object file while it is read is a
    // fault that every debugger shares. Installers replace files instead.
    unsafe { Mmap::map(file) }.ok()
}

fn has_debug_info(file: &object::File<'_>) -> bool {
    file.section_by_name(".debug_info").is_some_and(|section| section.size() > 0)
}

/// The debug information of a file that can be opened under `name`.
fn load(name: &Path, path: &Path, file: &object::File<'_>) -> Option<Loader> {
    let supplementary = file.gnu_debugaltlink().ok().flatten().and_then(|(link, id)| {
        let link = PathBuf::from(String::from_utf8_lossy(link).into_owned());
        let beside = path.parent().map(|directory| directory.join(&link));
        beside.into_iter().chain(build_id_files(id)).find(|candidate| candidate.is_file())
    });
    Loader::new_with_sup(name, supplementary).ok()
}

/// Places where separate debug information of a file may be, most trustworthy first.
fn separate_files(path: &Path, file: &object::File<'_>) -> Vec<PathBuf> {
    let mut candidates = file.build_id().ok().flatten().map(build_id_files).unwrap_or_default();
    if let Some(name) = path.file_name() {
        candidates.extend(local_files::search_path().iter().map(|root| root.join(name)));
    }
    if let Ok(Some((name, _))) = file.gnu_debuglink() {
        let name = String::from_utf8_lossy(name).into_owned();
        let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        if let Some(directory) = real.parent() {
            candidates.push(directory.join(&name));
            candidates.push(directory.join(".debug").join(&name));
            candidates.push(Path::new(DEBUG_ROOT).join(directory.strip_prefix("/").unwrap_or(directory)).join(&name));
        }
        candidates.retain(|candidate| *candidate != real);
    }
    candidates
}

/// Where the debug information of this build may be.
fn build_id_files(id: &[u8]) -> Vec<PathBuf> {
    let Some((first, rest)) = id.split_first() else { return Vec::new() };
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let roots = local_files::search_path().iter().map(PathBuf::as_path).chain([Path::new(DEBUG_ROOT)]);
    roots.map(|root| root.join(".build-id").join(format!("{first:02x}")).join(format!("{rest}.debug"))).collect()
}
