//! The dynamic symbols of a shared library: what it needs of others, and what it has.

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};
use object::elf::{self, FileHeader64};
use object::read::ReadCache;
use object::read::elf::{Dyn, FileHeader};
use object::{Endianness, ReadRef, SymbolIndex};

/// What is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A function, or not known: a library does not say what it wants.
    Function,
    /// Data.
    Data,
}

/// A symbol.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: Option<String>,
    /// The library that is to have it: wanted ones with a version say so.
    pub file: Option<String>,
    /// What it names.
    pub kind: Kind,
}

impl fmt::Display for Name {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.name)?;
        if let Some(version) = &self.version {
            write!(to, "@{version}")?;
        }
        to.write_str(if self.kind == Kind::Data { " (data)" } else { "" })
    }
}

/// A shared library.
#[derive(Debug)]
pub struct Library {
    /// The name in it (`DT_SONAME`), or none.
    pub soname: String,
    /// The libraries that it needs.
    pub needs: Vec<String>,
    /// The symbols that it cannot do without.
    pub wants: Vec<Name>,
    /// The symbols that it has.
    pub has: Vec<Name>,
}

/// Reads a file. `None` for one that is no 64-bit ELF file with dynamic symbols.
pub fn read(path: &Path) -> Result<Option<Library>> {
    let file = std::fs::File::open(path).with_context(|| path.display().to_string())?;
    let cache = ReadCache::new(file);
    Ok(parse(&cache))
}

fn parse<'data>(data: impl ReadRef<'data>) -> Option<Library> {
    let header = FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, data).ok()?;
    let (dynamic, link) = sections.dynamic(endian, data).ok()??;
    let strings = sections.strings(endian, data, link).ok()?;
    let text = |tag| {
        let entries = dynamic.iter().filter(move |entry| entry.tag(endian) == tag);
        entries.filter_map(|entry| Some(String::from_utf8_lossy(entry.string(endian, strings).ok()?).into_owned()))
    };
    let mut library = Library {
        soname: text(elf::DT_SONAME).next().unwrap_or_default(),
        needs: text(elf::DT_NEEDED).collect(),
        wants: Vec::new(),
        has: Vec::new(),
    };
    let versions = sections.versions(endian, data).ok()?.unwrap_or_default();
    let table = sections.symbols(endian, data, elf::SHT_DYNSYM).ok()?;
    let names = table.strings();
    for (at, symbol) in table.iter().enumerate() {
        let Ok(name) = names.get(symbol.st_name.get(endian)) else { continue };
        let is_defined = symbol.st_shndx.get(endian) != elf::SHN_UNDEF;
        // A weak reference may stay without a definition. A version has a symbol of its name.
        if name.is_empty() || symbol.st_bind() == elf::STB_LOCAL || symbol.st_shndx.get(endian) == elf::SHN_ABS {
            continue;
        }
        if !is_defined && symbol.st_bind() == elf::STB_WEAK {
            continue;
        }
        let index = versions.version_index(endian, SymbolIndex(at)).index();
        let version = versions.version(index).ok().flatten();
        let owned = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let kind = if symbol.st_type() == elf::STT_OBJECT { Kind::Data } else { Kind::Function };
        let name = Name {
            name: owned(name),
            version: version.map(|version| owned(version.name())),
            file: version.and_then(|version| version.file()).map(owned),
            kind,
        };
        if is_defined { library.has.push(name) } else { library.wants.push(name) }
    }
    Some(library)
}
