//! Which kernels touch the same bytes whatever lies in memory.

use device_code::arch::Arch;
use kernels::CodeImage;

/// A kernel of PTX with pointers `%rd1` (table) and `%rd2` (output), the thread's number `%r1`, and
/// the byte offset of its element `%rd3`.
fn fixed(body: &str) -> bool {
    let text = format!(
        ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n)\n{{\n\
         .reg .pred %p<8>;\n.reg .b32 %r<16>;\n.reg .b64 %rd<16>;\n.shared .align 4 .b8 s[256];\n\
         ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\nld.param.u32 %r9, [n];\nmov.u32 %r1, %tid.x;\n\
         mul.wide.u32 %rd3, %r1, 4;\n{body}\nret;\n}}\n"
    );
    let image = CodeImage::load(text.as_bytes(), Arch::new(80)).expect("PTX that parses");
    image.summary("k").expect("a kernel");
    image.is_launch_invariant("k")
}

#[test]
fn what_is_loaded_and_only_stored_is_no_address() {
    assert!(fixed(
        "add.s64 %rd4, %rd1, %rd3; ld.global.u32 %r2, [%rd4]; add.s64 %rd5, %rd2, %rd3; st.global.u32 [%rd5], %r2;"
    ));
}

#[test]
fn arithmetic_on_the_launch_is_fixed_however_odd() {
    assert!(fixed(
        "rem.u32 %r2, %r1, %r9; mul.lo.s32 %r2, %r2, %r2; mul.wide.u32 %rd4, %r2, 4; add.s64 %rd4, %rd2, %rd4; st.global.u32 [%rd4], %r1;"
    ));
    assert!(fixed(
        "setp.lt.u32 %p1, %r1, %r9; @%p1 add.s64 %rd3, %rd3, 64; add.s64 %rd4, %rd2, %rd3; @%p1 st.global.u32 [%rd4], %r1;"
    ));
}

#[test]
fn loaded_indices_guards_and_bounds_are_data() {
    let load = "add.s64 %rd4, %rd1, %rd3; ld.global.u32 %r2, [%rd4];";
    assert!(!fixed(&format!("{load} mul.wide.u32 %rd5, %r2, 4; add.s64 %rd5, %rd2, %rd5; st.global.u32 [%rd5], %r1;")));
    assert!(!fixed(&format!(
        "{load} setp.ne.u32 %p1, %r2, 0; add.s64 %rd5, %rd2, %rd3; @%p1 st.global.u32 [%rd5], %r1;"
    )));
    assert!(!fixed(&format!(
        "{load} setp.ne.u32 %p1, %r2, 0; @%p1 bra L; add.s64 %rd5, %rd2, %rd3; st.global.u32 [%rd5], %r1; L:"
    )));
    // An early end decides over all that follows.
    assert!(!fixed(&format!(
        "{load} setp.ne.u32 %p1, %r2, 0; @%p1 ret; add.s64 %rd5, %rd2, %rd3; st.global.u32 [%rd5], %r1;"
    )));
    let turns = "mov.u32 %r3, 0; L: add.s64 %rd5, %rd2, %rd3; st.global.u32 [%rd5], %r1; add.s64 %rd3, %rd3, 128; add.s32 %r3, %r3, 1;";
    assert!(!fixed(&format!("{load} {turns} setp.lt.u32 %p1, %r3, %r2; @%p1 bra L;")));
    assert!(fixed(&format!("{load} {turns} setp.lt.u32 %p1, %r3, %r9; @%p1 bra L;")));
    // The choice between two addresses.
    let choice = "add.s64 %rd5, %rd2, %rd3; setp.ne.u32 %p1, %r2, 0; @%p1 bra L; add.s64 %rd5, %rd5, 4096; L: st.global.u32 [%rd5], %r1;";
    assert!(!fixed(&format!("{load} {choice}")));
    assert!(!fixed(&format!(
        "{load} setp.ne.u32 %p1, %r2, 0; selp.b64 %rd5, %rd1, %rd2, %p1; st.global.u32 [%rd5], %r1;"
    )));
}

#[test]
fn shared_memory_and_atomics_are_data_too() {
    assert!(!fixed(
        "mov.u32 %r4, s; ld.shared.u32 %r2, [%r4]; mul.wide.u32 %rd5, %r2, 4; add.s64 %rd5, %rd2, %rd5; st.global.u32 [%rd5], %r1;"
    ));
    assert!(!fixed(
        "atom.global.add.u32 %r2, [%rd1], 1; mul.wide.u32 %rd5, %r2, 4; add.s64 %rd5, %rd2, %rd5; st.global.u32 [%rd5], %r1;"
    ));
    assert!(!fixed(
        "mov.u32 %r2, %clock; mul.wide.u32 %rd5, %r2, 4; add.s64 %rd5, %rd2, %rd5; st.global.u32 [%rd5], %r1;"
    ));
}

#[test]
fn waiting_in_shared_memory_decides_nothing_behind_it() {
    let wait = "mov.u32 %r4, s; W: ld.shared.u32 %r2, [%r4]; setp.eq.u32 %p1, %r2, 0; @%p1 bra W;";
    assert!(fixed(&format!("{wait} add.s64 %rd5, %rd2, %rd3; st.global.u32 [%rd5], %r1;")));
    // How often a flag in global memory is read does not change which bytes are read, but the rule
    // does not see that.
    let poll = "W: ld.volatile.global.u32 %r2, [%rd1]; setp.eq.u32 %p1, %r2, 0; @%p1 bra W;";
    assert!(!fixed(&format!("{poll} add.s64 %rd5, %rd2, %rd3; st.global.u32 [%rd5], %r1;")));
}
