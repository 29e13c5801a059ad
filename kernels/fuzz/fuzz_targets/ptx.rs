//! Any bytes as PTX text: parsing must end in a module or a named error. What parses is lowered,
//! summarised and evaluated, which never fails, whatever the text says.
//!
//! Seeds: any PTX.

#![no_main]

use device_code::arch::Arch;
use device_code::image::CodeRef;
use kernels::{CodeImage, LaunchArgs};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if device_code::ptx::parse_bytes(bytes).is_err() {
        return;
    }
    let Ok(image) = CodeImage::from_code(CodeRef::Ptx(String::from_utf8_lossy(bytes)), Arch::new(90)) else { return };
    for name in image.kernel_names().take(4) {
        let Ok(summary) = image.summary(name) else { continue };
        let params: Vec<u8> = (0..=255).collect();
        let _ = (summary.words().len(), summary.indirect());
        let mut out = Vec::new();
        for (grid, block) in [([1, 1, 1], [1, 1, 1]), ([7, 3, 2], [32, 4, 1])] {
            summary.evaluate(&LaunchArgs::new(grid, block, &params), &mut out);
        }
    }
});
