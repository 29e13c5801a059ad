//! `streamsan explain`: what kernels read and write, in words, and how precisely that is known.
//!
//! Owns the wording. The crate `kernels` does the analysis.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use device_code::arch::Arch;
use device_code::line_table::SourceLine;
use kernels::{Explained, explain, explain_json};
use trace::file::FileError;
use trace::{ImageId, ImageSource, Op, Record};

use detect::launches::images::read_file;
use ingest::recorded;
use ingest::segments::parts;
use report::doubt::{parameter, words_of};
use report::escape::harmless;
use symbols::demangle;
use system::file_name::FileName;
use system::local_files::{self, RecordedFiles};

/// Maximum number of source lines listed for one pointer.
const MAX_LINES: usize = 12;

/// What a file has to say of the kernels that were asked for.
pub(crate) enum Asked {
    /// The text, or JSON.
    Text(String),
    /// None of the kernels; these are there.
    Nothing(Vec<String>),
}

/// The text (or JSON) about the kernels of a file, or about those that were launched in a trace,
/// and why the trace could not be read to its end; `only`: those whose mangled name contains it.
/// The error is a line for the user.
pub(crate) fn describe(path: &FileName, only: Option<&str>, json: bool) -> Result<(Asked, Option<FileError>), String> {
    let bytes = local_files::read_named(path).map_err(|error| format!("{path}: {error}"))?;
    let is_trace = bytes.starts_with(&trace::file::MAGIC);
    let mut torn = None;
    let kernels = if is_trace {
        drop(bytes);
        let launched;
        (launched, torn) = Launched::read(path);
        let kernels = launched.explain(only);
        if kernels.is_empty() {
            return Ok((Asked::Nothing(launched.names()), torn));
        }
        kernels
    } else {
        let named = |error| format!("{path}: {error}");
        let kernels = explain(&bytes, only, detect::launches::image_reader::cache()).map_err(named)?;
        if kernels.is_empty() {
            return Ok((Asked::Nothing(kernels::kernel_names(&bytes).map_err(named)?), None));
        }
        kernels
    };
    let text = if json { format!("{:#}\n", explain_json(&kernels)) } else { kernels.iter().map(words).collect() };
    Ok((Asked::Text(text), torn))
}

/// The kernels that a trace has launched, and where their code is.
#[derive(Default)]
struct Launched {
    /// Where the code is that lies beside segments.
    shared: Option<PathBuf>,
    files: RecordedFiles,
    in_files: BTreeMap<ImageId, (PathBuf, u64, u64)>,
    images: BTreeMap<ImageId, Result<Vec<u8>, String>>,
    kernels: BTreeMap<String, ImageId>,
}

impl Launched {
    /// What the trace has, and why it has no more.
    fn read(path: &FileName) -> (Self, Option<FileError>) {
        let shared = parts::parts(path).ok().and_then(|parts| parts.shared);
        let mut found = Self { shared, ..Self::default() };
        recorded::each_late(path, |_, op, _| found.take(op));
        let read = recorded::each_record(path, |_, bytes| {
            if let Ok(record) = Record::decode(bytes) {
                found.take(&record.op);
            }
        });
        // Which files may be read is known at the end.
        for (id, (path, offset, size)) in std::mem::take(&mut found.in_files) {
            let read = || match found.files.may_read(&path) {
                true => read_file(&path, offset, size).map_err(|error| format!("{}: {error}", path.display())),
                false => Err(format!("{} is not known to be the recorded file (see --symbol-path)", path.display())),
            };
            if !found.images.get(&id).is_some_and(Result::is_ok) {
                let code = read();
                found.images.insert(id, code);
            }
        }
        (found, read.err())
    }

    fn take(&mut self, op: &Op<'_>) {
        match *op {
            Op::Kernel { name, image, .. } => {
                self.kernels.insert(name.lossy().into_owned(), image);
            }
            Op::Image { id, source: ImageSource::Inline, bytes, .. } => {
                self.images.insert(id, Ok(bytes.to_vec()));
            }
            Op::Image { id, source: ImageSource::Beside, path, .. } => {
                let name = path.path().file_name().unwrap_or_default();
                let file = self.shared.clone().unwrap_or_default().join(name);
                let read = local_files::read(&file).map_err(|error| format!("{}: {error}", file.display()));
                self.images.insert(id, read);
            }
            // Code that came with the trace is the code that ran; the file may be another by now.
            Op::Image { id, source: ImageSource::File, path, offset, size, .. } => {
                self.in_files.insert(id, (path.path().to_path_buf(), offset, size));
            }
            Op::Process { exe, .. } => self.files.program(exe.path()),
            Op::Module { path, build_id, .. } => {
                self.files.module(path.path(), build_id);
            }
            _ => {}
        }
    }

    fn names(&self) -> Vec<String> {
        self.kernels.keys().cloned().collect()
    }

    fn explain(&self, only: Option<&str>) -> Vec<Explained> {
        let wanted = self
            .kernels
            .iter()
            .filter(|(name, _)| only.is_none_or(|only| name.contains(only) || demangle(name).contains(only)));
        wanted.flat_map(|(name, image)| self.explain_one(name, *image)).collect()
    }

    fn explain_one(&self, name: &str, image: ImageId) -> Vec<Explained> {
        let code = match self.images.get(&image) {
            Some(code) => code.as_ref().map_err(Clone::clone),
            None => Err("its code is not in the trace".to_owned()),
        };
        let found = code.and_then(|code| {
            let found = explain(code, Some(name), detect::launches::image_reader::cache())
                .map_err(|error| error.to_string())?;
            let exactly: Vec<Explained> = found.into_iter().filter(|kernel| kernel.name == name).collect();
            if exactly.is_empty() { Err("it is not in its image".to_owned()) } else { Ok(exactly) }
        });
        let unknown = |why| Explained {
            name: name.to_owned(),
            arch: Arch::new(0),
            ptx: false,
            summary: Err(why),
            accesses: Vec::new(),
            unfenced: Vec::new(),
        };
        found.unwrap_or_else(|why| vec![unknown(why)])
    }
}

/// Where the parameters of a kernel are.
fn slots(summary: &kernels::Summary) -> Vec<trace::ParamSlot> {
    let slot = |p: &kernels::Param| trace::ParamSlot { offset: u32::from(p.offset), size: u32::from(p.size) };
    summary.params().iter().map(slot).collect()
}

fn because(kernel: &Explained, gap: kernels::Gap, word: Option<u16>) -> String {
    let place = |at: u32| if kernel.ptx { format!("line {at}") } else { format!("instruction {at:#x}") };
    let summary = kernel.summary.as_ref().ok();
    let slots = summary.map_or_else(Vec::new, |summary| slots(summary));
    let lost = |kind| summary?.loss(kind, Some(word?), gap.at);
    use kernels::AccessKind::{Atomic, AtomicRead, AtomicWrite, Read, Write};
    let losses = [Write, Atomic, Read, AtomicWrite, AtomicRead].map(lost);
    // The one that says whence the value comes says most.
    let loss = losses.iter().flatten().filter(|loss| loss.reason == gap.reason).max_by_key(|loss| loss.param.is_some());
    match loss {
        Some(loss) if loss.at != 0 => format!(" ({}, {})", words_of(loss, &slots), place(loss.at)),
        _ => format!(" ({}, {})", gap.reason.words(), place(gap.at)),
    }
}

/// The source lines of the accesses through some words, each once; empty when the code has no line
/// table.
fn lines(kernel: &Explained, through: impl Fn(&[u16]) -> bool) -> String {
    listed(kernel.accesses.iter().filter(|a| through(&a.words)))
}

fn listed<'k>(accesses: impl Iterator<Item = &'k kernels::ExplainedAccess>) -> String {
    let mut places: Vec<(String, &str)> = Vec::new();
    for access in accesses {
        let verb = match access.kind {
            kernels::AccessKind::Read => "reads",
            kernels::AccessKind::Write => "writes",
            kernels::AccessKind::Atomic => "updates",
            kernels::AccessKind::AtomicRead => "reads atomically",
            kernels::AccessKind::AtomicWrite => "writes atomically",
        };
        let file = harmless(access.line.file.rsplit('/').next().unwrap_or_default());
        let place = (format!("{file}:{}", access.line.line), verb);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let more = places.len().saturating_sub(MAX_LINES);
    let list: Vec<String> = places.iter().take(MAX_LINES).map(|(at, verb)| format!("{at} ({verb})")).collect();
    match (list.len(), more) {
        (0, _) => String::new(),
        (_, 0) => format!("    at {}\n", list.join(", ")),
        (_, more) => format!("    at {} and {more} more\n", list.join(", ")),
    }
}

/// What a kernel does about programmatic dependent launch.
fn dependency(kernel: &Explained, does: kernels::Dependency) -> String {
    let mut text = String::new();
    if does.waits {
        text.push_str("  waits for the grids it depends on (programmatic dependent launch)");
        if does.accesses_early {
            text.push_str("; some threads access memory before they have, or never wait\n");
            text.push_str(&listed(kernel.accesses.iter().filter(|access| access.early)));
        } else {
            text.push_str(" before it accesses memory\n");
        }
    }
    let when = match does.triggers {
        kernels::Triggers::Never => return text,
        kernels::Triggers::AfterWait => " once it has waited",
        kernels::Triggers::AtOnce if does.waits => " before it has waited",
        kernels::Triggers::AtOnce => "",
    };
    let _ = writeln!(text, "  lets dependent grids begin{when}");
    text
}

/// A bulk operation without a fence between the proxies in front of it.
fn unfenced(found: &kernels::ExplainedCopy) -> String {
    let place = |line: &Option<SourceLine>, at: u32| match line {
        Some(line) => format!("{}:{}", harmless(line.file.rsplit('/').next().unwrap_or_default()), line.line),
        None => format!("instruction {at:#x}"),
    };
    let (copy, store) = (place(&found.line, found.copy.at), place(&found.store_line, found.copy.store));
    format!(
        "  may come from the store to shared memory at {store} to the bulk operation at {copy} without a fence between the \
         proxies (fence.proxy.async)\n"
    )
}

fn words(kernel: &Explained) -> String {
    let arch = if kernel.arch == Arch::new(0) { String::new() } else { format!(" ({})", kernel.arch) };
    let mut text = format!("{}{arch}\n", harmless(&demangle(&kernel.name)));
    let summary = match &kernel.summary {
        Ok(summary) => summary,
        Err(why) => {
            let _ =
                writeln!(text, "  not known: {why}; every pointer among its parameters counts as read and written\n");
            return text;
        }
    };
    if summary.words().is_empty() {
        text.push_str("  touches no memory through its parameters\n");
    }
    let slots = slots(summary);
    for word in summary.words() {
        let mut verbs = Vec::new();
        for (does, verb) in [(word.reads, "reads"), (word.writes, "writes"), (word.atomic, "updates atomically")] {
            if does {
                verbs.push(verb);
            }
        }
        let extent = match word.extent {
            kernels::WordExtent::Affine => "the bytes follow from the launch",
            kernels::WordExtent::Unknown => "how many bytes is not known",
        };
        let why = word.why.map_or_else(String::new, |gap| because(kernel, gap, Some(word.offset)));
        let pointer = parameter(u32::from(word.offset), &slots);
        let _ = writeln!(text, "  through the pointer in {pointer} {}; {extent}{why}", verbs.join(" and "));
        text.push_str(&lines(kernel, |words| words.contains(&word.offset)));
    }
    let indirect = summary.indirect();
    if indirect.any() {
        let mut verbs = Vec::new();
        for (does, verb) in [(indirect.reads, "reads"), (indirect.writes, "writes"), (indirect.atomic, "updates")] {
            if does {
                verbs.push(verb);
            }
        }
        let verbs = verbs.join(" and ");
        let why = indirect.why.map_or_else(String::new, |gap| because(kernel, gap, None));
        let _ = writeln!(
            text,
            "  {verbs} through addresses that come out of memory, textures or tensor maps: not followed{why}"
        );
        text.push_str(&lines(kernel, <[u16]>::is_empty));
    }
    text.push_str(&dependency(kernel, summary.dependency()));
    kernel.unfenced.iter().for_each(|found| text.push_str(&unfenced(found)));
    text.push('\n');
    text
}
