//! Calls of CUDA 12.4 to 13: batches of boxes, discards and prefetches in batches, child graphs
//! that their parents own, green contexts; and instructions of compute capability 9.0: atomics on
//! 16 bytes, bulk reductions, copies by tensor maps. Each with the work of another stream,
//! unordered and ordered.

use tests::{build, run};

/// The call, ways in which it races, and ways of waiting.
const CALLS: [(&str, &[&str], &[&str]); 6] = [
    ("boxes", &["racy"], &["host", "event"]),
    ("discard", &["racy"], &["host", "event"]),
    ("prefetch", &["racy"], &["host", "event"]),
    ("discard and prefetch", &["racy"], &["host", "event"]),
    ("moved", &["racy"], &["host", "event"]),
    ("green", &["racy", "contexts, racy", "its own, racy"], &["host", "event", "contexts", "whole", "its own"]),
];

#[test]
fn they_work_and_their_races_are_found() {
    let Some(program) = build::cuda_program_if_possible("sim/modern_calls.cu", "shared", &[]) else { return };
    for (call, racy, waiting) in CALLS {
        for (ways, code) in [(racy, 66), (waiting, 0)] {
            for how in ways {
                let mut command = run::streamsan(["run", "--sim", "--"]);
                let ended = run::end(command.arg(&program).args([call, how]).env_remove("LD_LIBRARY_PATH"));
                assert_eq!((ended.code(), ended.out.as_str()), (Some(code), "done\n"), "{call}, {how}: {}", ended.err);
                let one = ended.err.contains("SUMMARY: 1 finding (1 certain");
                assert_eq!(one, code == 66, "{call}, {how}: {}", ended.err);
            }
        }
    }
}

fn on_hopper(program: &std::path::Path, args: &[&str]) -> run::Ended {
    let mut command = run::streamsan(["run", "--sim", "--"]);
    command.arg(program).args(args).env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", "arch=90");
    run::end(&mut command)
}

/// Kernels of `wide_words.cu` that are atomic towards themselves.
const WORDS: [&str; 16] = [
    "swap",
    "exchange",
    "add.u32",
    "add.s32",
    "add.u64",
    "add.f32",
    "add.f64",
    "add.noftz.f16",
    "min.u32",
    "min.s64",
    "max.s32",
    "max.u64",
    "inc.u32",
    "and.b32",
    "or.b64",
    "xor.b32",
];

#[test]
fn wide_atomics_and_bulk_reductions() {
    let Some(program) = build::cuda_program_if_possible("sim/wide_words.cu", "shared", &[]) else { return };
    let each = WORDS.into_iter().flat_map(|kernel| [(kernel, "atomic", 0), (kernel, "racy", 66), (kernel, "event", 0)]);
    for (kernel, how, code) in each.chain([("move", "racy", 66), ("move", "event", 0)]) {
        let ended = on_hopper(&program, &[kernel, how]);
        assert_eq!((ended.code(), ended.out.as_str()), (Some(code), "done\n"), "{kernel}, {how}: {}", ended.err);
    }
}

/// What a program printed on an H200 (2026-11-30).
fn measured(name: &str) -> String {
    std::fs::read_to_string(build::programs().join(format!("sim/{name}.h200.txt"))).expect("what was measured")
}

#[test]
fn copies_by_tensor_maps() {
    let Some(program) = build::cuda_program_if_possible("sim/tensor_maps.cu", "shared", &[]) else { return };
    let ended = on_hopper(&program, &[]);
    assert_eq!(ended.code(), Some(0), "{}{}", ended.out, ended.err);
    assert_eq!(ended.out, measured("tensor_maps"));
    let Some(columns) = build::cuda_program_if_possible("sim/tensor_images.cu", "shared", &[]) else { return };
    let ended = on_hopper(&columns, &[]);
    assert_eq!(ended.code(), Some(0), "{}{}", ended.out, ended.err);
    assert_eq!(ended.out, measured("tensor_images"));
    let ended = on_hopper(&columns, &["illegal"]);
    assert!(ended.out.ends_with("cudaErrorIllegalInstruction\n"), "{}{}", ended.out, ended.err);
    assert!(ended.err.contains("reaches behind the image"), "{}", ended.err);
    // Tiles that the hardware does not copy, and one that it does.
    for (which, why) in [
        ("0", "not at a multiple of 16 bytes"),
        ("1", "not at a multiple of 16 bytes"),
        ("2", "from a negative coordinate on"),
    ] {
        let ended = on_hopper(&program, &[which]);
        assert_eq!(ended.out, "cudaErrorIllegalInstruction\n", "{which}: {}", ended.err);
        assert!(ended.err.contains(why), "{which}: {}", ended.err);
    }
    let ended = on_hopper(&program, &["3"]);
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "cudaSuccess\n"), "{}", ended.err);
    for what in ["load", "store", "reduce"] {
        for (how, code) in [("racy", 66), ("event", 0)] {
            let ended = on_hopper(&program, &[what, how]);
            assert_eq!((ended.code(), ended.out.as_str()), (Some(code), "done\n"), "{what}, {how}: {}", ended.err);
        }
    }
}
