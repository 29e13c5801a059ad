//! Libraries that are ops of their own: NCCL, against one that launches a kernel for each call.

use std::path::{Path, PathBuf};

use tests::run::{end, streamsan};
use tests::{build, fake};

fn nccl() -> PathBuf {
    let source = build::programs().join("fake/nccl.c");
    let header = build::programs().join("fake/cuda_mini.h");
    let mut args: Vec<String> =
        ["-O1", "-shared", "-fPIC", "-w", "-Wl,-soname,libnccl.so.2", "-o", "{out}"].map(String::from).into();
    args.push(format!("-I{}", build::programs().join("fake").display()));
    args.extend([source.display().to_string(), "-L".into(), fake::folder().display().to_string(), "-lcuda".into()]);
    build::cached("libnccl.so.2", Path::new("gcc"), &args, &[&source, &header])
        .unwrap_or_else(|e| panic!("the fake NCCL does not compile: {e}"))
}

#[test]
fn collectives_are_ops_of_their_streams() {
    let library = nccl();
    let folder = library.parent().expect("a folder").display().to_string();
    let program = build::c_program(
        "nccl.c",
        &[
            &library.to_string_lossy(),
            &format!("-Wl,-rpath,{folder}"),
            "-L",
            &fake::folder().to_string_lossy(),
            "-lcuda",
        ],
    );
    for (case, hazard, call) in [
        ("reduce", "read-after-write", "ncclAllReduce"),
        ("gather", "write-after-write", "ncclAllGather"),
        ("recv", "write-after-write", "ncclRecv"),
        ("devices", "read-after-write", "ncclAllReduce"),
    ] {
        let report = build::scratch(&format!("nccl-{case}")).join("report.json");
        let mut command = streamsan(["--json"]);
        let ended = end(command.arg(&report).arg("--").arg(&program).arg(case));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(66), "done\n"), "{}", ended.err);
        let json = std::fs::read_to_string(&report).expect("a report");
        // One finding: the library's own launch through the same pointer is not another.
        assert!(ended.err.contains("SUMMARY: 1 finding (1 certain, 0 likely), 1 occurrence"), "{}", ended.err);
        assert!(json.contains(&format!("\"call\": \"{call}\"")) && json.contains(hazard), "{case}: {json}");
        let ended = end(streamsan(["--"]).arg(&program).arg(case).arg("waits"));
        assert_eq!(ended.code(), Some(0), "{}", ended.err);
        assert!(ended.err.contains("SUMMARY: 0 findings"), "{}", ended.err);
    }
}
