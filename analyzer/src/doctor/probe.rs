//! The probe: the few driver calls of a program that uses CUDA, in a process of its own.
//!
//! Owns the calls and the words in which their results come to the doctor. A driver that hangs or
//! crashes takes only this process with it. Under StreamSan the probe is the program under test.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

/// Words of the result, one on each line, with a space behind the name.
pub(super) const VERSION: &str = "version";
/// Name of a device and its compute capability.
pub(super) const DEVICE: &str = "device";
/// Which call failed, and its error number.
pub(super) const ERROR: &str = "error";
/// The calls that make operations worked.
pub(super) const USED: &str = "used";

/// CUdevice_attribute: major and minor number of the compute capability (CUDA driver API, Device
/// Management).
const COMPUTE_CAPABILITY: [c_int; 2] = [75, 76];

type Status = c_int;

/// The functions of the driver that the probe calls.
struct Driver(Library);

impl Driver {
    fn open() -> Result<Self, String> {
        // SAFETY: the initialisers of a driver, or of the simulated one, are what any CUDA program
        // runs.
        let library = unsafe { Library::open(Some("libcuda.so.1"), RTLD_NOW | RTLD_GLOBAL) };
        library.map(Self).map_err(|error| error.to_string())
    }

    /// Calls a function; `call` gets it as a pointer of type `F`.
    fn call<F: Copy>(&self, name: &CStr, call: impl FnOnce(F) -> Status) -> Result<(), String> {
        let text = name.to_string_lossy();
        // SAFETY: each caller below names the type that CUDA's manual gives to the function.
        let function = unsafe { self.0.get::<F>(name.to_bytes_with_nul()) };
        let function = function.map_err(|_| format!("{text} is not in the driver"))?;
        match call(*function) {
            0 => Ok(()),
            status => Err(format!("{text} returned {status}")),
        }
    }
}

/// Makes the calls. Returns the lines for the doctor.
pub(super) fn run() -> String {
    let mut lines = String::new();
    let mut line = |word: &str, text: &str| lines.push_str(&format!("{word} {text}\n"));
    let ended = Driver::open().and_then(|driver| {
        let devices = describe(&driver, &mut line)?;
        if devices == 0 {
            return Err("cuDeviceGetCount found no device".to_owned());
        }
        use_memory(&driver)?;
        line(USED, "");
        Ok(())
    });
    if let Err(error) = ended {
        line(ERROR, &error);
    }
    lines
}

/// Starts the driver and lists what it has. Returns the number of devices.
fn describe(driver: &Driver, line: &mut impl FnMut(&str, &str)) -> Result<c_int, String> {
    let (mut version, mut devices) = (0, 0);
    let versioned = |f: unsafe extern "C" fn(*mut c_int) -> Status| {
        // SAFETY: the number outlives the call.
        unsafe { f(&raw mut version) }
    };
    driver.call(c"cuDriverGetVersion", versioned)?;
    line(VERSION, &format!("{}.{}", version / 1000, version % 1000 / 10));
    // SAFETY: `cuInit` takes a number.
    driver.call(c"cuInit", |f: unsafe extern "C" fn(c_uint) -> Status| unsafe { f(0) })?;
    let counted = |f: unsafe extern "C" fn(*mut c_int) -> Status| {
        // SAFETY: as above.
        unsafe { f(&raw mut devices) }
    };
    driver.call(c"cuDeviceGetCount", counted)?;
    for device in 0..devices {
        let mut name = [0u8; 128];
        let named = |f: unsafe extern "C" fn(*mut c_char, c_int, c_int) -> Status| {
            // SAFETY: the buffer has the length that is given, and the driver ends the text in it.
            unsafe { f(name.as_mut_ptr().cast(), name.len() as c_int, device) }
        };
        driver.call(c"cuDeviceGetName", named)?;
        let mut capability = [0; 2];
        for (number, attribute) in capability.iter_mut().zip(COMPUTE_CAPABILITY) {
            let asked = |f: unsafe extern "C" fn(*mut c_int, c_int, c_int) -> Status| {
                // SAFETY: the number outlives the call.
                unsafe { f(number, attribute, device) }
            };
            driver.call(c"cuDeviceGetAttribute", asked)?;
        }
        let name = CStr::from_bytes_until_nul(&name).unwrap_or_default().to_string_lossy();
        line(DEVICE, &format!("{name} ({}.{})", capability[0], capability[1]));
    }
    Ok(devices)
}

/// Operations that StreamSan records: an allocation, a copy to it, and the free.
fn use_memory(driver: &Driver) -> Result<(), String> {
    let (mut context, mut memory) = (std::ptr::null_mut::<c_void>(), 0u64);
    let retained = |f: unsafe extern "C" fn(*mut *mut c_void, c_int) -> Status| {
        // SAFETY: the handle outlives the call; device 0 was counted.
        unsafe { f(&raw mut context, 0) }
    };
    driver.call(c"cuDevicePrimaryCtxRetain", retained)?;
    // SAFETY: a context that is retained.
    driver.call(c"cuCtxSetCurrent", |f: unsafe extern "C" fn(*mut c_void) -> Status| unsafe { f(context) })?;
    let allocated = |f: unsafe extern "C" fn(*mut u64, usize) -> Status| {
        // SAFETY: the address outlives the call.
        unsafe { f(&raw mut memory, 4096) }
    };
    driver.call(c"cuMemAlloc_v2", allocated)?;
    let bytes = [7u8; 4096];
    let copied = |f: unsafe extern "C" fn(u64, *const c_void, usize) -> Status| {
        // SAFETY: both sides have as many bytes.
        unsafe { f(memory, bytes.as_ptr().cast(), bytes.len()) }
    };
    driver.call(c"cuMemcpyHtoD_v2", copied)?;
    // SAFETY: an allocation that nothing uses.
    driver.call(c"cuMemFree_v2", |f: unsafe extern "C" fn(u64) -> Status| unsafe { f(memory) })
}
