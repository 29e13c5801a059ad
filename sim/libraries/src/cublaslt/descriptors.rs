//! Layouts of matrices, descriptions of products, and preferences: structures with attributes.
//!
//! A program may have them made on its own stack (`..._Init_internal`), so each fits into the words
//! that cuBLASLt's header gives it.

use std::ffi::{c_int, c_void};
use std::mem::offset_of;

use crate::cublas::handle::Status;

/// A `cublasLtMatrixLayout_t`: 8 words.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Layout {
    pub kind: i32,
    pub order: i32,
    pub rows: u64,
    pub columns: u64,
    pub ld: i64,
    pub batch_count: i32,
    pub batch_mode: i32,
    pub batch_stride: i64,
    pub plane_offset: i64,
}

/// A `cublasLtMatmulDesc_t`: 32 words.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Description {
    pub compute: i32,
    pub scale: i32,
    pub pointer_mode: i32,
    pub operations: [i32; 3],
    pub fill: i32,
    pub epilogue: u32,
    pub bias: u64,
    pub bias_stride: i64,
    pub aux: u64,
    pub aux_ld: i64,
    pub aux_stride: i64,
    pub alpha_stride: i64,
    multiprocessors: i32,
    fast: i32,
    /// Of A, B, C and D.
    pub scales: [u64; 4],
    pub greatest: u64,
    pub aux_kind: i32,
    pub bias_kind: i32,
    pub aux_scale: u64,
    pub aux_greatest: u64,
    modes: [i32; 6],
    pub out_scale: u64,
    emulation: u64,
}

/// A `cublasLtMatmulPreference_t`: 8 words.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Preference {
    mode: u32,
    reduction: u32,
    workspace: u64,
    alignments: [u32; 4],
    waves: f32,
    padding: u32,
    implementations: u64,
}

const _: () = assert!(size_of::<Layout>() <= 64 && size_of::<Description>() <= 256 && size_of::<Preference>() <= 64);

/// A structure with attributes, each a range of its bytes.
trait Attributes: Copy {
    /// Offset and size of an attribute in bytes.
    fn place(attribute: c_int) -> Option<(usize, usize)>;
}

impl Attributes for Layout {
    fn place(attribute: c_int) -> Option<(usize, usize)> {
        Some(match attribute {
            0 => (offset_of!(Layout, kind), 4),
            1 => (offset_of!(Layout, order), 4),
            2 => (offset_of!(Layout, rows), 8),
            3 => (offset_of!(Layout, columns), 8),
            4 => (offset_of!(Layout, ld), 8),
            5 => (offset_of!(Layout, batch_count), 4),
            6 => (offset_of!(Layout, batch_stride), 8),
            7 => (offset_of!(Layout, plane_offset), 8),
            8 => (offset_of!(Layout, batch_mode), 4),
            _ => return None,
        })
    }
}

impl Attributes for Description {
    fn place(attribute: c_int) -> Option<(usize, usize)> {
        let operation = |at: usize| (offset_of!(Description, operations) + 4 * at, 4);
        let scale = |at: usize| (offset_of!(Description, scales) + 8 * at, 8);
        let mode = |at: usize| (offset_of!(Description, modes) + 4 * at, 4);
        Some(match attribute {
            0 => (offset_of!(Description, compute), 4),
            1 => (offset_of!(Description, scale), 4),
            2 => (offset_of!(Description, pointer_mode), 4),
            3 => operation(0),
            4 => operation(1),
            5 => operation(2),
            6 => (offset_of!(Description, fill), 4),
            7 => (offset_of!(Description, epilogue), 4),
            8 => (offset_of!(Description, bias), 8),
            10 => (offset_of!(Description, bias_stride), 8),
            11 => (offset_of!(Description, aux), 8),
            12 => (offset_of!(Description, aux_ld), 8),
            13 => (offset_of!(Description, aux_stride), 8),
            14 => (offset_of!(Description, alpha_stride), 8),
            15 => (offset_of!(Description, multiprocessors), 4),
            17 => scale(0),
            18 => scale(1),
            19 => scale(2),
            20 => scale(3),
            21 => (offset_of!(Description, greatest), 8),
            22 => (offset_of!(Description, aux_kind), 4),
            23 => (offset_of!(Description, aux_scale), 8),
            24 => (offset_of!(Description, aux_greatest), 8),
            25 => (offset_of!(Description, fast), 1),
            26 => (offset_of!(Description, bias_kind), 4),
            31 => mode(0),
            32 => mode(1),
            33 => mode(2),
            34 => mode(3),
            35 => mode(4),
            36 => (offset_of!(Description, out_scale), 8),
            37 => mode(5),
            38 => (offset_of!(Description, emulation), 8),
            _ => return None,
        })
    }
}

impl Attributes for Preference {
    fn place(attribute: c_int) -> Option<(usize, usize)> {
        Some(match attribute {
            0 => (offset_of!(Preference, mode), 4),
            1 => (offset_of!(Preference, workspace), 8),
            3 => (offset_of!(Preference, reduction), 4),
            5..=8 => (offset_of!(Preference, alignments) + 4 * (attribute as usize - 5), 4),
            9 => (offset_of!(Preference, waves), 4),
            12 => (offset_of!(Preference, implementations), 8),
            _ => return None,
        })
    }
}

impl Layout {
    fn new(kind: c_int, rows: u64, columns: u64, ld: i64) -> Layout {
        Layout { kind, rows, columns, ld, batch_count: 1, ..Layout::default() }
    }
}

impl Description {
    fn new(compute: c_int, scale: c_int) -> Description {
        Description { compute, scale, fill: 2, epilogue: 1, aux_kind: -1, bias_kind: -1, ..Description::default() }
    }
}

impl Preference {
    fn new() -> Preference {
        Preference { alignments: [256; 4], ..Preference::default() }
    }
}

/// Hands out a new structure.
fn create<T>(to: *mut *mut T, value: T) -> c_int {
    if to.is_null() {
        return Status::INVALID_VALUE.0;
    }
    // SAFETY: the C interface: a non-null output pointer is writable.
    unsafe { to.write(Box::into_raw(Box::new(value))) };
    0
}

/// Fills a structure of the program's.
fn initialise<T>(to: *mut T, size: usize, value: T) -> c_int {
    if to.is_null() || size < size_of::<T>() {
        return Status::INVALID_VALUE.0;
    }
    // SAFETY: the program has given as many bytes.
    unsafe { to.write(value) };
    0
}

/// # Safety
/// `of` is null or came from [`create`], and is not used again.
unsafe fn destroy<T>(of: *mut T) -> c_int {
    if of.is_null() {
        return Status::INVALID_VALUE.0;
    }
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(of) });
    0
}

fn set<T: Attributes>(of: *mut T, attribute: c_int, from: *const u8, size: usize) -> c_int {
    let Some((at, bytes)) = T::place(attribute) else { return Status::INVALID_VALUE.0 };
    if of.is_null() || from.is_null() || size < bytes {
        return Status::INVALID_VALUE.0;
    }
    // SAFETY: the attribute lies in the structure, and the program has given as many bytes.
    unsafe { std::ptr::copy_nonoverlapping(from, of.cast::<u8>().add(at), bytes) };
    0
}

fn get<T: Attributes>(of: *const T, attribute: c_int, to: *mut u8, size: usize, written: *mut usize) -> c_int {
    let Some((at, bytes)) = T::place(attribute) else { return Status::INVALID_VALUE.0 };
    if of.is_null() || (size == 0 && written.is_null()) || (size > 0 && (to.is_null() || size < bytes)) {
        return Status::INVALID_VALUE.0;
    }
    // SAFETY: the attribute lies in the structure; the program's pointers have room, where they are
    // not null.
    unsafe {
        if size > 0 {
            std::ptr::copy_nonoverlapping(of.cast::<u8>().add(at), to, bytes);
        }
        if !written.is_null() {
            written.write(bytes);
        }
    }
    0
}

macro_rules! structure {
    ($T:ty: $create:ident $initialise:ident $destroy:ident $set:ident $get:ident ($($arg:ident: $ty:ty),*)) => {
        // SAFETY: the names and signatures of cuBLASLt.
        #[unsafe(no_mangle)]
        extern "C" fn $create(to: *mut *mut $T, $($arg: $ty),*) -> c_int {
            create(to, <$T>::new($($arg),*))
        }
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        extern "C" fn $initialise(to: *mut $T, size: usize, $($arg: $ty),*) -> c_int {
            initialise(to, size, <$T>::new($($arg),*))
        }
        /// # Safety
        /// What the library's own function made, and not used again.
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $destroy(of: *mut $T) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { destroy(of) }
        }
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        extern "C" fn $set(of: *mut $T, attribute: c_int, from: *const c_void, size: usize) -> c_int {
            set(of, attribute, from.cast(), size)
        }
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        extern "C" fn $get(
            of: *const $T, attribute: c_int, to: *mut c_void, size: usize, written: *mut usize,
        ) -> c_int {
            get(of, attribute, to.cast(), size, written)
        }
    };
}

structure! { Layout:
    cublasLtMatrixLayoutCreate cublasLtMatrixLayoutInit_internal cublasLtMatrixLayoutDestroy
    cublasLtMatrixLayoutSetAttribute cublasLtMatrixLayoutGetAttribute (kind: c_int, rows: u64, columns: u64, ld: i64)
}
structure! { Description:
    cublasLtMatmulDescCreate cublasLtMatmulDescInit_internal cublasLtMatmulDescDestroy
    cublasLtMatmulDescSetAttribute cublasLtMatmulDescGetAttribute (compute: c_int, scale: c_int)
}
structure! { Preference:
    cublasLtMatmulPreferenceCreate cublasLtMatmulPreferenceInit_internal cublasLtMatmulPreferenceDestroy
    cublasLtMatmulPreferenceSetAttribute cublasLtMatmulPreferenceGetAttribute ()
}
