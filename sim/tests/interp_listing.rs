//! The listing of a program: each instruction is named by its operation and operands, which native
//! code takes its registers from.

use crate::interp_support::Gpu;

const TEXT: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out) {
    .reg .pred %p<3>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 16;
    @!%p1 bra DONE;
    activemask.b32 %r2;
    shfl.sync.bfly.b32 %r3|%p2, %r1, 1, 31, 65535;
    vote.sync.ballot.b32 %r4, %p2, 65535;
    selp.b32 %r5, %r3, %r4, %p1;
    st.global.v2.u32 [%rd1], {%r2, %r5};
    atom.global.add.u32 %r2, [%rd1+8], %r5;
    bar.sync 0;
DONE:
    ret;
}
";

/// What the text became, without the numbers of instructions and constants. Rows 0 and 1 are the
/// function's own; then come the registers in the order in which they appear, and temporaries.
const LISTING: &str = "\
LoadParam d=r2
Special d=r8
Lane a=r8 d=r3
Lane a=r3 b=c p=p0 q=true
@!p0 Branch
ActiveMask d=r4
Shuffle value=r3 lane=c clamp=c members=c d=r5 inside=p1
Vote truth=p1 members=c d=r6
Select a=r5 b=r6 which=p0 d=r7
Store address=r2 all=r4 all=r7
Atomic address=r2 b=r7 c=r7 d=r4
Barrier number=c threads=none
Return address=r0
Return address=r0
";

#[test]
fn a_listing_names_operations_and_operands() {
    let gpu = Gpu::from_ptx(TEXT);
    let (program, _) = gpu.kernels()[0];
    let word = |word: &str| match word.split_once("=c") {
        Some((name, number)) if number.parse::<u32>().is_ok() => format!("{name}=c"),
        _ => word.to_owned(),
    };
    let line = |line: &str| line.split_whitespace().skip(1).map(word).collect::<Vec<_>>().join(" ") + "\n";
    assert_eq!(program.listing().lines().map(line).collect::<String>(), LISTING);
}
