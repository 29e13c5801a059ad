//! Bulk operations that read shared memory which threads have written, with a fence between the
//! proxies and without it: machine code that is made of PTX for 9.0a.

use device_code::arch::Arch;
use kernels::CodeImage;
use std::fmt::Write as _;
use std::path::Path;

const STORE: &str = "st.shared.u32 [%t], %n;\n";
const FENCE: &str = "fence.proxy.async.shared::cta;\n";
const MEET: &str = "bar.sync 0;\n";
const COPY: &str = "@%one cp.async.bulk.global.shared::cta.bulk_group [%p], [%s], 512;\n";
const WAIT: &str = "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n";

/// What a kernel does, and how many of its bulk operations lack a fence.
fn forms() -> Vec<(String, usize)> {
    let mut forms = Vec::new();
    let mut put = |parts: &[&str], unfenced: usize| forms.push((parts.concat(), unfenced));
    let stores = [
        STORE,
        "st.shared.v4.b32 [%t4], {%n, %n, %n, %n};\n",
        "atom.shared.add.u32 %r, [%t], %n;\n",
        "red.shared.max.u32 [%t], %n;\n",
        "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%t4], {%n};\n",
        "cp.async.ca.shared.global [%t], [%p], 4;\ncp.async.wait_all;\n",
    ];
    let copies = [
        COPY,
        "@%one cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%p], [%s], 512;\n",
        "@%one cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%map, {%n}], [%s];\n",
        "@%one cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%map, {%n}], [%s];\n",
    ];
    for store in stores {
        put(&[store, MEET, COPY, WAIT], 1);
        put(&[store, FENCE, MEET, COPY, WAIT], 0);
    }
    for copy in copies {
        put(&[STORE, MEET, copy, WAIT], 1);
        put(&[STORE, FENCE, MEET, copy, WAIT], 0);
        put(&[STORE, "fence.proxy.async;\n", MEET, copy, WAIT], 0);
        // By the thread that issues the operation.
        put(&[STORE, MEET, "fence.proxy.async;\n", copy, WAIT], 0);
    }
    // Nothing is stored, or only behind the operation.
    put(&[COPY, WAIT], 0);
    put(&[COPY, WAIT, MEET, STORE], 0);
    // The operations of a loop read what the steps before have stored.
    let rest = "add.u32 %n, %n, 1;\nsetp.lt.u32 %q, %n, 100;\n@%q bra $loop;\n";
    put(&["$loop:\n", STORE, MEET, COPY, WAIT, MEET, rest], 1);
    put(&["$loop:\n", COPY, WAIT, MEET, STORE, MEET, rest], 1);
    put(&["$loop:\n", STORE, FENCE, MEET, COPY, WAIT, MEET, rest], 0);
    put(&["$loop:\n", COPY, WAIT, MEET, STORE, FENCE, MEET, rest], 0);
    // A fence in front of the store is none behind it.
    put(&[FENCE, STORE, MEET, COPY, WAIT], 1);
    // One under a condition may be what the program needs.
    put(&[STORE, "setp.lt.u32 %q, %n, 7;\n@%q bra $some;\n", FENCE, "$some:\n", MEET, COPY, WAIT], 0);
    put(&[STORE, "setp.lt.u32 %q, %n, 7;\n@%q fence.proxy.async;\n", MEET, COPY, WAIT], 0);
    // One behind the operation, in a loop, is none for it.
    put(&["$loop:\n", STORE, MEET, COPY, WAIT, MEET, FENCE, rest], 1);
    // Threads that store and threads that issue take different ways.
    put(&["@%one bra $one;\n", STORE, "bra $end;\n$one:\n", COPY, WAIT, "$end:\n", MEET], 0);
    // The array that is stored to is another one than the operation reads.
    let other = "st.shared.u32 [%o], %n;\n";
    put(&[other, MEET, COPY, WAIT, "ld.shared.u32 %r, [%o];\nst.global.u32 [%p+4096], %r;\n"], 0);
    put(&[STORE, other, MEET, COPY, WAIT, "ld.shared.u32 %r, [%o];\nst.global.u32 [%p+4096], %r;\n"], 1);
    forms
}

fn source() -> String {
    let mut text = ".version 8.7\n.target sm_90a\n.address_size 64\n".to_owned();
    for (n, (body, _)) in forms().iter().enumerate() {
        let body = body.replace("$loop", &format!("$loop{n}")).replace("$some", &format!("$some{n}"));
        let body = body.replace("$one", &format!("$one{n}")).replace("$end", &format!("$end{n}"));
        write!(
            text,
            ".visible .entry k{n}(.param .u64 p, .param .u64 m, .param .u32 n) {{\n\
             .shared .align 128 .b8 tile[4096];\n.shared .align 128 .b8 other[4096];\n\
             .reg .b64 %p;\n.reg .b64 %map;\n.reg .b32 %r;\n.reg .b32 %s;\n.reg .b32 %t;\n.reg .b32 %t4;\n.reg .b32 %o;\n\
             .reg .b32 %n;\n.reg .pred %q;\n.reg .pred %one;\n\
             ld.param.u64 %p, [p];\nld.param.u64 %map, [m];\nld.param.u32 %n, [n];\ncvta.to.global.u64 %p, %p;\n\
             mov.u32 %s, tile;\nmov.u32 %r, %tid.x;\nsetp.eq.u32 %one, %r, 0;\nshl.b32 %t, %r, 2;\n\
             mov.u32 %o, other;\nadd.u32 %o, %o, %t;\nadd.u32 %t, %t, %s;\nshl.b32 %t4, %r, 4;\nadd.u32 %t4, %t4, %s;\n\
             {body}\nret;\n}}\n"
        )
        .unwrap();
    }
    text
}

#[test]
fn a_bulk_operation_needs_a_fence_behind_the_stores_that_it_reads() {
    let text = source();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("proxy-paths.ptx");
    if std::fs::read_to_string(&file).ok().as_ref() != Some(&text) {
        std::fs::write(&file, &text).expect("a file");
    }
    let code = std::fs::read(tests::build::nvcc(&file, &["-cubin", "-arch=sm_90a"])).expect("compiled");
    let image = CodeImage::load(&code, Arch::new(90)).unwrap_or_else(|e| panic!("{e}"));
    for (n, (body, wanted)) in forms().iter().enumerate() {
        let summary = image.summary(&format!("k{n}")).unwrap_or_else(|e| panic!("{body}: {e}"));
        let found = summary.unfenced_copies();
        assert_eq!(found.len(), *wanted, "{n}: {found:x?}\n{body}");
        assert!(found.iter().all(|copy| copy.at != copy.store), "{found:x?}");
    }
}
