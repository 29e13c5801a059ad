//! Forms of PTX that Triton, NVRTC and Numba emit beside the plain ones. Each must touch what it
//! touches, and nothing else.

use device_code::arch::Arch;
use device_code::image::CodeRef;
use kernels::{AccessKind, Base, CodeImage, Extent, LaunchArgs, WordExtent};

/// Parameters of the kernels here: a pointer, another, a number, a tensor map.
const HEAD: &str = ".version 8.8\n.target sm_100a\n.address_size 64\n\
    .visible .entry k(.param .u64 p, .param .u64 q, .param .u32 n, .param .align 64 .b8 map[128])\n{\n\
    .reg .b16 %h<9>;\n.reg .b32 %r<99>;\n.reg .b64 %rd<9>;\n.reg .f32 %f<99>;\n.reg .pred %p<9>;\n.shared .align 128 .b8 room[1024];\n\
    ld.param.u64 %rd1, [p];\nld.param.u64 %rd2, [q];\nld.param.u32 %r9, [n];\nmov.u32 %r1, %tid.x;\n";
const P: u64 = 0x7f00_0000_0000;
const Q: u64 = 0x7f80_0000_0000;

fn image(code: &str) -> CodeImage {
    let text = format!("{HEAD}{code}\nret;\n}}\n");
    CodeImage::from_code(CodeRef::Ptx(text.into()), Arch::new(100)).unwrap_or_else(|e| panic!("{e}\n{code}"))
}

/// What one block of 64 threads touches: letter, what it counts from, first byte and one past the
/// last (`?`: unknown).
fn touched(code: &str, n: u32) -> Vec<String> {
    let summary = image(code).summary("k").expect("summarised");
    let mut params = Vec::new();
    params.extend(P.to_le_bytes());
    params.extend(Q.to_le_bytes());
    params.extend(n.to_le_bytes());
    params.resize(64 + 128, 0);
    let mut out = Vec::new();
    summary.evaluate(&LaunchArgs::new([1, 1, 1], [64, 1, 1], &params), &mut out);
    let mut said: Vec<String> = out
        .iter()
        .map(|a| {
            let kind = match a.kind {
                AccessKind::Read => "r",
                AccessKind::Write => "w",
                AccessKind::Atomic => "a",
                AccessKind::AtomicRead => "ar",
                AccessKind::AtomicWrite => "aw",
            };
            let base = match a.base {
                Base::Word { offset: 0, .. } => "p".to_owned(),
                Base::Word { offset: 8, .. } => "q".to_owned(),
                other => format!("{other:?}"),
            };
            match a.extent {
                Extent::Bounded { lo, hi, .. } => format!("{kind} {base} {lo}..{hi}"),
                Extent::Unknown { .. } => format!("{kind} {base} ?"),
            }
        })
        .collect();
    said.sort();
    said
}

/// The bytes that a store to `p` plus `%r2` goes to.
fn stored(code: &str) -> Vec<String> {
    touched(&format!("{code}\ncvt.u64.u32 %rd3, %r2;\nadd.s64 %rd4, %rd1, %rd3;\nst.global.b32 [%rd4], %r1;"), 7)
}

#[test]
fn halves_and_bytes_are_put_together_and_taken_apart() {
    // Low half the thread's number times four, high half nothing.
    let halves = "shl.b32 %r3, %r1, 2;\ncvt.u16.u32 %h1, %r3;\nmov.b16 %h2, 0;\nmov.b32 %r2, {%h1, %h2};";
    assert_eq!(stored(halves), ["w p 0..256"]);
    let swapped = "mov.b16 %h2, 0;\nmov.b16 %h1, 2;\nmov.b32 %r2, {%h2, %h1};";
    assert_eq!(stored(swapped), ["w p 131072..131076"]);
    let apart = "shl.b32 %r3, %r1, 18;\nmov.b32 {%h1, %h2}, %r3;\ncvt.u32.u16 %r2, %h2;";
    assert_eq!(stored(apart), ["w p 0..256"]);
    let unused = "shl.b32 %r3, %r1, 18;\nmov.b32 {_, %h2}, %r3;\ncvt.u32.u16 %r2, %h2;";
    assert_eq!(stored(unused), ["w p 0..256"]);
    let four = "shl.b32 %r3, %r1, 2;\ncvt.u16.u32 %h1, %r3;\nmov.b16 %h2, 1;\nmov.b16 %h3, 0;\n\
                mov.b64 %rd5, {%h1, %h2, %h3, %h3};\ncvt.u32.u64 %r2, %rd5;";
    assert_eq!(stored(four), ["w p 65536..65792"]);
}

#[test]
fn words_out_of_pairs_are_the_words_that_went_in() {
    let pair = "shl.b32 %r3, %r1, 2;\nmov.b32 %r4, 99;\nmov.b64 %rd5, {%r4, %r3};\nmov.b64 {_, %r2}, %rd5;";
    assert_eq!(stored(pair), ["w p 0..256"]);
    // Bits in both words.
    let or = "shl.b32 %r3, %r1, 2;\nor.b32 %r4, %r9, 62;\nor.b32 %r5, %r3, 1;\nmov.b64 %rd5, {%r4, %r5};\nmov.b64 {_, %r2}, %rd5;";
    assert_eq!(stored(or), ["w p 1..257"]);
    // A register that is written again in between: its old value is meant.
    let again =
        "mov.b32 %r3, 64;\nmov.b32 %r4, 0;\nmov.b64 %rd5, {%r3, %r4};\nmov.b32 %r3, 128;\nmov.b64 {%r2, _}, %rd5;";
    assert_eq!(stored(again), ["w p 64..68"]);
    let either = "setp.eq.u32 %p1, %r9, 7;\nmov.b32 %r3, 64;\nmov.b32 %r4, 0;\nmov.b64 %rd5, {%r3, %r4};\n\
                  @%p1 mov.b64 %rd5, {%r9, %r4};\nmov.b64 {%r2, _}, %rd5;";
    assert_eq!(stored(either), ["w p 7..11"]);
}

#[test]
fn funnel_shifts_by_numbers_are_followed() {
    // A rotation of what is below 2^27: a shift.
    assert_eq!(stored("shf.l.wrap.b32 %r2, %r1, %r1, 2;"), ["w p 0..256"]);
    assert_eq!(stored("shf.r.wrap.b32 %r2, %r1, %r1, 30;"), ["w p 0..256"]);
    assert_eq!(stored("mov.b32 %r4, 0;\nshf.l.wrap.b32 %r2, %r4, %r1, 2;"), ["w p 0..256"]);
    assert_eq!(stored("mov.b32 %r4, 0;\nshf.r.wrap.b32 %r2, %r4, %r1, 30;"), ["w p 0..256"]);
    assert_eq!(stored("mov.b32 %r4, 0;\nshl.b32 %r3, %r1, 2;\nshf.l.clamp.b32 %r2, %r3, %r4, 40;"), ["w p 0..256"]);
    assert_eq!(stored("mov.b32 %r4, 0;\nshl.b32 %r3, %r1, 2;\nshf.l.wrap.b32 %r2, %r4, %r3, 32;"), ["w p 0..256"]);
}

#[test]
fn arithmetic_of_16_bits_is_followed() {
    let high = "shl.b32 %r3, %r1, 10;\ncvt.u16.u32 %h1, %r3;\nmov.b16 %h2, 256;\nmul.hi.u16 %h3, %h1, %h2;\ncvt.u32.u16 %r2, %h3;";
    assert_eq!(stored(high), ["w p 0..256"]);
    assert_eq!(stored("mov.b16 %h1, -4;\nneg.s16 %h2, %h1;\ncvt.u32.u16 %r2, %h2;"), ["w p 4..8"]);
}

#[test]
fn clamped_minima_are_not_negative() {
    // Threads 0 to 63 less 32: -32 to 31.
    let code = "add.s32 %r2, %r1, -32;\nmax.s32.relu %r2, %r2, -4;\nshl.b32 %r2, %r2, 2;";
    assert_eq!(stored(code), ["w p 0..128"]);
    let code = "add.s32 %r2, %r1, -32;\nmin.s32.relu %r2, %r2, 8;\nshl.b32 %r2, %r2, 2;";
    assert_eq!(stored(code), ["w p 0..36"]);
    // Without it they may be.
    let code = "min.s32 %r2, %r1, 8;\nshl.b32 %r2, %r2, 2;";
    assert_eq!(stored(code), ["w p 0..36"]);
}

#[test]
fn fragments_of_matrices_have_their_rows() {
    // Sixteen rows of sixteen halves, 40 elements apart: fifteen strides and a row.
    let load =
        "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r10,%r11,%r12,%r13,%r14,%r15,%r16,%r17}, [%rd2+64], %r9;";
    assert_eq!(touched(load, 40), ["r q 64..1296"]);
    let store = "wmma.store.d.sync.aligned.col.m32n8k16.global.f32 [%rd1], {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, %r9;";
    // Eight columns of 32.
    assert_eq!(touched(store, 100), ["w p 0..2928"]);
    // Without a stride they lie together.
    assert_eq!(touched("wmma.load.b.sync.aligned.col.m16n16k16.global.s8 {%r10,%r11}, [%rd2];", 0), ["r q 0..256"]);
    // Generic, in shared memory.
    assert!(touched("wmma.load.b.sync.aligned.col.m16n16k16.shared.s8 {%r10,%r11}, [%r9], 16;", 0).is_empty());
}

#[test]
fn tensor_memory_is_nobody_elses() {
    let code = "mov.b32 %r2, room;\n\
        tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 128;\n\
        tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n\
        tcgen05.mma.cta_group::1.kind::f16 [%r3], %rd5, %rd6, %r4, %p1;\n\
        tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r2];\n\
        tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r5, %r6}, [%r3];\n\
        tcgen05.wait::ld.sync.aligned;\n\
        tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3], {%r5};\n\
        tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 128;";
    assert!(touched(code, 0).is_empty());
    assert_eq!(touched(&format!("{code}\nst.global.b32 [%rd1], %r5;"), 0), ["w p 0..4"]);
    // What came out of it is no number that an address could be known by.
    assert_eq!(touched(&format!("{code}\nmad.wide.u32 %rd3, %r5, 4, %rd1;\nst.global.b32 [%rd3], %r5;"), 0), ["w p ?"]);
}

#[test]
fn tensor_maps_of_parameters_and_of_the_kernels_own() {
    let read =
        "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd5, {%r3, %r3}], [%r4];";
    for address in [
        "mov.b64 %rd4, map;\ncvta.param.u64 %rd5, %rd4;",
        // Through 32 bits, as LLVM writes it.
        "mov.b32 %r5, map;\ncvt.u64.u32 %rd4, %r5;\ncvta.param.u64 %rd5, %rd4;",
    ] {
        let said = touched(&format!("{address}\n{read}"), 0);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("r TensorMap { offset: 64 }"), "{said:?}");
    }
    // Made in shared memory, copied to where the second pointer says.
    let own = "mov.b32 %r2, room;\n\
        tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r2], %rd1;\n\
        tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r2], 1;\n\
        tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd2], [%r2], 128;\n\
        fence.proxy.tensormap::generic.acquire.gpu [%rd2], 128;";
    assert_eq!(touched(own, 0), ["w q 0..128"]);
    assert_eq!(touched("tensormap.replace.tile.rank.global.b1024.b32 [%rd2+128], 1;", 0), ["w q 128..256"]);
}

#[test]
fn multicast_and_discarded_memory_is_touched() {
    let code = "multimem.ld_reduce.weak.global.add.v4.f32 {%f1,%f2,%f3,%f4}, [%rd2+16];";
    assert_eq!(touched(code, 0), ["r q 16..32"]);
    assert_eq!(touched("multimem.red.relaxed.sys.global.add.f32 [%rd2], %f1;", 0), ["a q 0..4"]);
    assert_eq!(touched("multimem.st.relaxed.sys.global.f32 [%rd1], %f1;", 0), ["aw p 0..4"]);
    assert_eq!(touched("discard.global.L2 [%rd1+128], 128;", 0), ["w p 128..256"]);
}

#[test]
fn the_shared_memory_of_a_neighbour_is_no_global_memory() {
    let code =
        "cvta.shared.u64 %rd3, room;\nmapa.u64 %rd4, %rd3, %r9;\nld.u32 %r2, [%rd4];\nst.global.b32 [%rd1], %r2;";
    let summary = image(code).summary("k").expect("summarised");
    assert!(!summary.indirect().any(), "{:?}", summary.indirect());
}

#[test]
fn words_in_structs_may_be_64_bits_wide() {
    // An array as CuPy hands it over: pointer, size, shape, stride.
    let text = ".version 8.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .align 8 .b8 a[32], .param .align 8 .b8 b[16])\n{\n\
        .reg .b32 %r<9>;\n.reg .b64 %rd<19>;\n.reg .pred %p<9>;\n\
        ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [a+8];\nld.param.u64 %rd3, [a+24];\n\
        mov.u32 %r1, %tid.x;\ncvt.u64.u32 %rd4, %r1;\nsetp.ge.s64 %p1, %rd4, %rd2;\n@%p1 ret;\n\
        mul.lo.s64 %rd5, %rd4, %rd3;\nadd.s64 %rd6, %rd1, %rd5;\nst.global.u32 [%rd6], %r1;\n\
        ld.param.u32 %r2, [b+4];\nsetp.ge.u32 %p2, %r1, %r2;\n@%p2 ret;\nmul.wide.u32 %rd7, %r1, 4;\n\
        ld.param.u64 %rd8, [b+8];\nadd.s64 %rd9, %rd8, %rd7;\nld.global.u32 %r3, [%rd9];\nret;\n}\n";
    let image = CodeImage::from_code(CodeRef::Ptx(text.into()), Arch::new(80)).expect("parses");
    let summary = image.summary("k").expect("summarised");
    let words: Vec<_> = summary.words().iter().map(|w| (w.offset, w.reads, w.writes, w.extent)).collect();
    assert_eq!(words, [(0, false, true, WordExtent::Affine), (40, true, false, WordExtent::Affine)]);
}

/// A loop that swaps what it has made of what was there; `before` gives the first value in %r4.
fn swapping(before: &str, swapped: &str) -> Vec<String> {
    touched(
        &format!(
            "mad.wide.u32 %rd3, %r1, 4, %rd1;\nadd.s64 %rd4, %rd3, 4;\n{before}\n$again:\nadd.u32 %r5, %r4, 3;\n\
             atom.global.cas.b32 %r6, [{swapped}], %r4, %r5;\nsetp.ne.u32 %p1, %r6, %r4;\nmov.b32 %r4, %r6;\n@%p1 bra $again;"
        ),
        7,
    )
}

#[test]
fn the_load_before_a_loop_of_swaps_belongs_to_the_atomic() {
    let known =
        |said: &[String]| said.iter().map(|s| s.split(' ').next().unwrap_or_default().to_owned()).collect::<Vec<_>>();
    assert_eq!(swapping("ld.global.b32 %r4, [%rd3];", "%rd3"), ["a p 0..256"]);
    assert_eq!(swapping("ld.global.b32 %r7, [%rd3+8];\nmov.b32 %r4, %r7;", "%rd3+8"), ["a p 8..264"]);
    // Loaded from elsewhere, or loaded for something else too: a plain read as before.
    assert_eq!(known(&swapping("ld.global.b32 %r4, [%rd3];", "%rd4")), ["a", "r"]);
    assert_eq!(known(&swapping("ld.global.b32 %r4, [%rd2];", "%rd3")), ["a", "r"]);
    assert_eq!(known(&swapping("ld.global.b32 %r7, [%rd3];\nadd.u32 %r4, %r7, 1;", "%rd3")), ["a", "r"]);
    assert_eq!(
        known(&swapping("mov.b32 %r4, 0;\nld.global.b32 %r7, [%rd3];\nst.global.b32 [%rd2], %r7;", "%rd3")).len(),
        3
    );
    // More bytes than are swapped.
    assert_eq!(known(&swapping("ld.global.v2.b32 {%r4, %r7}, [%rd3];", "%rd3")), ["a", "r"]);
}

/// `.align` behind `.ptr` is that of what is pointed to. (CUDA 13.1's nvcc writes it for each
/// pointer.) The parameter itself lies where its type says.
#[test]
fn pointers_lie_at_multiples_of_eight_whatever_they_point_to() {
    for (mark, head) in [("", 68), (".ptr .align 1", 68), (".ptr .global .align 1", 4), (".ptr .align 16", 12)] {
        let text = format!(
            ".version 9.1\n.target sm_80\n.address_size 64\n.visible .entry k(.param .align 4 .b8 s[{head}],\n\
             .param .u64 {mark} p, .param .u32 n, .param .u64 {mark} q)\n{{\n.reg .b64 %rd<9>;\n\
             ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; st.global.u32 [%rd1], 1; st.global.u64 [%rd2], 2; ret;\n}}\n"
        );
        let image = CodeImage::from_code(CodeRef::Ptx(text.into()), Arch::new(80)).expect("PTX");
        let summary = image.summary("k").expect("summarised");
        let first = (head as u16).next_multiple_of(8);
        let words: Vec<_> = summary.words().iter().filter(|w| w.writes).map(|w| w.offset).collect();
        assert_eq!(words, [first, first + 16], "{mark}, behind {head} bytes");
    }
}

#[test]
fn the_code_may_fix_the_cluster() {
    let fixed = |directives: &str| {
        let text = format!(
            ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p)\n{directives}\n{{\nret;\n}}\n"
        );
        let image = CodeImage::from_code(CodeRef::Ptx(text.into()), Arch::new(90)).expect("PTX");
        image.summary("k").expect("summarised").cluster()
    };
    assert_eq!(fixed(".explicitcluster\n.reqnctapercluster 4, 2"), Some([4, 2, 1]));
    assert_eq!(fixed(".maxntid 64\n.reqnctapercluster 2"), Some([2, 1, 1]));
    assert_eq!(fixed(".explicitcluster"), None, "the launch says it");
    assert_eq!(fixed(".maxntid 64"), None);
}
