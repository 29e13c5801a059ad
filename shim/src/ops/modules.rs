//! Modules and libraries: where kernels come from.
//!
//! Owns the definitions of images. An image is stored once: by reference when its bytes lie in a
//! read-only mapping of a file that is still there (nvcc's fatbins: libtorch carries gigabytes),
//! otherwise by value (what Triton, NVRTC and the linker produce). Does not read code.

use std::ffi::CStr;

use cuda_sys::*;
use trace::codec::Text;
use trace::{FileIdentity, ImageId, ImageSource, Op};

use crate::handles::unlisted_images::ImageOwner;
use crate::ids::image_bytes::{self, Stored, identity_at};
use crate::observe::host_watch::variable_found;
use crate::runtime::handle_cache::{self, Remembered};

use crate::observe::Cx;

fn remember_image(cx: &mut Cx<'_>, owner: *mut c_void, image: ImageId) {
    if let Some(core) = cx.core() {
        core.handles.images.insert(owner as u64, image);
    }
}

fn image_known(cx: &Cx<'_>, owner: *mut c_void) -> Option<ImageId> {
    cx.core()?.handles.images.get(&(owner as u64)).map(|id| *id)
}

/// An image was loaded from memory.
///
/// # Safety
/// `bytes` is an image that the driver has accepted.
unsafe fn module_loaded(cx: &mut Cx<'_>, owner: *mut c_void, owned_by: ImageOwner, bytes: *const c_void) {
    let Some(core) = cx.core() else { return };
    forget_earlier(cx, owner);
    let id = ImageId(core.handles.fresh());
    // SAFETY: forwarded from the caller.
    let Some(span) = (unsafe { image_bytes::span(bytes.cast()) }) else { return };
    if image_bytes::file_of(span.as_ptr(), span.len()).is_some() {
        core.handles.unlisted.add(owner, owned_by, id, span);
    }
    match image_bytes::stored(span, &core.handles.image_files) {
        Stored::File(path, offset, identity) => define_in_file(cx, id, &path, (offset, span.len() as u64), identity),
        Stored::Here => define_inline(cx, id, span),
    }
    remember_image(cx, owner, id);
}

/// Defines an image by its bytes.
fn define_inline(cx: &mut Cx<'_>, id: ImageId, bytes: &[u8]) {
    let size = bytes.len() as u64;
    cx.define(&Op::Image { id, source: ImageSource::Inline, path: Text(&[]), offset: 0, size, bytes });
}

/// Defines an image by its file, from an offset on and so long.
fn define_in_file(
    cx: &mut Cx<'_>,
    id: ImageId,
    path: &[u8],
    (offset, size): (u64, u64),
    identity: Option<FileIdentity>,
) {
    let path = Text(path);
    cx.define(&Op::Image { id, source: ImageSource::File, path, offset, size, bytes: &[] });
    if let Some(identity) = identity {
        cx.define(&identity.op(id, path));
    }
}

/// Forgets the image before under this handle, where it went away unseen.
fn forget_earlier(cx: &mut Cx<'_>, owner: *mut c_void) {
    if image_known(cx, owner).is_some() {
        module_unloaded(cx, owner);
    }
}

/// An image was loaded from a file.
///
/// # Safety
/// `path` is a C string.
unsafe fn module_file_loaded(cx: &mut Cx<'_>, owner: *mut c_void, path: *const c_char) {
    let Some(core) = cx.core() else { return };
    forget_earlier(cx, owner);
    let id = ImageId(core.handles.fresh());
    // SAFETY: forwarded from the caller.
    let path = unsafe { CStr::from_ptr(path) };
    match image_bytes::small_file(path) {
        Some(bytes) => define_inline(cx, id, &bytes),
        None => define_in_file(cx, id, path.to_bytes(), (0, 0), identity_at(path.to_bytes())),
    }
    remember_image(cx, owner, id);
}

/// A function or kernel was got from a module or library.
///
/// # Safety
/// `name` is null or a C string.
unsafe fn got_from(cx: &mut Cx<'_>, function: *mut c_void, owner: *mut c_void, name: *const c_char) {
    let Some(core) = cx.core() else { return };
    if let Some(image) = image_known(cx, owner) {
        core.handles.images.insert(function as u64, image);
        if !name.is_null() {
            // SAFETY: forwarded from the caller.
            let name = unsafe { CStr::from_ptr(name) }.to_bytes();
            let known = core.handles.kernel_names.get(name).map(|known| *known);
            let unique = known.is_none_or(|known| known == image);
            let entry = if unique { image } else { ImageId::NONE };
            if known != Some(entry) {
                core.handles.kernel_names.insert(name.into(), entry);
            }
        }
    }
    // The handle may have belonged to a kernel of a module that was unloaded since.
    if core.handles.kernels.remove(&(function as u64)).is_some() {
        handle_cache::invalidate(Remembered::Kernels, function as u64);
    }
}

/// A module or library goes away: its kernels' handles may come back as others. Of a kernel
/// whose image is not known, nobody can say whether it was one of them.
fn module_unloaded(cx: &mut Cx<'_>, owner: *mut c_void) {
    let Some(core) = cx.core() else { return };
    let images = &core.handles.images;
    if cx.is_before() {
        cx.token = images.get(&(owner as u64)).map_or(0, |image| u64::from(image.0));
        return;
    }
    let gone = Some(ImageId(cx.token as u32)).filter(|image| !image.is_none());
    if images.remove_if(&(owner as u64), |_, image| Some(*image) == gone).is_some() || gone.is_none() {
        core.handles.unlisted.remove(owner);
    }
    core.handles.kernels.retain(|handle, _| images.get(handle).is_some_and(|of| Some(*of) != gone));
    if let Some(gone) = gone {
        images.retain(|_, of| *of != gone);
    }
    handle_cache::invalidate(Remembered::Kernels, 0);
}

/// A context went away, and its modules with it: handles of their functions may come back as
/// others.
pub(crate) fn forget_kernels(cx: &mut Cx<'_>) {
    if let Some(core) = cx.core() {
        core.handles.kernels.clear();
        handle_cache::invalidate(Remembered::Kernels, 0);
    }
}

/// The driver named both a function and the library's kernel that it is in one context.
/// Programs may never have seen the function, and kernels of other images may have its name.
pub(crate) fn function_of_kernel(cx: &mut Cx<'_>, function: *mut c_void, kernel: *mut c_void) {
    if !function.is_null()
        && let Some(image) = image_known(cx, kernel)
    {
        remember_image(cx, function, image);
    }
}

/// The address of a variable was asked for.
///
/// # Safety
/// `name` is a C string.
unsafe fn global_found(cx: &mut Cx<'_>, ptr: u64, size: u64, owner: *mut c_void, name: *const c_char) {
    let image = image_known(cx, owner).unwrap_or(ImageId::NONE);
    let name = if name.is_null() {
        Text(&[])
    } else {
        // SAFETY: forwarded from the caller.
        Text(unsafe { CStr::from_ptr(name) }.to_bytes())
    };
    cx.log(&Op::Global { ptr, size, image, name });
    variable_found(cx, ptr, size);
}

pub(crate) unsafe fn cuModuleLoad(cx: &mut Cx<'_>, module: *mut CUmodule, file_name: *const c_char) {
    // SAFETY: the call succeeded, so it has written the handle and read the name.
    unsafe { module_file_loaded(cx, (*module).0, file_name) };
}

pub(crate) unsafe fn cuModuleLoadData(cx: &mut Cx<'_>, module: *mut CUmodule, image: *const c_void) {
    // SAFETY: the call succeeded, so it has written the handle and accepted the image.
    unsafe { module_loaded(cx, (*module).0, ImageOwner::Module, image) };
}

pub(crate) unsafe fn cuModuleLoadDataEx(
    cx: &mut Cx<'_>,
    module: *mut CUmodule,
    image: *const c_void,
    _num_options: c_uint,
    _options: *mut CUjit_option,
    _option_values: *mut *mut c_void,
) {
    // SAFETY: the call succeeded, so it has written the handle and accepted the image.
    unsafe { module_loaded(cx, (*module).0, ImageOwner::Module, image) };
}

pub(crate) unsafe fn cuModuleLoadFatBinary(cx: &mut Cx<'_>, module: *mut CUmodule, fat_cubin: *const c_void) {
    // SAFETY: the call succeeded, so it has written the handle and accepted the image.
    unsafe { module_loaded(cx, (*module).0, ImageOwner::Module, fat_cubin) };
}

pub(crate) unsafe fn cuModuleUnload(cx: &mut Cx<'_>, module: CUmodule) {
    module_unloaded(cx, module.0);
}

pub(crate) unsafe fn cuModuleGetFunction(
    cx: &mut Cx<'_>,
    function: *mut CUfunction,
    module: CUmodule,
    name: *const c_char,
) {
    // SAFETY: the call succeeded: it has written the handle and read the name.
    unsafe { got_from(cx, (*function).0, module.0, name) };
}

pub(crate) unsafe fn cuModuleEnumerateFunctions(
    cx: &mut Cx<'_>,
    functions: *mut CUfunction,
    num_functions: c_uint,
    module: CUmodule,
) {
    for index in 0..num_functions as usize {
        // SAFETY: the call has written num_functions handles.
        unsafe { got_from(cx, (*functions.add(index)).0, module.0, std::ptr::null()) };
    }
}

pub(crate) unsafe fn cuModuleGetGlobal(
    cx: &mut Cx<'_>,
    ptr: *mut CUdeviceptr_v1,
    bytes: *mut c_uint,
    module: CUmodule,
    name: *const c_char,
) {
    if !ptr.is_null() && !bytes.is_null() {
        // SAFETY: the call succeeded: it has written both and read the name.
        unsafe { global_found(cx, u64::from(*ptr), u64::from(*bytes), module.0, name) };
    }
}

pub(crate) unsafe fn cuModuleGetGlobal_v2(
    cx: &mut Cx<'_>,
    ptr: *mut CUdeviceptr,
    bytes: *mut usize,
    module: CUmodule,
    name: *const c_char,
) {
    if !ptr.is_null() && !bytes.is_null() {
        // SAFETY: the call succeeded: it has written both and read the name.
        unsafe { global_found(cx, *ptr, *bytes as u64, module.0, name) };
    }
}

pub(crate) unsafe fn cuLibraryLoadData(
    cx: &mut Cx<'_>,
    library: *mut CUlibrary,
    code: *const c_void,
    _jit_options: *mut CUjit_option,
    _jit_options_values: *mut *mut c_void,
    _num_jit_options: c_uint,
    _library_options: *mut CUlibraryOption,
    _library_option_values: *mut *mut c_void,
    _num_library_options: c_uint,
) {
    // SAFETY: the call succeeded, so it has written the handle and accepted the image.
    unsafe { module_loaded(cx, (*library).0, ImageOwner::Library, code) };
}

pub(crate) unsafe fn cuLibraryLoadFromFile(
    cx: &mut Cx<'_>,
    library: *mut CUlibrary,
    file_name: *const c_char,
    _jit_options: *mut CUjit_option,
    _jit_options_values: *mut *mut c_void,
    _num_jit_options: c_uint,
    _library_options: *mut CUlibraryOption,
    _library_option_values: *mut *mut c_void,
    _num_library_options: c_uint,
) {
    // SAFETY: the call succeeded, so it has written the handle and read the name.
    unsafe { module_file_loaded(cx, (*library).0, file_name) };
}

pub(crate) unsafe fn cuLibraryUnload(cx: &mut Cx<'_>, library: CUlibrary) {
    module_unloaded(cx, library.0);
}

pub(crate) unsafe fn cuLibraryGetKernel(
    cx: &mut Cx<'_>,
    kernel: *mut CUkernel,
    library: CUlibrary,
    name: *const c_char,
) {
    // SAFETY: the call succeeded: it has written the handle and read the name.
    unsafe { got_from(cx, (*kernel).0, library.0, name) };
}

pub(crate) unsafe fn cuLibraryEnumerateKernels(
    cx: &mut Cx<'_>,
    kernels: *mut CUkernel,
    num_kernels: c_uint,
    library: CUlibrary,
) {
    for index in 0..num_kernels as usize {
        // SAFETY: the call has written num_kernels handles.
        unsafe { got_from(cx, (*kernels.add(index)).0, library.0, std::ptr::null()) };
    }
}

pub(crate) unsafe fn cuLibraryGetModule(cx: &mut Cx<'_>, module: *mut CUmodule, library: CUlibrary) {
    if let Some(image) = image_known(cx, library.0) {
        // SAFETY: the call succeeded, so it has written the handle.
        remember_image(cx, unsafe { (*module).0 }, image);
    }
}

pub(crate) unsafe fn cuKernelGetFunction(cx: &mut Cx<'_>, func: *mut CUfunction, kernel: CUkernel) {
    // SAFETY: the call succeeded, so it has written the handle.
    function_of_kernel(cx, unsafe { (*func).0 }, kernel.0);
}

pub(crate) unsafe fn cuLibraryGetGlobal(
    cx: &mut Cx<'_>,
    ptr: *mut CUdeviceptr,
    bytes: *mut usize,
    library: CUlibrary,
    name: *const c_char,
) {
    if !ptr.is_null() && !bytes.is_null() {
        // SAFETY: the call succeeded: it has written both and read the name.
        unsafe { global_found(cx, *ptr, *bytes as u64, library.0, name) };
    }
}

pub(crate) unsafe fn cuLibraryGetManaged(
    cx: &mut Cx<'_>,
    ptr: *mut CUdeviceptr,
    bytes: *mut usize,
    library: CUlibrary,
    name: *const c_char,
) {
    // SAFETY: forwarded from the caller.
    unsafe { cuLibraryGetGlobal(cx, ptr, bytes, library, name) };
}
