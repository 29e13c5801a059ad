//! Symbolisation: recorded stacks in, frames with names and lines out.
//!
//! Owns everything between the definitions of a trace (`Module`, `Stack`, `PyCode`) and the frames
//! of a report. Does not decide which stacks are shown.
//!
//! The files in the order of use: this one finds the file of an address ([`Symbolizer`]),
//! [`object`] functions and lines in it, [`demangle()`] the names as the programmer wrote them,
//! [`python`] Python lines, [`merge`] joins native and Python frames into one stack and folds
//! uninteresting ones, `rust` those of Rust's start-up, [`source`] reads source lines. [`frame`]
//! is the result, `stacks` the interface that the analysis uses, [`library`] tells the program's
//! frames from those of libraries, `callers` helpers from other functions, [`torch`] finds
//! PyTorch's operators in it, and [`stack_text`] makes lines of it.
//! `merge` and `object` use `demangle`, and all use `frame`.
//!
//! A recording ends with [`Symbolizer::export`]: symbols and source lines go into the trace, which
//! can then be read anywhere.
//!
//! Symbolisation is lazy: definitions are only kept, and files are opened when the first stack that
//! needs them is resolved; those of a living process are held open until then (`held_objects`). A
//! missing file (one that is gone, replaced or damaged) leaves `module+0xoffset`; nothing here
//! fails.

#![warn(unreachable_pub)]
#![allow(rustdoc::private_intra_doc_links, reason = "the docs are for maintainers, who build them with private items")]

mod callers;
mod demangle;
pub mod frame;
mod held_objects;
pub mod library;
mod merge;
mod object;
pub mod python;
mod rust;
mod source;
pub mod stack_text;
pub mod stacks;
pub mod torch;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trace::{Op, PyCodeId, PyFrame, StackId};

pub use demangle::demangle;
pub use held_objects::hold_program;
pub use merge::entered_by;

use crate::frame::{Frame, FrameKind};
use crate::stacks::Stacks;
use callers::Callers;
use held_objects::Living;
use object::{ObjectFile, SourceLocation};
use python::CodeObject;
use source::Sources;
use system::local_files::RecordedFiles;

/// Set in [`PyFrame::offset`]: the frame is the outermost one of its run of the interpreter's loop,
/// so that the next Python frame belongs to the next native frame of that loop.
pub const ENTRY_FRAME: u32 = 1 << 31;

/// An object file as it was mapped.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Module {
    start: u64,
    end: u64,
    bias: u64,
    path: String,
    /// The path, which need not be UTF-8.
    file: PathBuf,
    build_id: Vec<u8>,
}

impl Module {
    fn base_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// A stack as it was recorded.
struct Stack {
    native: Box<[u64]>,
    python: Box<[PyFrame]>,
    /// How many modules were defined before it: later ones may have taken over addresses.
    modules: usize,
}

/// The symbolizer of one process of a run.
#[derive(Default)]
pub struct Symbolizer {
    modules: Vec<Module>,
    stacks: HashMap<StackId, Stack>,
    codes: HashMap<PyCodeId, CodeObject>,
    /// Opened files, by index of the module. `None`: no usable file.
    files: HashMap<usize, Option<ObjectFile>>,
    /// The process, if it runs here and now, and its files that are held.
    living: Option<Living>,
    held: HashMap<usize, Arc<File>>,
    /// Addresses of calls without a name, by index of the module, whose file cannot be read.
    lost: BTreeMap<usize, BTreeSet<u64>>,
    /// Symbols from the trace, by index of the module and the file's own address.
    recorded: HashMap<(usize, u64), Vec<SourceLocation>>,
    sources: Sources,
    recorded_files: RecordedFiles,
    /// Helpers, and of how many stacks: made when a report first asks.
    callers: Option<(usize, Callers)>,
}

impl Symbolizer {
    /// An empty symbolizer.
    pub fn new() -> Self {
        Self::default()
    }

    /// One that reads the files that these may be.
    pub fn of(files: RecordedFiles) -> Self {
        Self { sources: Sources::of(files.clone()), recorded_files: files, ..Self::default() }
    }

    /// Sets the folder of the process, for relative paths.
    pub(crate) fn set_directory(&mut self, directory: impl Into<PathBuf>) {
        self.sources.set_directory(directory.into());
    }

    /// Takes a definition: `Process` (for its directory), `Module`, `Stack` or `PyCode`. Others are
    /// ignored.
    pub fn define(&mut self, op: &Op<'_>) {
        match op {
            Op::Process { pid, exe, cwd, .. } => {
                self.recorded_files.program(exe.path());
                self.living = Living::new(*pid, exe.path());
                self.set_directory(cwd.path());
            }
            Op::Module { start, end, bias, path, build_id } => {
                self.module(*start, *end, *bias, path.path(), build_id);
            }
            Op::Stack { id, native, python } => self.stack(*id, native.iter(), python.iter()),
            Op::PyCode { id, file, name, first_line, encoding, lines } => {
                self.code(
                    *id,
                    CodeObject::new(
                        file.lossy().into_owned(),
                        name.lossy().into_owned(),
                        *first_line,
                        *encoding,
                        lines,
                    ),
                );
            }
            Op::Symbol { module, address, function, file, line, inlined } => {
                let known = |text: &trace::codec::Text<'_>| Some(text.lossy().into_owned()).filter(|t| !t.is_empty());
                let line = Some(*line).filter(|line| *line > 0);
                let place = SourceLocation { function: known(function), file: known(file), line, inlined: *inlined };
                self.recorded.entry((*module as usize, *address)).or_default().push(place);
            }
            // All object files are told again, under their old numbers.
            Op::Gap { resumed: false } => self.modules.clear(),
            Op::Source { file, line, text } => self.sources.record(&file.lossy(), *line, text.lossy().into_owned()),
            _ => {}
        }
    }

    /// Passes on everything that [`Symbolizer::define`] needs to resolve all stacks without the
    /// files: symbols and source lines.
    pub fn export(&mut self, mut each: impl FnMut(&Op<'_>)) {
        let mut addresses = BTreeSet::new();
        let mut lines = BTreeSet::new();
        let mut operators = BTreeSet::new();
        for stack in self.stacks.values() {
            addresses.extend(stack.native.iter().filter_map(|address| self.locate(*address, stack.modules)));
            let frames = stack.python.iter().map(|frame| self.python_frame(*frame).frame);
            lines.extend(frames.filter_map(|f| f.file.zip(f.line)));
        }
        for (module, address) in addresses {
            for place in self.places(module, address) {
                each(&Op::Symbol {
                    module: module as u32,
                    address,
                    function: place.function.as_deref().unwrap_or("").into(),
                    file: place.file.as_deref().unwrap_or("").into(),
                    line: place.line.unwrap_or(0),
                    inlined: place.inlined,
                });
                if let Some(function) = place.function.filter(|f| f.starts_with("at::_ops::")) {
                    operators.insert((function, module));
                }
                lines.extend(place.file.zip(place.line));
            }
        }
        // Only a process that runs here is exported: its libraries are read.
        let operators = operators.iter().map(|(f, module)| (f.as_str(), self.modules[*module].path.as_str()));
        for (operator, text) in crate::torch::Schemas::default().of_functions(operators) {
            each(&Op::Schema { operator: operator.as_str().into(), text: text.as_str().into() });
        }
        for (file, line) in lines {
            if let Some(text) = self.sources.line(&file, line) {
                each(&Op::Source { file: file.as_str().into(), line, text: text.as_str().into() });
            }
        }
    }

    /// Adds a mapped object file. It takes over the addresses that it covers for stacks defined
    /// from now on.
    pub fn module(&mut self, start: u64, end: u64, bias: u64, path: impl AsRef<Path>, build_id: &[u8]) {
        let file = path.as_ref().to_path_buf();
        self.recorded_files.module(&file, build_id);
        let held = self.living.as_ref().and_then(|living| {
            // The same as before, whose path has got the kernel's mark of deleted files, say.
            let is_same = |module: &Module| {
                (module.start, module.end, &*module.build_id) == (start, end, build_id)
                    && held_objects::named(&module.file) == held_objects::named(&file)
            };
            let earlier = self.modules.iter().rposition(is_same).and_then(|index| self.held.get(&index).cloned());
            earlier.or_else(|| living.hold(&file, start, build_id))
        });
        if let Some(held) = held.or_else(|| held_objects::started(build_id)) {
            self.held.insert(self.modules.len(), held);
        }
        let path = file.to_string_lossy().into_owned();
        let module = Module { start, end, bias, path, file, build_id: build_id.to_vec() };
        self.modules.push(module);
    }

    /// Adds a stack, innermost frame first.
    pub fn stack(
        &mut self,
        id: StackId,
        native: impl IntoIterator<Item = u64>,
        python: impl IntoIterator<Item = PyFrame>,
    ) {
        let stack = Stack {
            native: native.into_iter().collect(),
            python: python.into_iter().collect(),
            modules: self.modules.len(),
        };
        self.stacks.insert(id, stack);
    }

    /// Adds a Python code object.
    pub fn code(&mut self, id: PyCodeId, code: CodeObject) {
        self.codes.insert(id, code);
    }

    /// The frames of a stack, innermost first; empty when it is unknown.
    pub fn resolve(&mut self, id: StackId) -> Vec<Frame> {
        let Some(stack) = self.stacks.get(&id) else { return Vec::new() };
        let native = stack.native.clone();
        let python: Vec<_> = stack.python.iter().map(|frame| self.python_frame(*frame)).collect();
        let modules = stack.modules;
        let native = native.iter().map(|address| self.native_frame(*address, modules)).collect();
        let mut frames = merge::merge(native, python);
        for frame in &mut frames {
            if let (Some(file), Some(line)) = (&frame.file, frame.line) {
                frame.source = self.sources.line(file, line);
            }
        }
        frames
    }

    /// The helpers among the program's functions.
    fn callers(&mut self) -> &Callers {
        let known = self.callers.take().filter(|(stacks, _)| *stacks == self.stacks.len());
        let known = known.unwrap_or_else(|| {
            let mut ids: Vec<StackId> = self.stacks.keys().copied().collect();
            ids.sort_unstable();
            let mut callers = Callers::default();
            for id in ids.into_iter().take(callers::MOST) {
                // Where Python calls, its own lines are enough: no library's symbols are read.
                let python = self.stacks.get(&id).map_or(&[][..], |stack| &stack.python);
                let python: Vec<Frame> = python.iter().map(|frame| self.python_frame(*frame).frame).collect();
                callers.add(&if python.is_empty() { self.resolve(id) } else { python });
            }
            (self.stacks.len(), callers)
        });
        &self.callers.insert(known).1
    }

    fn python_frame(&self, frame: PyFrame) -> merge::PythonFrame {
        let code = self.codes.get(&frame.code);
        let offset = frame.offset & !ENTRY_FRAME;
        merge::PythonFrame {
            entry: frame.offset & ENTRY_FRAME != 0,
            frame: Frame {
                kind: FrameKind::Python,
                function: code.map_or_else(|| "<unknown code>".to_string(), |code| code.name().to_string()),
                file: code.map(|code| code.file().to_string()),
                line: code.and_then(|code| code.line(offset)),
                module: None,
                address: 0,
                inlined: false,
                source: None,
            },
        }
    }

    /// The object file that a return address is in, and the file's own address of the call.
    fn locate(&self, address: u64, modules: usize) -> Option<(usize, u64)> {
        let probe = address.wrapping_sub(1);
        let covers = |module: &Module| module.start <= probe && probe < module.end;
        let index = self.modules[..modules].iter().rposition(covers)?;
        Some((index, probe.wrapping_sub(self.modules[index].bias)))
    }

    /// The functions at an address of an object file: from the trace, unless the user has named
    /// folders to search.
    fn places(&mut self, index: usize, svma: u64) -> Vec<SourceLocation> {
        let recorded = self.recorded.get(&(index, svma));
        if let Some(places) = recorded.filter(|_| system::local_files::search_path().is_empty()) {
            return places.clone();
        }
        let module = &self.modules[index];
        // A build id tells by itself whether a file is the recorded one.
        let may_read = || !module.build_id.is_empty() || self.recorded_files.may_read(&module.file);
        let held = self.held.get(&index).map(Arc::as_ref);
        let open = || may_read().then(|| ObjectFile::find(&module.file, &module.build_id, held)).flatten();
        let found = self.files.entry(index).or_insert_with(open).as_ref().map(|file| file.at(svma)).unwrap_or_default();
        // Their names come from a file of this machine, which is the recorded one.
        found.iter().filter_map(|place| place.file.as_deref()).for_each(|file| self.sources.trust(file));
        let better = found.iter().any(|place| place.line.is_some());
        recorded.filter(|_| !better).cloned().unwrap_or(found)
    }

    /// The functions at a return address: one, preceded by those inlined into it there.
    fn native_frame(&mut self, address: u64, modules: usize) -> merge::NativeFrame {
        let Some((index, svma)) = self.locate(address, modules) else {
            return merge::NativeFrame::unknown(address, format!("{address:#x}"), None);
        };
        let found = self.places(index, svma);
        let module = &self.modules[index];
        if found.is_empty() {
            if self.living.is_some() && module.file.is_absolute() && matches!(self.files.get(&index), Some(None)) {
                self.lost.entry(index).or_default().insert(svma);
            }
            let name = format!("{}+{:#x}", module.base_name(), svma.wrapping_add(1));
            return merge::NativeFrame::unknown(address, name, Some(&module.path));
        }
        merge::NativeFrame::known(address, &module.path, found)
    }
}

impl Stacks for Symbolizer {
    fn define(&mut self, op: &Op<'_>) {
        Symbolizer::define(self, op);
    }

    fn resolve(&mut self, stack: StackId) -> Vec<Frame> {
        Symbolizer::resolve(self, stack)
    }

    fn demangle(&self, name: &str) -> String {
        demangle(name)
    }

    fn lost(&self) -> Vec<(&str, u64)> {
        let named =
            |(index, places): (&usize, &BTreeSet<u64>)| Some((&*self.modules.get(*index)?.path, places.len() as u64));
        self.lost.iter().filter_map(named).collect()
    }

    fn is_helper(&mut self, site: &Frame) -> bool {
        self.callers().are_several(site)
    }

    fn source(&mut self, file: &str, line: u32) -> Option<String> {
        self.sources.line(file, line)
    }
}
