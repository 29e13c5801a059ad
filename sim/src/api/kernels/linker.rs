//! The just-in-time linker: several PTX texts go in, one comes out.

use std::sync::{Arc, Mutex};

use cuda_sys::*;

use crate::api::*;
use crate::config;
use crate::handles::Handles;
use crate::loader::fatbin;

/// One linking under way.
#[derive(Default)]
struct Link {
    /// PTX texts with a zero at the end, as modules are loaded from them.
    inputs: Mutex<Vec<Vec<u8>>>,
    /// What they were joined to, each time that was asked for.
    images: Mutex<Vec<Vec<u8>>>,
}

/// The member of `libcudadevrt.a`.
const DEVICE_RUNTIME: &[u8] = b"cuda_device_runtime.o/";

static LINKS: Handles<Link> = Handles::new();

fn add(state: CUlinkState, kind: CUjitInputType, data: &[u8]) -> Res {
    if kind == CU_JIT_INPUT_LIBRARY && is_device_runtime(data) {
        // Its functions are the interpreter's own.
        return Ok(());
    }
    if !matches!(kind, CU_JIT_INPUT_PTX | CU_JIT_INPUT_FATBINARY) {
        crate::status::complain(&format!("the linker takes PTX only, not {kind:?}"));
        return Err(CUresult::ERROR_NOT_SUPPORTED);
    }
    let text = fatbin::find_ptx_in(data, config::get_or_default().arch).map_err(|error| {
        error.report("linker input");
        error.status()
    })?;
    let mut bytes = text.into_bytes();
    bytes.push(0);
    let link = LINKS.get(state.bits())?;
    link.inputs.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(bytes);
    Ok(())
}

/// Whether an archive is `libcudadevrt.a`: one member, of a name that is too long to stand in its
/// header.
fn is_device_runtime(data: &[u8]) -> bool {
    const HEADER: usize = 60;
    let Some(mut rest) = data.strip_prefix(b"!<arch>\n") else { return false };
    let (mut names, mut members) = (&[][..], 0);
    while rest.len() >= HEADER {
        let (header, behind) = rest.split_at(HEADER);
        let size = std::str::from_utf8(&header[48..58]).ok().and_then(|size| size.trim().parse::<usize>().ok());
        let Some(size) = size.filter(|&size| size <= behind.len()) else { return false };
        match header[..16].trim_ascii_end() {
            b"/" => {}
            b"//" => names = &behind[..size],
            _ => members += 1,
        }
        rest = behind.get(size + size % 2..).unwrap_or_default();
    }
    members == 1 && names.starts_with(DEVICE_RUNTIME)
}

abi! {
    call fn [cuLinkCreate plain, cuLinkCreate_v2 plain](
        _z, num_options: c_uint, options: *mut CUjit_option, values: *mut *mut c_void, state: *mut CUlinkState
    ) {
        thread::context()?;
        put(state, CUlinkState::from_bits(LINKS.insert(Arc::default())))
    }
    call fn [cuLinkAddData plain, cuLinkAddData_v2 plain](
        _z, state: CUlinkState, kind: CUjitInputType, data: *mut c_void, size: usize, name: *const c_char,
        num_options: c_uint, options: *mut CUjit_option, values: *mut *mut c_void
    ) {
        add(state, kind, &list(data.cast::<u8>(), size)?)
    }
    call fn [cuLinkAddFile plain, cuLinkAddFile_v2 plain](
        _z, state: CUlinkState, kind: CUjitInputType, path: *const c_char, num_options: c_uint,
        options: *mut CUjit_option, values: *mut *mut c_void
    ) {
        let bytes = std::fs::read(text(path)?).map_err(|_| CUresult::ERROR_FILE_NOT_FOUND)?;
        add(state, kind, &bytes)
    }
    call fn [cuLinkComplete plain](_z, state: CUlinkState, image: *mut *mut c_void, size: *mut usize) {
        let link = LINKS.get(state.bits())?;
        let inputs = link.inputs.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let texts: Vec<_> = inputs.iter().map(|bytes| String::from_utf8_lossy(&bytes[..bytes.len() - 1])).collect();
        let joined = match texts.as_slice() {
            [one] => one.clone().into_owned(),
            several => ::device_code::ptx::link(&several.iter().map(|text| &**text).collect::<Vec<_>>()).map_err(|why| {
                let error = fatbin::ImageError::from(why);
                error.report(&format!("{} images", several.len()));
                error.status()
            })?,
        };
        let mut bytes = joined.into_bytes();
        bytes.push(0);
        // Valid until the state is destroyed, as the interface says.
        put_if(size, bytes.len());
        let done = put(image, bytes.as_ptr().cast_mut().cast());
        link.images.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(bytes);
        done
    }
    call fn [cuLinkDestroy plain](_z, state: CUlinkState) {
        LINKS.remove(state.bits()).map(|_| ())
    }
}
