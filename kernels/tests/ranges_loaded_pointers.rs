//! Pointers that may be a parameter or come out of a table behind it, by a flag, as in products of
//! many matrices: where the flag says "out of the table", no byte behind the parameter itself is
//! named as written, and the access keeps a base that is not known. A sum of a parameter and a
//! loaded number may have either as its pointer, so there the parameter is named.

use device_code::arch::Arch;
use device_code::image::CodeRef;
use kernels::{AccessKind, Base, CodeImage, Extent, KernelAccess, LaunchArgs};

const PTX: &str = r"
.version 8.0
.target sm_80
.address_size 64
.visible .entry batched(.param .u64 out, .param .u64 stride, .param .u32 strided) {
  .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .pred %p<2>;
  ld.param.u64 %d1, [out]; ld.param.u64 %d2, [stride]; ld.param.u32 %r1, [strided];
  mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.z; cvt.u64.u32 %d3, %r3;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra plain;
  shl.b64 %d4, %d3, 3; add.s64 %d4, %d1, %d4; ld.global.u64 %d5, [%d4];
  bra go;
plain:
  mul.lo.u64 %d4, %d3, %d2; add.s64 %d5, %d1, %d4;
go:
  ld.global.u32 %r4, [%d5+4096];
  setp.gt.s32 %p1, %r4, 5;
  @%p1 bra done;
  mul.wide.u32 %d6, %r2, 4; add.s64 %d6, %d5, %d6;
  mul.wide.u32 %d7, %r4, 64; add.s64 %d6, %d6, %d7;
  st.global.u32 [%d6], %r2;
done:
  ret;
}
.visible .entry sum(.param .u64 out, .param .u64 offsets) {
  .reg .b32 %r<4>; .reg .b64 %d<8>;
  ld.param.u64 %d1, [out]; ld.param.u64 %d2, [offsets];
  mov.u32 %r2, %tid.x; mul.wide.u32 %d3, %r2, 8; add.s64 %d4, %d2, %d3;
  ld.global.u64 %d5, [%d4]; add.s64 %d6, %d1, %d5;
  st.global.u32 [%d6], %r2;
  ret;
}
";

const OUT: u64 = 0x7f01_0000_0000;
const OFFSETS: u64 = 0x7f02_0000_0000;

fn writes(kernel: &str, params: &[u8]) -> Vec<KernelAccess> {
    let image = CodeImage::from_code(CodeRef::Ptx(PTX.into()), Arch::new(80)).expect("PTX");
    let mut found = Vec::new();
    image.summary(kernel).expect("a kernel").evaluate(&LaunchArgs::new([1, 1, 3], [32, 1, 1], params), &mut found);
    found.retain(|a| a.kind == AccessKind::Write);
    found
}

fn batched(strided: u32) -> Vec<KernelAccess> {
    let words = [OUT.to_le_bytes(), 0x2000_u64.to_le_bytes()].concat();
    writes("batched", &[&words[..], &strided.to_le_bytes(), &[0; 4]].concat())
}

#[test]
fn a_pointer_out_of_a_table_is_not_the_table() {
    let found = batched(0);
    assert!(!found.is_empty());
    assert!(found.iter().all(|a| a.base == Base::Unknown && !a.several), "{found:?}");
}

#[test]
fn the_parameter_is_the_base_where_it_is_the_pointer() {
    let found = batched(1);
    assert!(!found.is_empty());
    assert!(found.iter().all(|a| matches!(a.base, Base::Word { offset: 0, value: OUT })), "{found:?}");
}

#[test]
fn of_a_parameter_and_a_loaded_number_either_may_be_the_pointer() {
    let found = writes("sum", &[OUT.to_le_bytes(), OFFSETS.to_le_bytes()].concat());
    let named = |a: &KernelAccess| matches!(a.base, Base::Word { offset: 0, value: OUT }) && a.several;
    assert!(found.iter().any(named), "{found:?}");
    assert!(found.iter().any(|a| a.base == Base::Unknown && a.several), "{found:?}");
    assert!(found.iter().all(|a| matches!(a.extent, Extent::Unknown { .. })), "{found:?}");
}
