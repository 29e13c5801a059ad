//! Places in an image by quotients of what larger quotients leave, with multipliers out of
//! parameters, as the loads of a convolution's gradient. The search for bounds multiplies the
//! multipliers with each other and with pointers. What leaves the range of its numbers must not end
//! as a bound that is too tight: such stores were taken for ones that never happen. And a quotient
//! of what another one leaves counts for the other one too.

use device_code::arch::Arch;
use device_code::image::CodeRef;
use kernels::{AccessKind, CodeImage, Extent, LaunchArgs};

/// Divides by the pixels of an image, what is left by those of a row, and that by those of a part.
const PTX: &str = r#"
.version 8.0
.target sm_80
.address_size 64
.visible .entry pixels(.param .u64 o, .param .u32 image, .param .u32 by, .param .u32 shift,
                       .param .u32 row, .param .u32 by_row, .param .u32 shift_row,
                       .param .u32 part, .param .u32 by_part, .param .u32 shift_part) {
  .reg .b32 %r<32>; .reg .b64 %d<12>;
  ld.param.u64 %d1, [o]; ld.param.u32 %r1, [image]; ld.param.u32 %r2, [by]; ld.param.u32 %r3, [shift];
  ld.param.u32 %r4, [row]; ld.param.u32 %r5, [by_row]; ld.param.u32 %r6, [shift_row];
  ld.param.u32 %r20, [part]; ld.param.u32 %r21, [by_part]; ld.param.u32 %r22, [shift_part];
  mov.u32 %r7, %tid.x; mov.u32 %r8, %ctaid.x;
  shr.u32 %r9, %r7, 3; shr.u32 %r16, %r7, 5; mad.lo.u32 %r9, %r16, 4, %r9; mad.lo.u32 %r9, %r8, 32, %r9;
  add.u32 %r9, %r9, 43;
  mul.hi.u32 %r10, %r9, %r2; shr.u32 %r10, %r10, %r3;
  mul.lo.u32 %r11, %r10, %r1; sub.u32 %r12, %r9, %r11;
  mul.hi.u32 %r13, %r12, %r5; shr.u32 %r13, %r13, %r6;
  mul.lo.u32 %r14, %r13, %r4; sub.u32 %r15, %r12, %r14;
  mul.hi.u32 %r23, %r15, %r21; shr.u32 %r23, %r23, %r22;
  mul.lo.u32 %r24, %r23, %r20; sub.u32 %r25, %r15, %r24;
  mul.wide.s32 %d2, %r10, 432640; mul.wide.s32 %d3, %r13, 6656; mul.wide.s32 %d4, %r23, 512;
  mul.wide.s32 %d5, %r25, 64;
  add.s64 %d6, %d1, %d2; add.s64 %d6, %d6, %d3; add.s64 %d6, %d6, %d4; add.s64 %d6, %d6, %d5;
  st.global.u32 [%d6], %r7;
  ret;
}
"#;

const BASE: u64 = 0x7f01_0000_0000;

/// The multiplier and the shift by which numbers below 2^31 are divided.
fn divider(by: u32) -> [u32; 2] {
    let shift = 31 - (by - 1).leading_zeros();
    [((1u64 << (32 + shift)).div_ceil(u64::from(by))) as u32, shift]
}

#[test]
fn places_by_quotients_of_what_is_left_are_covered() {
    let image = CodeImage::from_code(CodeRef::Ptx(PTX.into()), Arch::new(80)).expect("PTX");
    let s = image.summary("pixels").expect("a kernel");
    // The small launch is followed thread by thread, the large one is not.
    let shapes = [(5, 1, [294, 42, 7]), (5, 500, [294, 42, 7]), (5, 500, [147, 21, 3]), (4096, 1, [1183, 91, 13])];
    for (blocks, again, sizes) in shapes {
        let numbers = sizes.map(|size| [size, divider(size)[0], divider(size)[1]]).concat();
        let params: Vec<u8> =
            BASE.to_le_bytes().into_iter().chain(numbers.iter().flat_map(|n| n.to_le_bytes())).collect();
        let mut found = Vec::new();
        s.evaluate(&LaunchArgs::new([blocks, again, 1], [128, 1, 1], &params), &mut found);
        let writes: Vec<_> = found.iter().filter(|a| a.kind == AccessKind::Write).collect();
        assert!(!writes.is_empty(), "{blocks} blocks: no store");
        let [image, row, part] = sizes.map(i64::from);
        for (b, t) in (0..blocks).flat_map(|b| (0..128).map(move |t| (i64::from(b), t))) {
            let k = 32 * b + 4 * (t >> 5) + (t >> 3) + 43;
            let (n, k) = (k / image, k % image);
            let (y, k) = (k / row, k % row);
            let at = n * 432_640 + y * 6656 + k / part * 512 + k % part * 64;
            let covers = |e: &Extent| match e {
                Extent::Bounded { lo, hi, .. } => *lo <= at && at + 4 <= *hi,
                Extent::Unknown { .. } => true,
            };
            assert!(writes.iter().any(|a| covers(&a.extent)), "{blocks} blocks, {sizes:?}: {at:#x} of {writes:?}");
        }
    }
}
