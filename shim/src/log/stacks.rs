//! The definitions that make a captured stack readable elsewhere: modules, code objects, stacks.
//!
//! Owns what of them the trace holds already. Does not find frames: see [`crate::stack`].

use std::collections::HashMap;

use trace::codec::{List, Text};
use trace::{LineTable, Op, PyCodeId, PyFrame, StackId};

use crate::real::driver;
use crate::stack::frames::{Frames, MAX_PYTHON};
use crate::stack::native;
use crate::stack::python::{self, Encoding, RawPyFrame};

/// What the trace has definitions of so far.
#[derive(Default)]
pub struct StackDefinitions {
    /// Generation of the module list that the trace knows.
    modules: u32,
    /// By the address of the code object, and a check that differs for its successors there.
    codes: HashMap<(u64, u32), PyCodeId>,
}

impl StackDefinitions {
    /// Writes the definition of a stack, and of everything that it refers to and that is new.
    pub fn define(&mut self, id: StackId, frames: &Frames, mut emit: impl FnMut(&Op<'_>)) {
        if native::modules::generation() != self.modules {
            self.modules = native::modules::modules_since(self.modules, |module| {
                let (path, build_id) = (Text(module.path), module.build_id);
                emit(&Op::Module { start: module.start, end: module.end, bias: module.bias, path, build_id });
            });
        }
        let mut python = [PyFrame::default(); MAX_PYTHON];
        for (to, from) in python.iter_mut().zip(frames.python()) {
            *to = PyFrame { code: self.code(from, &mut emit), offset: from.offset };
        }
        emit(&Op::Stack {
            id,
            native: List::new(frames.native()),
            python: List::new(&python[..frames.python().len()]),
        });
    }

    /// The id of a code object, defining it when it is new.
    fn code(&mut self, frame: &RawPyFrame, emit: &mut impl FnMut(&Op<'_>)) -> PyCodeId {
        if let Some(id) = self.codes.get(&(frame.code, frame.check)) {
            return *id;
        }
        let id = PyCodeId(self.codes.len() as u32 + 1);
        self.codes.insert((frame.code, frame.check), id);
        python::describe(frame, |code| {
            emit(&Op::PyCode {
                id,
                file: code.file.into(),
                name: code.name.into(),
                first_line: code.first_line,
                encoding: match code.encoding {
                    Encoding::Lnotab => LineTable::Lnotab,
                    Encoding::V310 => LineTable::V310,
                    Encoding::V311 => LineTable::V311,
                },
                lines: code.lines,
            });
        });
        id
    }
}

/// Looks for a Python interpreter in the process, if none is known yet. Not to be called with the
/// lock held: it looks symbols up.
pub fn look_for_python() {
    /// As the symboliser of addresses wants it: by name, in everything that is loaded.
    unsafe fn resolve(name: &std::ffi::CStr) -> *mut std::ffi::c_void {
        // SAFETY: RTLD_DEFAULT is a special handle of dlsym.
        unsafe { driver::dlsym(libc::RTLD_DEFAULT, name) }
    }
    // SAFETY: resolve answers addresses of symbols of loaded objects, or null.
    unsafe { python::detect(resolve) };
    if let Some(address) = python::address() {
        native::note_interpreter(address);
    }
}
