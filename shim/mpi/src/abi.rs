//! Which MPI library is loaded, and what differs between libraries: numbers, the width of handles.
//!
//! Owns one row for each binary interface: Open MPI's, MPICH's (Intel MPI, MVAPICH and Cray MPICH
//! share it) and that of MPI 5. Owns the look-up of MPI's functions, for the wrappers and for our
//! own questions. The library is found when the program first calls it; none is needed to build.

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::arguments::Language;

/// What differs between libraries.
#[derive(Clone, Copy, Debug)]
pub struct Abi {
    /// `MPI_IN_PLACE` in C.
    pub in_place: usize,
    /// `MPI_PROC_NULL`.
    pub proc_null: c_int,
    /// `MPI_ROOT`: this process is the root of a call between two groups.
    pub root: c_int,
    /// Bytes of a handle in memory.
    pub handle: usize,
    /// `MPI_COMBINER_NAMED`; `None`: the combiners are those of MPI 5.
    pub named: Option<c_int>,
    /// `MPI_ORDER_FORTRAN`.
    pub order_fortran: c_int,
    /// `MPI_UNDEFINED`.
    pub undefined: c_int,
    /// `MPI_CART`, as `MPI_Topo_test` answers it.
    pub cart: c_int,
    /// `MPI_DIST_GRAPH`.
    pub dist_graph: c_int,
}

const OPEN_MPI: Abi = Abi {
    in_place: 1,
    proc_null: -2,
    root: -4,
    handle: 8,
    named: Some(0),
    order_fortran: 1,
    undefined: -32766,
    cart: 1,
    dist_graph: 3,
};

const MPICH: Abi = Abi {
    in_place: usize::MAX,
    proc_null: -1,
    root: -3,
    handle: 4,
    named: Some(1),
    order_fortran: 57,
    undefined: -32766,
    cart: 2,
    dist_graph: 3,
};

/// MPI 5.0, chapter 20 and appendix A.
const STANDARD: Abi = Abi {
    in_place: 1,
    proc_null: -3,
    root: -4,
    handle: 8,
    named: None,
    order_fortran: 15,
    undefined: -32766,
    cart: 211,
    dist_graph: 213,
};

/// Where MPI's functions are when the library was loaded locally (by an extension of Python).
const LIBRARIES: [&CStr; 9] = [
    c"libmpi.so.40",
    c"libmpi.so.12",
    c"libmpich.so.12",
    c"libmpi_abi.so.1",
    c"libmpi_abi.so.0",
    c"libmpi_mpifh.so.40",
    c"libmpi_usempif08.so.40",
    c"libmpichfort.so.12",
    c"libmpifort.so.12",
];

/// A function of MPI, looked for once.
pub struct MpiFunction {
    name: &'static CStr,
    known: AtomicUsize,
}

const ABSENT: usize = 1;

impl MpiFunction {
    /// The function of this name.
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, known: AtomicUsize::new(0) }
    }

    /// Its address. `own`: our function of the same name, or 0.
    #[inline]
    pub fn find(&self, own: usize) -> Option<usize> {
        match self.known.load(Ordering::Relaxed) {
            0 => self.look_for(own),
            ABSENT => None,
            known => Some(known),
        }
    }

    #[cold]
    fn look_for(&self, own: usize) -> Option<usize> {
        let found = find(self.name);
        let known = if found == 0 || found == own { ABSENT } else { found };
        self.known.store(known, Ordering::Relaxed);
        (known != ABSENT).then_some(known)
    }
}

/// A symbol of MPI behind ours; 0 when there is none.
fn find(name: &CStr) -> usize {
    // SAFETY: RTLD_NEXT and handles of dlopen are what dlsym takes. "Next" means behind this
    // library, whose code calls; the shim's hook of dlsym keeps that.
    unsafe {
        let next = libc::dlsym(libc::RTLD_NEXT, name.as_ptr());
        if !next.is_null() {
            return next as usize;
        }
        for library in LIBRARIES {
            let handle = libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
            if handle.is_null() {
                continue;
            }
            let found = libc::dlsym(handle, name.as_ptr());
            libc::dlclose(handle);
            if !found.is_null() {
                return found as usize;
            }
        }
    }
    0
}

/// What a buffer in Fortran says by being a variable of the library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Marker {
    /// `MPI_IN_PLACE`.
    InPlace = 0,
    /// `MPI_BOTTOM`.
    Bottom = 1,
}

/// Whether an address is that of this variable. Open MPI's are common blocks, under the names that
/// compilers make of them; MPICH has noted where its own lie.
pub fn is_marker(address: usize, marker: Marker) -> bool {
    const BLOCKS: [[&CStr; 4]; 2] = [
        [c"mpi_fortran_in_place_", c"mpi_fortran_in_place", c"mpi_fortran_in_place__", c"MPI_FORTRAN_IN_PLACE"],
        [c"mpi_fortran_bottom_", c"mpi_fortran_bottom", c"mpi_fortran_bottom__", c"MPI_FORTRAN_BOTTOM"],
    ];
    const NOTES: [&CStr; 2] = [c"MPIR_F_MPI_IN_PLACE", c"MPIR_F_MPI_BOTTOM"];
    static KNOWN: OnceLock<[(Vec<usize>, [usize; 2]); 2]> = OnceLock::new();
    let known = KNOWN.get_or_init(|| {
        std::array::from_fn(|which| {
            // SAFETY: a handle and a string that dlsym takes.
            let global = |name: &CStr| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) } as usize;
            let blocks = BLOCKS[which].into_iter().flat_map(|name| [global(name), find(name)]);
            let notes = [global(NOTES[which]), find(NOTES[which])];
            (blocks.filter(|address| *address != 0).collect(), notes)
        })
    });
    let (blocks, notes) = &known[marker as usize];
    // SAFETY: MPICH's variable of this name is a pointer, which its first call from Fortran sets.
    // The program may have a copy of it.
    let noted = |note: usize| note != 0 && unsafe { (note as *const usize).read_unaligned() } == address;
    notes.iter().any(|note| noted(*note)) || blocks.contains(&address)
}

/// The library's interface; `None`: none that is known.
pub fn abi() -> Option<&'static Abi> {
    static ABI: OnceLock<Option<Abi>> = OnceLock::new();
    ABI.get_or_init(recognise).as_ref()
}

fn recognise() -> Option<Abi> {
    if is_standard() {
        return Some(STANDARD);
    }
    if find(c"ompi_mpi_comm_world") != 0 {
        return Some(OPEN_MPI);
    }
    type Version = unsafe extern "C" fn(*mut u8, *mut c_int) -> c_int;
    let version = find(c"MPI_Get_library_version");
    if version == 0 {
        return None;
    }
    // MPI_MAX_LIBRARY_VERSION_STRING is 256 in Open MPI and 8192 in MPICH and MPI 5.
    let mut text = vec![0_u8; 8192];
    let mut len = 0;
    // SAFETY: the function of this name has had this signature since MPI 3; the room is enough.
    let result = unsafe { std::mem::transmute::<usize, Version>(version)(text.as_mut_ptr(), &raw mut len) };
    text.truncate(usize::try_from(len).unwrap_or(0));
    let has = |what: &str| text.windows(what.len()).any(|part| part.eq_ignore_ascii_case(what.as_bytes()));
    let known = ["MPICH", "Intel(R) MPI", "MVAPICH"].into_iter().any(has);
    (result == 0 && known).then_some(MPICH)
}

/// Whether the program's library has the interface of MPI 5: its file says so.
fn is_standard() -> bool {
    let function = find(c"MPI_Init");
    // SAFETY: all-zero is a valid Dl_info to be filled.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: dladdr takes any address.
    let found = unsafe { libc::dladdr(function as *const c_void, &raw mut info) } != 0;
    if function == 0 || !found || info.dli_fname.is_null() {
        return false;
    }
    // SAFETY: a C string of the loader, for as long as the library is loaded.
    let file = unsafe { CStr::from_ptr(info.dli_fname) }.to_bytes();
    file.rsplit(|b| *b == b'/').next().is_some_and(|name| name.starts_with(b"libmpi_abi.so"))
}

/// Whether a function is there and succeeds.
pub(super) fn answers(function: Option<usize>, ask: impl FnOnce(usize) -> bool) -> bool {
    function.is_some_and(ask)
}

/// Asks one of MPI's functions: `ask!(c"MPI_Comm_size"(comm => usize, ...))`, each
/// argument with its type. False: it is not there, or it failed.
macro_rules! ask {
    ($name:literal($($arg:expr => $ty:ty),* $(,)?)) => {{
        static FUNCTION: $crate::abi::MpiFunction =
            $crate::abi::MpiFunction::new($name);
        type Function = unsafe extern "C" fn($($ty),*) -> std::ffi::c_int;
        $crate::abi::answers(FUNCTION.find(0), |function| {
            // SAFETY: MPI's function of this name has this signature, with handles in one word; the
            // handles are those of a call that MPI is about to take, or has taken.
            unsafe { std::mem::transmute::<usize, Function>(function)($($arg),*) == 0 }
        })
    }};
}
pub(super) use ask;

impl Abi {
    /// A handle in C from one in Fortran. MPICH's handles are the same in both.
    pub fn handle_of(&self, language: Language, kind: HandleKind, word: usize) -> usize {
        if self.handle == 4 {
            return word & 0xffff_ffff;
        }
        if language != Language::Fortran {
            return word;
        }
        static CONVERTERS: [[MpiFunction; 2]; 4] = [
            [MpiFunction::new(c"MPI_Type_f2c"), MpiFunction::new(c"MPI_Type_fromint")],
            [MpiFunction::new(c"MPI_Comm_f2c"), MpiFunction::new(c"MPI_Comm_fromint")],
            [MpiFunction::new(c"MPI_Request_f2c"), MpiFunction::new(c"MPI_Request_fromint")],
            [MpiFunction::new(c"MPI_Win_f2c"), MpiFunction::new(c"MPI_Win_fromint")],
        ];
        let Some(convert) = CONVERTERS[kind as usize].iter().find_map(|one| one.find(0)) else { return word };
        // SAFETY: these functions take a Fortran handle, an integer, and answer a handle; unknown
        // numbers give null handles.
        unsafe { std::mem::transmute::<usize, unsafe extern "C" fn(c_int) -> usize>(convert)(word as c_int) }
    }
}

/// Kinds of handles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandleKind {
    /// `MPI_Datatype`.
    Type = 0,
    /// `MPI_Comm`.
    Comm = 1,
    /// `MPI_Request`.
    Request = 2,
    /// `MPI_Win`.
    Window = 3,
}
