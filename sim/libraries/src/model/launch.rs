//! Launches a model.
//!
//! Owns the loaded kernels, one for each name, list of shapes and type of call. A library is not
//! bound to a context, so one serves all devices.

use std::any::TypeId;
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::sync::{Mutex, PoisonError};

use cuda_sys::{CUfunction, CUkernel, CUlibrary, CUresult, CUstream, NativeMemory};

use super::block::{BYTES, Block, Part, Shape};
use super::text;
use crate::numerics::memory::Memory;
use sim_driver_link::private;

/// What a native function computes: plain data that travels in the parameters of the launch.
pub trait Call: Copy + Send + 'static {
    /// Computes. `None`: an address is not mapped, which the memory has taken note of.
    fn run(&self, memory: &Memory<'_>) -> Option<()>;
}

/// # Safety
/// As the type says, for a kernel whose first parameter is a `C`.
unsafe extern "C" fn native<C: Call>(params: *const u8, memory: *const NativeMemory) {
    // SAFETY: the caller's promise.
    let (call, memory) = unsafe { (params.cast::<C>().read_unaligned(), Memory::new(&*memory)) };
    let _ = call.run(&memory);
}

type Key = (String, Vec<Shape>, TypeId);

fn kernel<C: Call>(name: &str, shapes: &[Shape]) -> Result<CUkernel, CUresult> {
    static KNOWN: Mutex<Option<HashMap<Key, usize>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    let key = (name.to_owned(), shapes.to_vec(), TypeId::of::<C>());
    if let Some(&kernel) = known.get(&key) {
        return Ok(CUkernel::from_bits(kernel));
    }
    // Under another driver nothing would compute.
    let table = private().ok_or(CUresult::ERROR_NOT_SUPPORTED)?;
    let text = CString::new(text::text(name, shapes, size_of::<C>())).map_err(|_| CUresult::ERROR_INVALID_VALUE)?;
    let name = CString::new(name).map_err(|_| CUresult::ERROR_INVALID_VALUE)?;
    let none = std::ptr::null_mut::<c_void>();
    let mut library = CUlibrary::from_bits(0);
    let image = text.as_ptr().cast::<c_void>();
    cu!(cuLibraryLoadData(&mut library, image, none.cast(), none.cast(), 0, none.cast(), none.cast(), 0))?;
    // SAFETY: a library that was just loaded, and the function for calls of this type.
    match unsafe { (table.native)(library, name.as_ptr(), native::<C>) } {
        CUresult::SUCCESS => {}
        error => return Err(error),
    }
    let mut kernel = CUkernel::from_bits(0);
    cu!(cuLibraryGetKernel(&mut kernel, library, name.as_ptr()))?;
    known.insert(key, kernel.bits());
    Ok(kernel)
}

/// Most blocks of a grid in y and z.
const MOST: u64 = 65535;

/// Enqueues a call on a stream. `name` is the library's function.
///
/// # Errors
/// What the driver says; `ERROR_NOT_SUPPORTED` for blocks that no grid covers.
pub fn launch<C: Call>(stream: CUstream, name: &str, blocks: &[Block], call: &C) -> Result<(), CUresult> {
    let blocks: Vec<Block> = blocks.iter().map(|block| block.normal()).collect();
    let shapes: Vec<Shape> = blocks.iter().map(|block| block.shape).collect();
    let name = format!("streamsan_{}", name.trim_end_matches("_64").trim_end_matches("_v2"));
    let kernel = kernel::<C>(&name, &shapes)?;
    let most = |axis: usize| blocks.iter().map(|block| block.dims[axis].count).max().unwrap_or(1).max(1);
    let x = most(0).div_ceil(u64::from(text::THREADS));
    if x > i32::MAX as u64 || most(1) > MOST || most(2) > MOST {
        return Err(CUresult::ERROR_NOT_SUPPORTED);
    }
    let params: Vec<[u8; BYTES]> = blocks.iter().map(Block::param).collect();
    let mut pointers: Vec<*mut c_void> = vec![std::ptr::from_ref(call).cast_mut().cast()];
    pointers.extend(params.iter().map(|param| param.as_ptr().cast_mut().cast::<c_void>()));
    let f = CUfunction::from_bits(kernel.bits());
    let (y, z) = (most(1) as u32, most(2) as u32);
    let none = std::ptr::null_mut();
    cu!(cuLaunchKernel(f, x as u32, y, z, text::THREADS, 1, 1, 0, stream, pointers.as_mut_ptr(), none))
}

/// Whether a triangle is asked for.
pub fn part(lower: bool) -> Part {
    if lower { Part::Lower } else { Part::Upper }
}
