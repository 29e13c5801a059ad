//! Any bytes as a code image: parsing, choosing, unpacking and describing must end in an answer or
//! a named error.
//!
//! `cargo +nightly fuzz run container -- -max_len=262144 -max_total_time=600`; seeds: any fatbin or
//! cubin.

#![no_main]

use device_code::arch::Arch;
use device_code::image::{CodeRef, Cubin, Image, ImageSize, find_in_host, image_size};
use libfuzzer_sys::fuzz_target;

fn cubin(bytes: &[u8]) {
    let Ok(cubin) = Cubin::parse(bytes) else { return };
    for k in cubin.kernels().iter().take(16) {
        for bank in 0..5 {
            let _ = cubin.const_bank(k, bank);
        }
        let _ = cubin.const_symbol(k, 4, 8);
        let _ = cubin.function_at(k.section, k.entry);
        let _ = cubin.functions(k.section);
    }
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(ImageSize::NeedAtLeast(n)) = image_size(bytes) {
        assert!(n > bytes.len() as u64, "a request for more must ask for more");
    }
    let _ = find_in_host(bytes);
    cubin(bytes);
    let Ok(image) = Image::parse(bytes) else { return };
    for sm in [75, 86, 90, 103, 120] {
        if let Some(e) = image.choose(Arch::new(sm)) {
            assert!(device_code::image::runs_on(e.kind, e.arch, Arch::new(sm)));
        }
    }
    for e in image.entries().iter().take(8) {
        if let Ok(CodeRef::Cubin(code)) = e.unpack() {
            cubin(&code);
        }
    }
});
