//! Any bytes as PTX text: parsing must end in a module or a named error.
//!
//! `cargo +nightly fuzz run ptx -- -max_len=65536 -max_total_time=600`; seeds: any PTX.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = kernels::ptx::parse_bytes(bytes);
});
