//! One stack out of native and Python frames, with frames of no interest folded.
//!
//! Owns two rules. *Python*: every run of the interpreter's loop is one native frame. It is
//! replaced by the Python frames that it runs, and the interpreter's other frames are left out.
//! *Folding*: consecutive frames of the driver, of cudart, of StreamSan itself, of the dynamic
//! loader and of the C library's start-up become one entry, and so do those of Rust's ([`rust`]).

use super::object::SourceLocation;
use super::rust;
use crate::frame::{Frame, FrameKind};

/// The functions at one return address.
pub(crate) struct NativeFrame {
    address: u64,
    module: Option<String>,
    known: bool,
    /// Whether it is only code that nvcc puts between a launch and the runtime.
    glue: bool,
    /// Innermost first; never empty.
    places: Vec<SourceLocation>,
}

/// A Python frame, and whether the next one belongs to another run of the interpreter's loop.
pub(crate) struct PythonFrame {
    /// The frame.
    pub(crate) frame: Frame,
    /// Outermost of its run.
    pub(crate) entry: bool,
}

/// The name of the folded frames of the C library's start-up.
const START_UP: &str = "the C library's start-up";

/// What becomes of a native frame.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    /// Shown.
    Shown,
    /// A run of the interpreter's loop.
    Loop,
    /// Any other function of the interpreter.
    Interpreter,
    /// Folded, under this name.
    Folded(String),
}

impl NativeFrame {
    /// A frame of which only a text is known.
    pub(crate) fn unknown(address: u64, text: String, module: Option<&str>) -> Self {
        let place = SourceLocation { function: Some(text), ..SourceLocation::default() };
        Self { address, module: module.map(str::to_string), known: false, glue: false, places: vec![place] }
    }

    /// A frame with known functions. `places` must not be empty.
    pub(crate) fn known(address: u64, module: &str, places: Vec<SourceLocation>) -> Self {
        Self { address, module: Some(module.to_string()), known: true, glue: false, places }
    }

    fn module_name(&self) -> &str {
        self.module.as_deref().map_or("", |path| path.rsplit('/').next().unwrap_or(path))
    }

    fn outer(&self) -> (&str, bool) {
        let place = self.places.last();
        (
            place.and_then(|place| place.function.as_deref()).unwrap_or(""),
            place.is_some_and(|place| place.file.is_some()),
        )
    }

    fn part(&self) -> Part {
        let module = self.module_name();
        let (function, has_source) = self.outer();
        if function.starts_with("_PyEval_EvalFrameDefault") || function.starts_with("_TAIL_CALL_") {
            return Part::Loop;
        }
        if is_interpreter(module) {
            return Part::Interpreter;
        }
        if is_hidden_module(module) || self.module.as_deref().is_some_and(is_stand_in) {
            return Part::Folded(module.to_string());
        }
        if self.glue {
            return Part::Folded("cudart".to_string());
        }
        if module.starts_with("libffi.so") || module.starts_with("_ctypes.") {
            return Part::Folded("ctypes".to_string());
        }
        if is_start_up(function) && (is_c_library(module) || function == "_start") {
            return Part::Folded(START_UP.to_string());
        }
        if !has_source && is_static_cudart(function) {
            return Part::Folded("cudart".to_string());
        }
        Part::Shown
    }

    fn frames(self) -> impl Iterator<Item = Frame> {
        let Self { address, module, places, .. } = self;
        places.into_iter().map(move |place| Frame {
            kind: FrameKind::Native,
            function: place.function.unwrap_or_default(),
            file: place.file,
            line: place.line,
            module: module.clone(),
            address,
            inlined: place.inlined,
            source: None,
        })
    }
}

fn is_interpreter(module: &str) -> bool {
    module.strip_prefix("lib").unwrap_or(module).starts_with("python")
}

fn is_hidden_module(module: &str) -> bool {
    const HIDDEN: [&str; 5] = ["libcuda.so", "libcudart.so", "libcudart-", "libstreamsan", "ld-linux"];
    HIDDEN.iter().any(|prefix| module.starts_with(prefix)) || (module.starts_with("ld-") && module.contains(".so"))
}

/// Whether it is one of the simulator's stand-ins for CUDA's libraries, which lie in a folder of
/// their own. NVIDIA's own libraries are shown: they call what the program did not.
fn is_stand_in(path: &str) -> bool {
    const LIBRARIES: [&str; 3] = ["libcu", "libnccl", "libnvshmem"];
    let Some((folder, file)) = path.rsplit_once('/') else { return false };
    folder.ends_with("/sim") && LIBRARIES.iter().any(|prefix| file.starts_with(prefix))
}

fn is_c_library(module: &str) -> bool {
    ["libc.so", "libc-", "libpthread"].iter().any(|prefix| module.starts_with(prefix))
}

fn is_start_up(function: &str) -> bool {
    const NAMES: [&str; 8] = [
        "_start",
        "__libc_start_main",
        "__libc_start_main_impl",
        "__libc_start_call_main",
        "start_thread",
        "clone",
        "clone3",
        "__clone3",
    ];
    NAMES.contains(&function.split('@').next().unwrap_or(function)) || function == "__clone"
}

/// Whether it is a function of `libcudart_static.a`, linked into the program: API functions and
/// internals.
fn is_static_cudart(function: &str) -> bool {
    function.starts_with("__cudart")
        || function.starts_with("libcudart_static_")
        || function.starts_with("cudart::")
        || function.strip_prefix("cuda").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
        || function.starts_with("__cudaRegister")
}

/// Files that nvcc puts between a launch and CUDA's runtime: its headers and what it generates.
fn is_generated(file: &str) -> bool {
    const HEADERS: [&str; 4] =
        ["/device_functions.h", "/cuda_runtime.h", "/cuda_runtime_api.h", "/cooperative_groups_helpers.h"];
    file.contains("tmpxft_") || HEADERS.iter().any(|header| file.ends_with(header))
}

/// Whether it is a function of CUDA's headers that CUDA 13's stubs launch through
/// (`__cudaLaunchKernel_helper` of `crt/host_runtime.h`). Built without `-g` it bears no file.
fn is_launch_helper(function: &str) -> bool {
    function.starts_with("__cudaLaunchKernel") || function.starts_with("__cudaGetKernel")
}

/// The kernel that a host stub launches, as the programmer wrote its name.
fn stub_of(function: &str) -> Option<String> {
    // Of a template, the stub has the kernel's name as it was written.
    if let Some((_, rest)) = function.split_once("__wrapper__device_stub_") {
        return Some(base_name(rest).to_string());
    }
    let rest = function.strip_prefix("__device_stub__")?;
    let mangled = rest.split('(').next().unwrap_or(rest);
    let name = super::demangle(&format!("_{mangled}"));
    Some(base_name(&name).to_string())
}

/// A function's name without return type and parameters.
fn base_name(function: &str) -> &str {
    let end = function.find(['(', '<']).unwrap_or(function.len());
    function[..end].rsplit(' ').next().unwrap_or(function)
}

/// Removes nvcc's glue from launches: header functions, the stub, and the kernel's own name on the
/// host, which calls the stub. A frame that is only glue is kept, to be folded.
fn without_glue(native: &mut [NativeFrame]) {
    let mut launched: Option<String> = None;
    for frame in native {
        let is_glue = |place: &SourceLocation, launched: &mut Option<String>| {
            let function = place.function.as_deref().unwrap_or("");
            if let Some(kernel) = stub_of(function) {
                *launched = Some(kernel);
                return true;
            }
            if place.file.as_deref().is_some_and(is_generated) || is_launch_helper(function) {
                return true;
            }
            launched.take().is_some_and(|kernel| base_name(function) == kernel)
        };
        let kept: Vec<SourceLocation> =
            frame.places.iter().filter(|place| !is_glue(place, &mut launched)).cloned().collect();
        frame.glue = kept.is_empty();
        if !frame.glue {
            frame.places = kept;
        }
    }
}

/// Merges native and Python frames. Both lists are innermost first.
pub(crate) fn merge(mut native: Vec<NativeFrame>, python: Vec<PythonFrame>) -> Vec<Frame> {
    without_glue(&mut native);
    let rust = rust::start_up(native.iter_mut().map(|frame| &mut frame.places));
    let mut parts: Vec<_> = native.iter().map(NativeFrame::part).collect();
    for part in parts.iter_mut().skip(rust).filter(|part| !matches!(part, Part::Loop | Part::Interpreter)) {
        *part = Part::Folded(rust::START_UP.to_string());
    }
    // Without symbols, the outermost frames of the C library are its start-up.
    for (part, frame) in parts.iter_mut().zip(&native).rev() {
        // The interpreter's own start-up is around it.
        if *part == Part::Interpreter {
            continue;
        }
        if *part == Part::Shown && !frame.known && is_c_library(frame.module_name()) {
            *part = Part::Folded(START_UP.to_string());
        }
        if *part != Part::Folded(START_UP.to_string()) {
            break;
        }
    }
    if python.is_empty() {
        for (part, frame) in parts.iter_mut().zip(&native) {
            if matches!(part, Part::Loop | Part::Interpreter) {
                *part = Part::Folded(frame.module_name().to_string());
            }
        }
        return fold(native.into_iter().zip(parts).map(|(frame, part)| Item::Native(frame, part)));
    }
    if !parts.contains(&Part::Loop)
        && let Some(inner) = parts.iter_mut().find(|part| **part == Part::Interpreter)
    {
        // An interpreter without symbols: its innermost frame stands for all runs.
        *inner = Part::Loop;
    }
    let loops = parts.iter().filter(|part| **part == Part::Loop).count();
    let runs = python.iter().filter(|frame| frame.entry).count();
    // The native stack may be cut (a limit, or code without unwind information): then only its
    // inner part can be matched.
    let matched = if runs >= loops && runs > 0 { loops } else { loops.min(1) };
    let mut python = python.into_iter().peekable();
    let mut items = Vec::new();
    let mut seen = 0;
    for (frame, part) in native.into_iter().zip(parts) {
        match part {
            Part::Loop => {
                seen += 1;
                while seen <= matched
                    && let Some(inner) = python.next()
                {
                    let last = inner.entry && seen < matched;
                    items.push(Item::Python(inner.frame));
                    if last {
                        break;
                    }
                }
            }
            // Frames between the outermost run and the start of the program are the interpreter's
            // own start-up.
            Part::Interpreter => {}
            part => items.push(Item::Native(frame, part)),
        }
    }
    // There is no frame of the interpreter (its native stack could not be followed): Python frames
    // are outside of what they call.
    if python.peek().is_some() {
        items.extend(python.map(|inner| Item::Python(inner.frame)));
    }
    fold(items.into_iter())
}

enum Item {
    Native(NativeFrame, Part),
    Python(Frame),
}

fn fold(items: impl Iterator<Item = Item>) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    let mut open: Option<Fold> = None;
    for item in items {
        match item {
            Item::Native(frame, Part::Folded(name)) => match &mut open {
                Some(fold) if fold.name == name => {
                    fold.count += 1;
                    fold.entered(&frame);
                }
                _ => {
                    close(&mut frames, open.take());
                    frames.push(Frame {
                        kind: FrameKind::Folded,
                        function: String::new(),
                        file: None,
                        line: None,
                        module: frame.module.clone(),
                        address: frame.address,
                        inlined: false,
                        source: None,
                    });
                    let mut fold = Fold { name, count: 1, entry: None };
                    fold.entered(&frame);
                    open = Some(fold);
                }
            },
            Item::Native(frame, _) => {
                close(&mut frames, open.take());
                frames.extend(frame.frames());
            }
            Item::Python(frame) => {
                close(&mut frames, open.take());
                frames.push(frame);
            }
        }
    }
    close(&mut frames, open);
    frames
}

/// Frames that are being folded into one.
struct Fold {
    name: String,
    count: usize,
    /// The outermost function of CUDA's libraries among them: the one that the program called.
    entry: Option<String>,
}

impl Fold {
    fn entered(&mut self, frame: &NativeFrame) {
        let (function, _) = frame.outer();
        const LIBRARIES: [&str; 2] = ["cuda", "cublas"];
        let rest = LIBRARIES.iter().find_map(|prefix| function.strip_prefix(prefix)).unwrap_or("");
        if rest.starts_with(|c: char| c.is_ascii_uppercase())
            && rest.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        {
            let name = function.trim_end_matches("_ptsz").trim_end_matches("_ptds");
            self.entry = Some(name.to_string());
        }
    }
}

const ENTERED: &str = ", entered by ";

/// The function of CUDA's runtime through which a folded frame was entered, if known.
pub fn entered_by(frame: &Frame) -> Option<&str> {
    let (_, name) = frame.function.split_once(ENTERED)?;
    (frame.kind == FrameKind::Folded).then(|| name.trim_end_matches(']'))
}

/// Gives the last frame, a folded one, its text.
fn close(frames: &mut [Frame], open: Option<Fold>) {
    if let (Some(frame), Some(Fold { name, count, entry })) = (frames.last_mut(), open) {
        let entry = entry.map_or_else(String::new, |entry| format!("{ENTERED}{entry}"));
        frame.function = format!("[{count} {} of {name}{entry}]", if count == 1 { "frame" } else { "frames" });
    }
}
