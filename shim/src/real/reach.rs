//! Whether devices reach memory of the host past the program's page rights, so that `mprotect` does
//! not stop them.
//!
//! Owns the answer for each kind of memory. The simulated GPU has a mapping of its own, and says
//! so. Of real drivers it was measured (`tests/gpu/programs/protected_pages.cu`): what the answers
//! of a driver do not match is stepped aside from, and counted by its reason. Protects nothing.

use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use cuda_sys::*;
use trace::MemoryKind;

use super::driver::real;
use crate::runtime::options;

/// The simulated GPU's function; null: this is another driver.
static OWN_VIEW: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// The first driver (CUDA 13.0, R580) on which managed memory was measured.
const MEASURED: c_int = 13000;

/// Why memory of a kind is not watched on this driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Aside {
    /// Devices read the CPU's page tables, or memory that no call announced.
    PageTables,
    /// The CPU may not touch managed memory while devices work.
    NotConcurrent,
    /// Managed memory was not measured on so old a driver.
    Old,
    /// Devices know registered memory by another address.
    OtherAddress,
}

/// What is said of each reason, in its order.
pub const REASONS: [&str; 4] = [
    "host touches of memory that kernels use in place (devices go through the CPU's page tables)",
    "host touches of managed memory (no concurrent access)",
    "host touches of managed memory (driver older than CUDA 13.0)",
    "host touches of registered memory (devices have another address of it)",
];

static COUNTS: [AtomicU64; REASONS.len()] = [const { AtomicU64::new(0) }; REASONS.len()];

/// How many allocations were stepped aside from, and why.
pub fn stepped_aside() -> impl Iterator<Item = (u64, &'static str)> {
    COUNTS.iter().map(|count| count.load(Ordering::Relaxed)).zip(REASONS).filter(|(count, _)| *count > 0)
}

/// What the driver has under the name of the simulated GPU's function.
pub(super) fn note(address: *mut c_void) {
    OWN_VIEW.store(address, Ordering::Relaxed);
}

/// Whether these bytes lose nothing but the CPU's access when their pages are protected. Counts
/// what does not.
pub fn bears_protection(start: u64, size: u64, kind: MemoryKind) -> bool {
    let address = OWN_VIEW.load(Ordering::Relaxed);
    if !address.is_null() {
        // SAFETY: the simulated GPU's function of this signature.
        let call: unsafe extern "C" fn(u64, u64) -> i32 = unsafe { transmute(address) };
        // SAFETY: it takes any numbers.
        let has_own_view = unsafe { call(start, size) != 0 };
        if !has_own_view || !is_tried_as_real() {
            return has_own_view;
        }
    }
    match aside(kind) {
        None => true,
        Some(why) => {
            COUNTS[why as usize].fetch_add(1, Ordering::Relaxed);
            false
        }
    }
}

/// Whether the driver bears small pieces of a mapping with rights of their own, however many. On a
/// real driver each stays a mapping of the process, of which there may be 65,530.
pub fn bears_many_pieces() -> bool {
    !OWN_VIEW.load(Ordering::Relaxed).is_null() && !is_tried_as_real()
}

/// Tests ask for what happens on a real driver, on the simulated GPU.
fn is_tried_as_real() -> bool {
    static ANSWER: AtomicU32 = AtomicU32::new(0);
    let known = ANSWER.load(Ordering::Relaxed);
    if known != 0 {
        return known == 2;
    }
    let asked = options::variable(c"STREAMSAN_TEST_REAL_DRIVER").is_some();
    ANSWER.store(1 + u32::from(asked), Ordering::Relaxed);
    asked
}

/// What stands against watching memory of a kind on this driver: asked once.
fn aside(kind: MemoryKind) -> Option<Aside> {
    static ANSWERS: AtomicU32 = AtomicU32::new(0);
    const KNOWN: u32 = 1 << 31;
    const ALL: [Aside; 4] = [Aside::PageTables, Aside::NotConcurrent, Aside::Old, Aside::OtherAddress];
    let mut answers = ANSWERS.load(Ordering::Relaxed);
    if answers == 0 {
        let holds = |why: &&Aside| asked(**why);
        answers = KNOWN | ALL.iter().filter(holds).map(|why| 1 << *why as u32).sum::<u32>();
        ANSWERS.store(answers, Ordering::Relaxed);
    }
    let concerns = |why: &Aside| match why {
        Aside::PageTables => true,
        Aside::NotConcurrent | Aside::Old => kind == MemoryKind::Managed,
        Aside::OtherAddress => kind == MemoryKind::RegisteredHost,
    };
    ALL.into_iter().find(|why| answers & (1 << *why as u32) != 0 && concerns(why))
}

fn asked(why: Aside) -> bool {
    let any = |attribute: CUdevice_attribute, wrong: fn(c_int) -> bool| {
        let mut devices = 0;
        let _ = real!(cuDeviceGetCount(&raw mut devices => *mut c_int));
        devices == 0
            || (0..devices).any(|device| {
                let mut value = -1;
                let _ = real!(cuDeviceGetAttribute(
                    &raw mut value => *mut c_int, attribute => CUdevice_attribute, device => c_int
                ));
                wrong(value)
            })
    };
    match why {
        Aside::PageTables => {
            any(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, |value| value != 0)
                || any(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, |value| value != 0)
        }
        Aside::NotConcurrent => any(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, |value| value != 1),
        Aside::Old => {
            let mut driver = 0;
            let _ = real!(cuDriverGetVersion(&raw mut driver => *mut c_int));
            driver < MEASURED
        }
        Aside::OtherAddress => any(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, |value| value != 1),
    }
}
