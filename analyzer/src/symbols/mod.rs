//! Symbolisation: stacks as recorded in, frames with names and lines out.
//!
//! Owns everything between the definitions of a trace (`Module`, `Stack`, `PyCode`) and the frames of a report: which file
//! an address belongs to ([`Symbolizer`]), functions and lines in it ([`object`]), Python lines ([`python`]), how native
//! and Python frames become one stack and which frames nobody wants to see ([`merge`]), names as the programmer wrote them
//! ([`demangle()`]) and the text of source lines ([`source`]). It does not decide which stacks are shown.
//!
//! Lazy: definitions are only kept; files are opened when the first stack that needs them is resolved. Whatever is missing
//! (files that are gone, replaced or damaged) leaves `module+0xoffset`; nothing here fails.

mod demangle;
mod merge;
mod object;
pub mod python;
mod source;

use std::collections::HashMap;
use std::path::PathBuf;

use trace::{Op, PyCodeId, PyFrame, StackId};

pub use demangle::demangle;
pub use merge::entered_by;

use crate::report::model::{Frame, FrameKind};
use crate::stacks::Stacks;
use object::ObjectFile;
use python::Code;
use source::Sources;

/// Set in [`PyFrame::offset`]: the frame is the outermost one of its run of the interpreter's loop, so that the next
/// Python frame belongs to the next native frame of that loop.
pub const ENTRY_FRAME: u32 = 1 << 31;

/// An object file as it was mapped.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Module {
    start: u64,
    end: u64,
    bias: u64,
    path: String,
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

/// Symboliser of one process of a run.
#[derive(Default)]
pub struct Symbolizer {
    modules: Vec<Module>,
    stacks: HashMap<StackId, Stack>,
    codes: HashMap<PyCodeId, Code>,
    /// By index of the module. `None`: no usable file.
    files: HashMap<usize, Option<ObjectFile>>,
    sources: Sources,
}

impl Symbolizer {
    /// Knows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where relative paths of the process start.
    pub fn set_directory(&mut self, directory: impl Into<PathBuf>) {
        self.sources.set_directory(directory.into());
    }

    /// Takes a definition: `Process` (for its directory), `Module`, `Stack` or `PyCode`. Others are ignored.
    pub fn define(&mut self, op: &Op<'_>) {
        match op {
            Op::Process { cwd, .. } => self.set_directory(cwd.lossy().into_owned()),
            Op::Module { start, end, bias, path, build_id } => {
                self.module(*start, *end, *bias, &path.lossy(), build_id);
            }
            Op::Stack { id, native, python } => self.stack(*id, native.iter(), python.iter()),
            Op::PyCode { id, file, name, first_line, encoding, lines } => {
                self.code(
                    *id,
                    Code::new(file.lossy().into_owned(), name.lossy().into_owned(), *first_line, *encoding, lines),
                );
            }
            _ => {}
        }
    }

    /// An object file was mapped; it takes over the addresses that it covers for stacks defined from now on.
    pub fn module(&mut self, start: u64, end: u64, bias: u64, path: &str, build_id: &[u8]) {
        let module = Module { start, end, bias, path: path.to_string(), build_id: build_id.to_vec() };
        self.modules.push(module);
    }

    /// A stack, innermost frame first.
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

    /// A Python code object.
    pub fn code(&mut self, id: PyCodeId, code: Code) {
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

    /// What is at a return address: one function, preceded by those inlined into it there.
    fn native_frame(&mut self, address: u64, modules: usize) -> merge::NativeFrame {
        let probe = address.wrapping_sub(1);
        let covers = |module: &Module| module.start <= probe && probe < module.end;
        let Some(index) = self.modules[..modules].iter().rposition(covers) else {
            return merge::NativeFrame::unknown(address, format!("{address:#x}"), None);
        };
        let module = &self.modules[index];
        let svma = probe.wrapping_sub(module.bias);
        let file = self.files.entry(index).or_insert_with(|| ObjectFile::open(module.path.as_ref(), &module.build_id));
        let found = file.as_ref().map(|file| file.at(svma)).unwrap_or_default();
        if found.is_empty() {
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
}
