//! A move that surely happens, of a register that was last written under another predicate: what
//! was there before that write counts, and the predicate is the one of that place. (A divide and
//! conquer of cuSOLVER picks the row of an element so; all threads were taken for the last one.)

use device_code::arch::Arch;
use device_code::image::CodeRef;
use kernels::{AccessKind, CodeImage, Extent, LaunchArgs};

/// Rows of 17 doubles: threads below 16 read the 15th, thread 16 the 16th, if `LATER` changes
/// nothing.
const PTX: &str = r"
.version 8.0
.target sm_80
.address_size 64
.visible .entry rows(.param .u64 x, .param .u32 n, .param .u32 m) {
  .reg .b32 %r<16>; .reg .b64 %d<8>; .reg .pred %p<6>;
  ld.param.u64 %d1, [x]; ld.param.u32 %r1, [n]; ld.param.u32 %r2, [m];
  mov.u32 %r3, %tid.x;
  setp.ge.s32 %p1, %r3, %r1;
  setp.ge.and.s32 %p3, %r3, %r2, !%p1;
  @!%p1 add.s32 %r4, %r2, -1;
  @%p3 mov.u32 %r4, %r2;
  LATER
  @!%p1 mov.u32 %r5, %r4;
  @!%p1 mad.lo.s32 %r6, %r3, 17, %r5;
  mul.wide.s32 %d2, %r6, 8; add.s64 %d3, %d1, %d2;
  @!%p1 ld.global.u64 %d4, [%d3];
  @!%p1 st.global.u64 [%d1], %d4;
  ret;
}
";

/// Offsets that are read: those that surely are, and all that may be.
fn read(later: &str, threads: u32) -> (Vec<i64>, Vec<i64>) {
    let image = CodeImage::from_code(CodeRef::Ptx(PTX.replace("LATER", later).into()), Arch::new(80)).expect("PTX");
    let params = [&0x7f01_0000_0000_u64.to_le_bytes()[..], &17_u32.to_le_bytes(), &16_u32.to_le_bytes()].concat();
    let mut found = Vec::new();
    let launch = LaunchArgs::new([1, 1, 1], [threads, 1, 1], &params);
    image.summary("rows").expect("a kernel").evaluate(&launch, &mut found);
    let (mut surely, mut all) = (Vec::new(), Vec::new());
    for access in found.iter().filter(|a| a.kind == AccessKind::Read) {
        let Extent::Bounded { lo, dims, width: 8, exact, .. } = &access.extent else { panic!("{access:?}") };
        let mut places = vec![*lo];
        for dim in dims {
            places =
                (0..dim.count as i64).flat_map(|k| places.iter().map(move |at| at + k * dim.stride as i64)).collect();
        }
        if *exact {
            surely.extend(&places);
        }
        all.extend(places);
    }
    surely.sort_unstable();
    all.sort_unstable();
    (surely, all)
}

#[test]
fn what_was_there_before_counts() {
    let expected: Vec<i64> = (0..17).map(|t| (17 * t + if t < 16 { 15 } else { 16 }) * 8).collect();
    for threads in [32, 1024] {
        let (surely, all) = read("", threads);
        assert!(expected.iter().all(|at| all.contains(at)), "{threads} threads: {all:?}");
        assert!(surely.iter().all(|at| expected.contains(at)), "{threads} threads: {surely:?} of {expected:?}");
    }
}

#[test]
fn the_predicate_is_that_of_the_write() {
    let expected: Vec<i64> = (0..17).map(|t| (17 * t + if t < 16 { 15 } else { 16 }) * 8).collect();
    // It has another value where the register is moved.
    let (surely, all) = read("setp.ge.s32 %p3, %r3, 0;", 32);
    assert!(expected.iter().all(|at| all.contains(at)), "{all:?}");
    assert!(surely.iter().all(|at| expected.contains(at)), "{surely:?} of {expected:?}");
}

#[test]
fn a_write_by_the_same_predicate_is_taken() {
    let (surely, all) = read("@!%p1 mov.u32 %r4, 3;", 32);
    let expected: Vec<i64> = (0..17).map(|t| (17 * t + 3) * 8).collect();
    assert_eq!((&surely, &all), (&expected, &expected));
}
