//! Bit fields of PTX: what `bfi` and `bfe` make of an index is followed to the byte. Where that is
//! not possible, it is reported as unknown.

use device_code::arch::Arch;
use device_code::image::CodeRef;
use kernels::{AccessKind, Base, CodeImage, Extent, LaunchArgs};

/// The bytes (lowest, one past the highest) that a block of 64 threads writes at the parameter plus
/// what `code` leaves in %rd2; `None`: unknown.
fn written(code: &str) -> Option<(i64, i64)> {
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n\
         ld.param.u64 %rd1, [p];\ncvta.to.global.u64 %rd1, %rd1;\nmov.u32 %r1, %tid.x;\nmov.u32 %r8, 4;\n{code}\n\
         add.s64 %rd3, %rd1, %rd2;\nst.global.u32 [%rd3], %r1;\nret;\n}}\n"
    );
    let image = CodeImage::from_code(CodeRef::Ptx(text.into()), Arch::new(80)).expect("parses");
    let mut out = Vec::new();
    let params = 0x7f00_0000_0000u64.to_le_bytes();
    image.summary("k").expect("summarised").evaluate(&LaunchArgs::new([1, 1, 1], [64, 1, 1], &params), &mut out);
    assert!(out.iter().all(|a| a.kind == AccessKind::Write), "{out:?}");
    let access = out.iter().find(|a| matches!(a.base, Base::Word { offset: 0, .. })).expect("the pointer is named");
    match access.extent {
        Extent::Bounded { lo, hi, .. } => Some((lo, hi)),
        Extent::Unknown { .. } => None,
    }
}

#[test]
fn fields_are_put_into_words() {
    // Bits 3 to 8 are the thread's number, the rest 4.
    assert_eq!(written("bfi.b32 %r2, %r1, %r8, 3, 6;\ncvt.u64.u32 %rd2, %r2;"), Some((4, 4 + 8 * 63 + 4)));
    // Only its lowest five bits.
    assert_eq!(written("bfi.b32 %r2, %r1, %r8, 3, 5;\ncvt.u64.u32 %rd2, %r2;"), Some((4, 4 + 8 * 31 + 4)));
    // Low word the thread's number times four, high word 0.
    let two = "mov.b64 %rd4, 0;\nshl.b32 %r2, %r1, 2;\ncvt.u64.u32 %rd5, %r2;\nbfi.b64 %rd2, %rd4, %rd5, 32, 32;";
    assert_eq!(written(two), Some((0, 256)));
    // A place or a length that is no number.
    assert_eq!(written("bfi.b32 %r2, %r1, %r8, %r1, 5;\ncvt.u64.u32 %rd2, %r2;").filter(|b| b.1 < 1 << 31), None);
}

#[test]
fn fields_are_taken_out_of_words() {
    assert_eq!(written("bfe.u32 %r2, %r1, 2, 4;\ncvt.u64.u32 %rd2, %r2;"), Some((0, 15 + 4)));
    // Beyond the word: nothing is promised, nothing fails.
    let _ = written("bfe.u32 %r2, %r1, 18446744073709551615, 4;\ncvt.u64.u32 %rd2, %r2;");
}
