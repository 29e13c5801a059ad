//! Rows of the op table: definitions, which are stored once and referenced by id.
//!
//! How to read a row, and how to add one: see the parent module.

macro_rules! definitions {
    ($($rows:tt)*) => { order_ops! { $($rows)*

    /// The process that writes: always the first record.
    1 Process {
        /// Process id.
        pid: u32,
        /// Process id of the parent.
        parent: u32,
        /// Path of the executable.
        exe: Text<'a>,
        /// Arguments, separated by NUL.
        args: Text<'a>,
        /// Working directory.
        cwd: Text<'a>,
        /// Version that `cuDriverGetVersion` returned.
        driver: u32,
    }
    /// The name of an API function.
    2 CallName {
        /// Its id.
        id: CallId,
        /// Its exported name, or the name of the runtime function that the program called.
        name: Text<'a>,
    }
    /// An object file mapped into the process. A later one takes over the addresses that it covers.
    3 Module {
        /// First address mapped.
        start: u64,
        /// One past the last address mapped.
        end: u64,
        /// What to subtract from an address to get the file's own virtual address.
        bias: u64,
        /// Path of the file.
        path: Text<'a>,
        /// GNU build id, empty when there is none.
        build_id: &'a [u8],
    }
    /// A call stack, innermost frame first.
    4 Stack {
        /// Its id.
        id: StackId,
        /// Return addresses of native frames (the first is inside the caller of the CUDA function).
        native: List<'a, u64>,
        /// Python frames of the same thread.
        python: List<'a, PyFrame>,
    }
    /// A Python code object.
    5 PyCode {
        /// Its id.
        id: PyCodeId,
        /// Path of the source file as Python knows it.
        file: Text<'a>,
        /// Qualified name of the function.
        name: Text<'a>,
        /// First line of the function.
        first_line: u32,
        /// Encoding of `lines`.
        encoding: LineTable,
        /// The line table.
        lines: &'a [u8],
    }
    /// A code image that was loaded.
    6 Image {
        /// Its id.
        id: ImageId,
        /// Where the bytes are.
        source: ImageSource,
        /// File name when `source` is `File`.
        path: Text<'a>,
        /// Byte offset in that file.
        offset: u64,
        /// Size in bytes (0: up to the end of the file).
        size: u64,
        /// The bytes when `source` is `Inline`.
        bytes: &'a [u8],
    }
    /// A kernel that was launched for the first time.
    7 Kernel {
        /// Its id.
        id: KernelId,
        /// Mangled name.
        name: Text<'a>,
        /// The image it comes from; [`ImageId::NONE`] when that is not known.
        image: ImageId,
        /// Parameter layout as the driver gives it; empty when it does not.
        params: List<'a, ParamSlot>,
        /// The handle, for `dump`.
        handle: u64,
    }
    /// A host thread that made its first call.
    8 Thread {
        /// Its id.
        id: ThreadId,
        /// Kernel thread id.
        tid: u32,
        /// Name of the thread.
        name: Text<'a>,
    }
    /// A device.
    9 Device {
        /// Ordinal.
        ordinal: u32,
        /// Compute capability, major * 10 + minor.
        arch: u32,
        /// Name as the driver gives it.
        name: Text<'a>,
    }
    /// Something the user should know about the recording itself.
    10 Note {
        /// Kind of the note.
        kind: NoteKind,
        /// The function or the reason.
        text: Text<'a>,
        /// How often.
        count: u64,
    }
    /// What is at one address of an object file: written when the recording ends, so that the trace
    /// can be read where the files are not. One for the function and one for each that is inlined
    /// there, innermost first.
    11 Symbol {
        /// Which object file: how many [`Op::Module`] of this process came before its own.
        module: u32,
        /// The file's own virtual address.
        address: u64,
        /// Function as the programmer wrote it, empty when unknown.
        function: Text<'a>,
        /// Source file, empty when unknown.
        file: Text<'a>,
        /// Line in it, 0 when unknown.
        line: u32,
        /// Whether it was inlined into the next one.
        inlined: bool,
    }
    /// The text of a source line.
    12 Source {
        /// Path of the file, as symbols or Python code objects name it.
        file: Text<'a>,
        /// The line, from 1.
        line: u32,
        /// Its text.
        text: Text<'a>,
    }
    /// The schema of an operator of PyTorch, as the library that registers it has it.
    13 Schema {
        /// The operator as the library's functions are named: `mul_out`.
        operator: Text<'a>,
        /// `aten::mul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)`.
        text: Text<'a>,
    }
    /// What identified the file of an image (a [`Op::Image`] that came before) when it was loaded:
    /// another one may have its name later.
    14 ImageFile {
        /// The image.
        id: ImageId,
        /// Path of the file.
        path: Text<'a>,
        /// Its device.
        device: u64,
        /// Its number there.
        inode: u64,
        /// Its size in bytes.
        size: u64,
        /// When its content was last changed, in seconds since 1970.
        modified: i64,
        /// The same, the nanoseconds.
        nanoseconds: u32,
    }
    /// By which name all processes know a device (an [`Op::Device`] that came before).
    15 DeviceUuid {
        /// Its ordinal in this process.
        ordinal: u32,
        /// The first eight bytes of its UUID.
        first: u64,
        /// The others.
        second: u64,
    }

    } };
}
