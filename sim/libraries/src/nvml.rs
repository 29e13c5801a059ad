//! NVML (`libnvidia-ml.so.1`): what the system's devices are, asked without starting CUDA. XLA
//! makes no device without it; PyTorch counts devices by it.
//!
//! Devices are those of the system: `CUDA_VISIBLE_DEVICES` hides none. All other questions answer
//! `NVML_ERROR_NOT_SUPPORTED`, as a device does that has no such sensor, counter or setting. They
//! are not work that was refused, so no run ends with another exit code for them (`refused`).

use std::ffi::{CStr, c_char, c_int, c_uint};

use cuda_sys::{CUresult, SimDevice, uuid_text};
use sim_driver_link::private;

const UNINITIALIZED: c_int = 1;
const INVALID_ARGUMENT: c_int = 2;
const NOT_SUPPORTED: c_int = 3;
const NOT_FOUND: c_int = 6;
const INSUFFICIENT_SIZE: c_int = 7;
const DRIVER_NOT_LOADED: c_int = 9;
/// `NVML_ERROR_ARGUMENT_VERSION_MISMATCH`.
const VERSION_MISMATCH: c_int = 25;

/// The first driver of CUDA 13.0, whose version the simulated driver says it has.
const DRIVER: &str = "580.65.06";

type Answer = Result<(), c_int>;
/// A device: its number and one, so that none is null.
type Device = usize;

fn status(answer: Answer) -> c_int {
    answer.err().unwrap_or(0)
}

fn answer(status: c_int) -> Answer {
    if status == 0 { Ok(()) } else { Err(status) }
}

/// What the simulated driver says of a device.
fn described(device: u32) -> Option<SimDevice> {
    let mut described = SimDevice { arch: 0, bus: 0, uuid: [0; 16], name: [0; 64], memory: 0, allocated: 0 };
    // SAFETY: the simulated driver's function; the place is writable.
    let answer = unsafe { (private()?.device)(device, &mut described) };
    (answer == CUresult::SUCCESS).then_some(described)
}

/// How many devices there are.
pub(crate) fn count() -> u32 {
    (0..).take_while(|&device| described(device).is_some()).count() as u32
}

fn of(device: Device) -> Result<(u32, SimDevice), c_int> {
    let number = device.checked_sub(1).and_then(|number| u32::try_from(number).ok()).ok_or(INVALID_ARGUMENT)?;
    described(number).map(|described| (number, described)).ok_or(INVALID_ARGUMENT)
}

fn put<T>(to: *mut T, value: T) -> Answer {
    if to.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: the C interface: a non-null output pointer is writable.
    unsafe { to.write(value) };
    Ok(())
}

fn put_text(to: *mut c_char, room: c_uint, text: &str) -> Answer {
    if to.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    if text.len() >= room as usize {
        return Err(INSUFFICIENT_SIZE);
    }
    // SAFETY: the C interface: there is room for so many bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), to, text.len());
        to.add(text.len()).write(0);
    }
    Ok(())
}

/// A PCI address as NVML writes it: CUDA writes four digits of the domain.
fn pci_text(bus: u32) -> String {
    format!("00000000:{bus:02X}:00.0")
}

fn find(to: *mut Device, is: impl Fn(&SimDevice) -> bool) -> Answer {
    let found = (0..).map_while(|device| described(device).map(|it| (device, it))).find(|(_, it)| is(it));
    put(to, found.ok_or(NOT_FOUND)?.0 as Device + 1)
}

/// # Safety
/// `text` is null or a C string.
unsafe fn text<'t>(text: *const c_char) -> Result<std::borrow::Cow<'t, str>, c_int> {
    if text.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

/// `nvmlMemory_t`.
#[repr(C)]
struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

/// `nvmlMemory_v2_t`.
#[repr(C)]
struct Memory2 {
    version: c_uint,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

/// `nvmlPciInfo_t`.
#[repr(C)]
struct Pci {
    legacy: [u8; 16],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    device_id: c_uint,
    subsystem: c_uint,
    text: [u8; 32],
}

/// `nvmlGpuFabricInfo_v2_t`, with which later versions begin.
#[repr(C)]
struct Fabric {
    version: c_uint,
    cluster: [u8; 16],
    status: c_int,
    clique: c_uint,
    state: u8,
    health: c_uint,
}

/// Versions of the structure, in the highest byte of `version` (`NVML_STRUCT_VERSION`).
const FABRIC_2: c_uint = 2;
const FABRIC_3: c_uint = 3;

fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    bytes
}

/// Defines functions of NVML; the body answers `Result<(), status>`.
macro_rules! nvml {
    ($($name:ident ($($arg:ident: $kind:ty),*) $body:block)*) => { $(
        // SAFETY: the library's name and signature.
        #[unsafe(no_mangle)]
        extern "C" fn $name($($arg: $kind),*) -> c_int {
            let answer = || -> Answer { $body };
            status(answer())
        }
    )* };
}

nvml! {
    nvmlInit_v2() {
        if private().is_some() { Ok(()) } else { Err(DRIVER_NOT_LOADED) }
    }
    nvmlInitWithFlags(_flags: c_uint) {
        if private().is_some() { Ok(()) } else { Err(DRIVER_NOT_LOADED) }
    }
    nvmlShutdown() {
        if private().is_some() { Ok(()) } else { Err(UNINITIALIZED) }
    }
    nvmlSystemGetDriverVersion(to: *mut c_char, room: c_uint) { put_text(to, room, DRIVER) }
    nvmlSystemGetNVMLVersion(to: *mut c_char, room: c_uint) { put_text(to, room, &format!("13.{DRIVER}")) }
    nvmlSystemGetCudaDriverVersion_v2(to: *mut c_int) { put(to, 13_000) }
    nvmlDeviceGetCount_v2(to: *mut c_uint) { put(to, count()) }
    nvmlDeviceGetHandleByIndex_v2(device: c_uint, to: *mut Device) {
        described(device).ok_or(INVALID_ARGUMENT)?;
        put(to, device as Device + 1)
    }
    nvmlDeviceGetHandleByUUID(uuid: *const c_char, to: *mut Device) {
        // SAFETY: the C interface: a C string, or null.
        let uuid = unsafe { text(uuid) }?;
        find(to, |device| uuid_text(device.uuid).eq_ignore_ascii_case(&uuid))
    }
    nvmlDeviceGetHandleByPciBusId_v2(address: *const c_char, to: *mut Device) {
        // SAFETY: the C interface: a C string, or null.
        let address = unsafe { text(address) }?.to_ascii_uppercase();
        let address = address.trim_start_matches('0').to_owned();
        find(to, |device| pci_text(device.bus).trim_start_matches('0') == address)
    }
    nvmlDeviceGetIndex(device: Device, to: *mut c_uint) { put(to, of(device)?.0) }
    nvmlDeviceGetMinorNumber(device: Device, to: *mut c_uint) { put(to, of(device)?.0) }
    nvmlDeviceGetName(device: Device, to: *mut c_char, room: c_uint) {
        let name = of(device)?.1.name;
        put_text(to, room, CStr::from_bytes_until_nul(&name).unwrap_or_default().to_str().unwrap_or_default())
    }
    nvmlDeviceGetUUID(device: Device, to: *mut c_char, room: c_uint) {
        put_text(to, room, &uuid_text(of(device)?.1.uuid))
    }
    nvmlDeviceGetMemoryInfo(device: Device, to: *mut Memory) {
        let (_, it) = of(device)?;
        put(to, Memory { total: it.memory, free: it.memory - it.allocated, used: it.allocated })
    }
    nvmlDeviceGetMemoryInfo_v2(device: Device, to: *mut Memory2) {
        let (_, it) = of(device)?;
        if to.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: the C interface: the caller has filled in which version it knows.
        let version = unsafe { (&raw const (*to).version).read() };
        put(to, Memory2 { version, total: it.memory, reserved: 0, free: it.memory - it.allocated, used: it.allocated })
    }
    nvmlDeviceGetCudaComputeCapability(device: Device, major: *mut c_int, minor: *mut c_int) {
        let (_, it) = of(device)?;
        put(major, (it.arch / 10) as c_int)?;
        put(minor, (it.arch % 10) as c_int)
    }
    // The device is on no fabric: `NVML_GPU_FABRIC_STATE_NOT_SUPPORTED`, the state 0.
    nvmlDeviceGetGpuFabricInfoV(device: Device, to: *mut Fabric) {
        of(device)?;
        if to.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: the C interface: the caller has filled in which version it knows.
        let version = unsafe { (&raw const (*to).version).read() };
        if !(FABRIC_2..=FABRIC_3).contains(&(version >> 24)) {
            return Err(VERSION_MISMATCH);
        }
        put(to, Fabric { version, cluster: [0; 16], status: 0, clique: 0, state: 0, health: 0 })?;
        if version >> 24 == FABRIC_3 {
            // SAFETY: the third version has one byte more, the summary of the health.
            unsafe { to.add(1).cast::<u8>().write(0) };
        }
        Ok(())
    }
    nvmlDeviceGetPciInfo_v3(device: Device, to: *mut Pci) {
        let (_, it) = of(device)?;
        let text = pci_text(it.bus);
        // The older form writes four digits of the domain.
        let legacy = padded(&text[4..]);
        put(to, Pci { legacy, domain: 0, bus: it.bus, device: 0, device_id: 0, subsystem: 0, text: padded(&text) })
    }
}

// The same under their names of before.
nvml! {
    nvmlInit() { answer(nvmlInit_v2()) }
    nvmlSystemGetCudaDriverVersion(to: *mut c_int) { answer(nvmlSystemGetCudaDriverVersion_v2(to)) }
    nvmlDeviceGetCount(to: *mut c_uint) { answer(nvmlDeviceGetCount_v2(to)) }
    nvmlDeviceGetHandleByIndex(device: c_uint, to: *mut Device) { answer(nvmlDeviceGetHandleByIndex_v2(device, to)) }
    nvmlDeviceGetHandleByPciBusId(address: *const c_char, to: *mut Device) { answer(nvmlDeviceGetHandleByPciBusId_v2(address, to)) }
}

// SAFETY: the library's name and signature.
#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(status: c_int) -> *const c_char {
    match status {
        0 => c"Success",
        UNINITIALIZED => c"Uninitialized",
        INVALID_ARGUMENT => c"Invalid Argument",
        NOT_SUPPORTED => c"Not Supported",
        NOT_FOUND => c"Not Found",
        INSUFFICIENT_SIZE => c"Insufficient Size",
        DRIVER_NOT_LOADED => c"Driver Not Loaded",
        VERSION_MISMATCH => c"Argument Version Mismatch",
        _ => c"Unknown Error",
    }
    .as_ptr()
}

/// Defines functions that answer that the device has no such thing.
macro_rules! lacking {
    ($($name:ident)*) => { $(
        const _: () = {
            // SAFETY: the library's name. It looks at no arguments, so any caller's are fine under
            // the C ABI.
            #[unsafe(no_mangle)]
            extern "C" fn $name() -> c_int {
                NOT_SUPPORTED
            }
        };
    )* };
}

include!(concat!(env!("OUT_DIR"), "/lacking.rs"));
