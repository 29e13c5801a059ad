//! Calls that are not followed: what they are given counts as touched anywhere, in either
//! direction, and nothing else loses its bytes for them. Their twins, whose functions are there,
//! are followed. (`ranges_calls.rs` has functions that are known by name.)

use crate::support::cuda;
use device_code::arch::Arch;
use device_code::image::CodeRef;
use kernels::{AccessKind, Base, CodeImage, Extent, LaunchArgs, Reason, WordExtent};

/// A function, there or not.
const KNOWN: &str = ".func change(.param .b64 to)\n{\n.reg .b64 %a<2>;\n.reg .b32 %v<2>;\nld.param.u64 %a1, [to];\n\
    mov.u32 %v1, 5;\nst.u32 [%a1+16], %v1;\nret;\n}\n";
const UNKNOWN: &str = ".extern .func change(.param .b64 to);\n";

/// A kernel with two pointers and a number.
fn kernel(function: &str, body: &str) -> CodeImage {
    let text = format!(
        ".version 8.8\n.target sm_80\n.address_size 64\n{function}\
         .visible .entry k(.param .u64 p, .param .u64 q, .param .u64 n)\n{{\n\
         .local .align 8 .b8 frame[16];\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .b64 %s<9>;\n\
         ld.param.u64 %rd1, [p];\nld.param.u64 %rd2, [q];\nld.param.u64 %rd3, [n];\nmov.u32 %r1, 7;\n{body}\nret;\n}}\n"
    );
    CodeImage::from_code(CodeRef::Ptx(text.clone().into()), Arch::new(80)).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Calls `change` with a register.
fn call(register: &str) -> String {
    format!("{{\n.param .b64 to;\nst.param.b64 [to], {register};\ncall.uni change, (to);\n}}\n")
}

/// What a launch touches through its parameters: letter, word, bytes (`?`: unknown, `passed`:
/// unknown because of such a call).
fn touched(image: &CodeImage) -> Vec<String> {
    launched(image, "k", &[0x7f01_0000_0000, 0x7f02_0000_0000, 100], 1)
}

/// The same of a block of so many threads, with these parameters.
fn launched(image: &CodeImage, kernel: &str, params: &[u64], threads: u32) -> Vec<String> {
    let summary = image.summary(kernel).expect("summarised");
    let params: Vec<u8> = params.iter().flat_map(|w| w.to_le_bytes()).collect();
    let mut found = Vec::new();
    summary.evaluate(&LaunchArgs::new([1; 3], [threads, 1, 1], &params), &mut found);
    let mut said: Vec<String> = found
        .iter()
        .filter_map(|a| {
            let kind = match a.kind {
                AccessKind::Read => "r",
                AccessKind::Write => "w",
                AccessKind::Atomic => "a",
                AccessKind::AtomicRead => "ar",
                AccessKind::AtomicWrite => "aw",
            };
            let Base::Word { offset, .. } = a.base else { return None };
            Some(match a.extent {
                Extent::Bounded { lo, hi, .. } => format!("{kind} {offset} {lo}..{hi}"),
                Extent::Unknown { reason: Reason::Passed } => format!("{kind} {offset} passed"),
                Extent::Unknown { .. } => format!("{kind} {offset} ?"),
            })
        })
        .collect();
    said.sort();
    said
}

const OWN: &str = "st.global.u32 [%rd1], %r1;\n";

#[test]
fn what_a_call_is_given_is_touched_anywhere_and_the_rest_keeps_its_bytes() {
    let body = format!("{OWN}{}", call("%rd2"));
    assert_eq!(touched(&kernel(UNKNOWN, &body)), ["r 8 passed", "w 0 0..4", "w 8 passed"]);
    assert_eq!(touched(&kernel(KNOWN, &body)), ["w 0 0..4", "w 8 16..20"]);
}

#[test]
fn a_number_that_is_added_to_the_pointer_is_named_too() {
    // Only a launch shows which of the two is the pointer.
    let body = format!("add.s64 %rd4, %rd2, %rd3;\n{}", call("%rd4"));
    assert_eq!(touched(&kernel(UNKNOWN, &body)), ["r 16 passed", "r 8 passed", "w 16 passed", "w 8 passed"]);
    assert!(touched(&kernel(KNOWN, &body)).contains(&"w 8 116..120".to_owned()));
}

#[test]
fn a_pointer_in_local_memory_is_given_by_its_address() {
    let body = format!("st.local.u64 [frame], %rd2;\nmov.u64 %s1, frame;\ncvta.local.u64 %s2, %s1;\n{}", call("%s2"));
    assert_eq!(touched(&kernel(UNKNOWN, &body)), ["r 8 passed", "w 8 passed"]);
    // The function writes to local memory then.
    assert_eq!(touched(&kernel(KNOWN, &body)), [""; 0]);
}

#[test]
fn an_address_that_a_call_may_have_changed_keeps_its_pointer() {
    let body = format!("add.s64 %rd5, %rd1, 64;\n{}st.global.u32 [%rd5], %r1;\n", call("%rd2"));
    assert_eq!(touched(&kernel(UNKNOWN, &body)), ["r 8 passed", "w 0 ?", "w 8 passed"]);
    assert_eq!(touched(&kernel(KNOWN, &body)), ["w 0 64..68", "w 8 16..20"]);
}

#[test]
fn explain_names_the_call() {
    let body = format!("{OWN}{}", call("%rd2"));
    let words = |function: &str| {
        let image = kernel(function, &body);
        let summary = image.summary("k").expect("summarised");
        let found: Vec<_> = summary.words().iter().map(|w| (w.offset, w.extent, w.why.map(|gap| gap.reason))).collect();
        (found, summary.indirect().why.map(|gap| gap.reason))
    };
    let known = |offset| (offset, WordExtent::Affine, None);
    let passed = (8, WordExtent::Unknown, Some(Reason::Passed));
    assert_eq!(words(UNKNOWN), (vec![known(0), passed], Some(Reason::Call)));
    assert_eq!(words(KNOWN), (vec![known(0), known(8)], None));
}

#[test]
fn functions_in_other_sections_are_followed_where_the_linker_says_what_is_called() {
    cuda::deep(|| {
        for arch in ["sm_75", "sm_80", "sm_90", "sm_120"] {
            let image = cuda::linked("apart.cu", arch);
            let touched = |kernel: &str| {
                let pointers = [0x7f01_0000_0000, 0x7f02_0000_0000, 0x7f03_0000_0000, 64];
                launched(&image, kernel, &pointers, 64)
            };
            assert_eq!(touched("apart"), ["r 8 16..272", "w 0 0..508", "w 16 0..256"], "{arch}");
            // Which function that is, a table in memory says.
            let unknown = touched("unknown");
            let passed = ["r 0 passed", "r 8 passed", "w 0 passed", "w 8 passed"];
            assert!(passed.iter().all(|access| unknown.iter().any(|found| found == access)), "{arch}: {unknown:?}");
            let own: Vec<&String> = unknown.iter().filter(|access| access.contains(" 16 ")).collect();
            assert_eq!(own, ["w 16 0..256"], "{arch}: {unknown:?}");
        }
    });
}

#[test]
fn accesses_in_other_sections_have_their_own_lines() {
    let source = include_str!("cuda/apart.cu");
    let line = |text: &str| source.lines().position(|line| line.contains(text)).expect("a line") as u32 + 1;
    let image = cuda::linked("apart.cu", "sm_80");
    let summary = image.summary("apart").expect("summarised");
    let lines: Vec<(AccessKind, u32)> = summary
        .instructions()
        .map(|(kind, at, _)| (kind, image.lines("apart", at).first().map_or(0, |place| place.line)))
        .collect();
    let wanted = [
        (AccessKind::Write, line("own[i] = 1")),
        (AccessKind::Read, line("return x[i]")),
        (AccessKind::Write, line("to[2 * i]")),
    ];
    for access in wanted {
        assert!(lines.contains(&access), "{access:?} in {lines:?}");
    }
}

/// A kernel that calls a function by a pointer, and the function.
fn by_pointer(sm: u16, body: &str, own: &str) -> String {
    format!(
        ".version 8.7\n.target sm_{sm}\n.address_size 64\n\
         .func change(.param .b64 to)\n{{\n.reg .b64 %a;\n.reg .b32 %v;\nld.param.u64 %a, [to];\nmov.u32 %v, 5;\n\
         {body}\nret;\n}}\n.visible .global .align 8 .u64 table[1] = {{change}};\n\
         .visible .entry k(.param .u64 p, .param .u64 q)\n{{\n.reg .b64 %p, %q, %f;\n.reg .b32 %r;\n\
         ld.param.u64 %p, [p];\nld.param.u64 %q, [q];\nmov.u32 %r, 7;\n{own}\nld.global.u64 %f, [table];\n{{\n\
         .param .b64 to;\nst.param.b64 [to], %q;\ntype : .callprototype _ (.param .b64 _);\n\
         call %f, (to), type;\n}}\nret;\n}}\n"
    )
}

#[test]
fn a_pointer_leads_to_accesses_only_where_a_function_makes_some() {
    let cases = [
        ("add.u32 %v, %v, 3;\nmul.lo.u32 %v, %v, %v;", false),
        ("{\n.local .b32 own[4];\nst.local.u32 [own], %v;\nld.local.u32 %v, [own];\n}", false),
        ("st.global.u32 [%a], %v;", false),
        ("ld.global.u32 %v, [%a];\nst.global.u32 [%a+4], %v;", false),
        ("st.release.sys.global.u32 [%a], %v;", false),
        ("red.global.add.u32 [%a], %v;", true),
        ("atom.global.cas.b32 %v, [%a], %v, %v;\nst.global.u32 [%a+4], %v;", true),
    ];
    // What the kernel updates itself is its own matter.
    for own in ["", "red.global.add.u32 [%p], %r;", "st.global.u32 [%p], %r;"] {
        for (sm, (body, updates)) in [80, 90].into_iter().flat_map(|sm| cases.map(|case| (sm, case))) {
            let text = by_pointer(sm, body, own);
            let name = format!("by-pointer-{sm}-{}-{}.ptx", own.len(), body.len());
            let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
            if std::fs::read_to_string(&file).ok().as_ref() != Some(&text) {
                std::fs::write(&file, &text).expect("a file");
            }
            let code = tests::build::nvcc(&file, &["-cubin", &format!("-arch=sm_{sm}")]);
            let code = std::fs::read(code).expect("compiled");
            for (front, bytes) in [("PTX", text.as_bytes()), ("machine code", &code)] {
                let image = CodeImage::load(bytes, Arch::new(sm)).unwrap_or_else(|e| panic!("{e}\n{text}"));
                let summary = image.summary("k").expect("summarised");
                let params: Vec<u8> = [0x7f01_0000_0000u64, 0x7f02_0000_0000].map(u64::to_le_bytes).concat();
                let mut found = Vec::new();
                summary.evaluate(&LaunchArgs::new([1; 3], [32, 1, 1], &params), &mut found);
                let anywhere = |kind| found.iter().any(|a| a.kind == kind && a.base == Base::Unknown);
                let touches = body.contains("global");
                for kind in [AccessKind::Read, AccessKind::Write] {
                    assert_eq!(anywhere(kind), touches, "{front} sm_{sm} {body}: {found:?}");
                }
                assert_eq!(anywhere(AccessKind::Atomic), updates, "{front} sm_{sm} {body}: {found:?}");
                let own_update = found.iter().any(|a| a.kind == AccessKind::Atomic && a.base != Base::Unknown);
                assert_eq!(own_update, own.starts_with("red"), "{front} sm_{sm} {own}: {found:?}");
            }
        }
    }
}
