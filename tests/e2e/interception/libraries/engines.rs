//! Engines beside CUDA that libraries drive: RDMA cards through ibverbs, and UCX. Each case that
//! races has a twin that does not; the libraries are ours, with the layouts of the real ones.

use std::path::Path;

use tests::run::{Ended, end, streamsan};
use tests::{build, fake};

use super::{library, user};

/// One case of a program that races, as its twin does not.
struct Case {
    name: &'static str,
    hazard: &'static str,
    grade: &'static str,
    /// What the report calls the engine's work.
    says: &'static str,
}

const fn case(name: &'static str, hazard: &'static str, grade: &'static str, says: &'static str) -> Case {
    Case { name, hazard, grade, says }
}

fn run(program: &Path, args: &[&str]) -> Ended {
    end(streamsan(["--"]).arg(program).args(args))
}

fn races_and_is_mended(program: &Path, case: &Case) {
    let Case { name, hazard, grade, says } = case;
    let ended = run(program, &[name]);
    assert_eq!((ended.code(), ended.out.as_str()), (Some(66), "done\n"), "{name}: {}", ended.err);
    assert!(ended.err.contains("SUMMARY: 1 finding ("), "{name}: {}", ended.err);
    assert!(ended.err.contains(&format!("DATA RACE: {hazard} ({grade})")), "{name}: {}", ended.err);
    assert!(ended.err.contains(says), "{name}: {says}: {}", ended.err);
    is_clean(program, &[name, "waits"]);
}

fn is_clean(program: &Path, args: &[&str]) -> String {
    let ended = run(program, args);
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{args:?}: {}", ended.err);
    assert!(ended.err.contains("SUMMARY: 0 findings"), "{args:?}: {}", ended.err);
    ended.err
}

/// Posting and polling go through the table of operations of a device, not through symbols.
#[test]
fn work_of_an_rdma_card() {
    let program = user("verbs.c", &library("verbs.c", "libibverbs.so.1"));
    for one in [
        case("sent", "read-after-write", "certain", "send (work request 7)"),
        case("written", "read-after-write", "certain", "RDMA write (work request 7)"),
        case("reused", "write-after-read", "certain", "RDMA write (work request 7)"),
        case("received", "read-after-write", "likely", "receive (work request 9)"),
        case("read", "read-after-write", "certain", "RDMA read (work request 7)"),
        case("added", "read-after-write", "certain", "fetch and add (work request 7)"),
        case("freed", "write-after-write", "certain", "RDMA read (work request 7)"),
        case("shared", "read-after-write", "likely", "ibv_post_srq_recv"),
        case("unsignalled", "write-after-read", "certain", "send (work request 1)"),
        case("later", "write-after-read", "certain", "send (work request 3)"),
        case("host", "read-after-write", "certain", "RDMA read (work request 7)"),
        case("inline", "read-after-write", "certain", "ibv_post_send"),
        case("moved", "read-after-write", "certain", "RDMA write (work request 7)"),
        case("renamed", "read-after-write", "certain", "RDMA write (work request 7)"),
        case("replaced", "read-after-write", "certain", "RDMA write (work request 7)"),
        case("kept", "read-after-write", "certain", "RDMA write (work request 7)"),
        case("next-key", "read-after-write", "certain", "RDMA write (work request 7)"),
        case("next-pair", "read-after-write", "likely", "receive (work request 9)"),
        case("pair-kept", "read-after-write", "likely", "receive (work request 9)"),
        case("descriptor", "read-after-write", "certain", "RDMA write (work request 7)"),
        case("thread", "write-after-read", "certain", "RDMA write (work request 7)"),
        case("early", "read-after-write", "certain", "RDMA write (work request 7)"),
    ] {
        races_and_is_mended(&program, &one);
    }
    for name in [
        "event",
        "beside",
        "other",
        "pieces",
        "copied",
        "refused",
        "failed",
        "destroyed",
        "reset",
        "all",
        "closed",
        "looked-up",
    ] {
        is_clean(&program, &[name]);
    }
}

/// libibverbs' symbols have versions, ours have none.
#[test]
fn work_of_an_rdma_card_through_symbols_with_versions() {
    let folder = build::programs().join("fake");
    let (source, map) = (folder.join("verbs.c"), folder.join("verbs.map"));
    let mut args: Vec<String> = ["-O1", "-shared", "-fPIC", "-w", "-o", "{out}"].map(String::from).into();
    args.extend(["-Wl,-soname,libibverbs.so.1".into(), format!("-Wl,--version-script={}", map.display())]);
    args.push(source.display().to_string());
    let made = build::cached("libibverbs.so.1", Path::new("gcc"), &args, &[&source, &map]);
    let program = user("verbs.c", &made.unwrap_or_else(|e| panic!("{e}")));
    races_and_is_mended(&program, &case("reused", "write-after-read", "certain", "RDMA write (work request 7)"));
}

/// A value in memory, or a kernel's flag, may tell the host that a block can be sent.
#[test]
fn work_of_an_rdma_card_that_the_host_may_have_been_told_of() {
    let program = user("verbs.c", &library("verbs.c", "libibverbs.so.1"));
    let sim = |name: &str| end(streamsan(["--sim", "--"]).arg(&program).arg(name));
    let ended = sim("told");
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{}", ended.err);
    assert!(ended.err.contains("SUMMARY: 0 findings"), "{}", ended.err);
    let ended = sim("told-early");
    assert_eq!((ended.code(), ended.out.as_str()), (Some(66), "done\n"), "{}", ended.err);
    assert!(ended.err.contains("DATA RACE: read-after-write (certain)"), "{}", ended.err);
}

/// What is posted or completes past the functions that are seen is counted, and never a race.
#[test]
fn work_of_an_rdma_card_that_is_not_modelled() {
    let program = user("verbs.c", &library("verbs.c", "libibverbs.so.1"));
    for (name, what) in [
        ("extended", "work that completes in a queue of ibv_create_cq_ex"),
        ("unknown", "memory by a key whose place in the process is not known"),
        ("immediate", "which bytes a peer wrote (IBV_WC_RECV_RDMA_WITH_IMM)"),
        ("provider", "an opcode of the provider"),
        ("builder", "work that ibv_wr_start and ibv_wr_complete post"),
        ("early-builder", "work that ibv_wr_start and ibv_wr_complete post"),
    ] {
        let said = is_clean(&program, &[name]);
        assert!(said.contains(what), "{name}: {said}");
    }
}

const UCX: [Case; 17] = [
    case("sent", "read-after-write", "certain", "the UCX tag send"),
    case("put", "read-after-write", "certain", "the UCX put"),
    case("stream", "read-after-write", "certain", "the UCX stream send"),
    case("message", "read-after-write", "certain", "the UCX active message"),
    case("small", "read-after-write", "certain", "ucp_tag_send_nbx"),
    case("reused", "write-after-read", "certain", "the UCX put"),
    case("flushed", "write-after-read", "certain", "the UCX put"),
    case("worker", "write-after-read", "certain", "the UCX put"),
    case("received", "read-after-write", "likely", "the UCX tag receive"),
    case("get", "read-after-write", "certain", "the UCX get"),
    case("stream-received", "read-after-write", "likely", "the UCX stream receive"),
    case("callback", "read-after-write", "likely", "the UCX tag receive"),
    case("list", "read-after-write", "likely", "the UCX tag receive"),
    case("reply", "read-after-write", "certain", "the UCX atomic operation"),
    case("freed", "write-after-write", "certain", "the UCX get"),
    case("later", "write-after-read", "certain", "the UCX put"),
    case("early", "read-after-write", "likely", "the UCX tag receive"),
];

/// By a direct link, and looked up in a library that is opened. The copies that UCX makes inside
/// are its own matter; what it calls back is the program's.
#[test]
fn operations_of_ucx() {
    let ucx = library("ucx.c", "libucp.so.0");
    let rpath = format!("-Wl,-rpath,{}", ucx.parent().expect("a folder").display());
    let opened = build::c_program("ucx.c", &["-DDLOPEN", &rpath, "-L", &fake::folder().to_string_lossy(), "-lcuda"]);
    for program in [user("ucx.c", &ucx), opened] {
        UCX.iter().for_each(|one| races_and_is_mended(&program, one));
        for name in [
            "immediate",
            "elements",
            "handler",
            "early-handler",
            "in-callback",
            "data",
            "error",
            "closed",
            "destroyed",
            "beside",
        ] {
            is_clean(&program, &[name]);
        }
    }
}

#[test]
fn operations_of_ucx_that_are_not_modelled() {
    let program = user("ucx.c", &library("ucx.c", "libucp.so.0"));
    for (name, what) in [
        ("generic", "a datatype that is not contiguous and not a list"),
        ("older", "UCX: ucp_tag_send_nb"),
        ("older", "UCX: operations of a program that calls ucp_tag_send_nb"),
        ("early-older", "UCX: ucp_tag_send_nb"),
        ("implicit", "UCX: ucp_put_nbi"),
    ] {
        let said = is_clean(&program, &[name]);
        assert!(said.contains(what), "{name}: {said}");
    }
}

/// A plugin that brings a UCX of its own, under a name of its own, and is opened for itself alone:
/// only its own scope leads to it.
#[test]
fn operations_of_a_ucx_that_only_a_plugin_sees() {
    let ucx = library("ucx.c", "libucp-1a2b3c.so.0");
    let rpath = format!("-Wl,-rpath,{}", ucx.parent().expect("a folder").display());
    let driver = fake::folder().to_string_lossy().into_owned();
    let plugin =
        build::c_program("ucx.c", &["-shared", "-DPLUGIN", &ucx.to_string_lossy(), &rpath, "-L", &driver, "-lcuda"]);
    let host = build::c_program("ucx_host.c", &["-L", &driver, "-lcuda"]);
    let plugin = plugin.to_string_lossy();
    for (name, code) in [("received", 66), ("reused", 66), ("callback", 66), ("handler", 0)] {
        let ended = run(&host, &[&plugin, name]);
        assert_eq!((ended.code(), ended.out.as_str()), (Some(code), "done\n"), "{name}: {}", ended.err);
        is_clean(&host, &[&plugin, name, "waits"]);
    }
}

/// By a direct link, and looked up in a library that is opened.
#[test]
fn transfers_of_nixl() {
    let nixl = library("nixl.c", "libnixl_capi.so.0");
    let rpath = format!("-Wl,-rpath,{}", nixl.parent().expect("a folder").display());
    let opened = build::c_program("nixl.c", &["-DDLOPEN", &rpath, "-L", &fake::folder().to_string_lossy(), "-lcuda"]);
    for program in [user("nixl.c", &nixl), opened] {
        for one in [
            case("write", "read-after-write", "certain", "the NIXL write"),
            case("small", "read-after-write", "certain", "nixl_capi_post_xfer_req"),
            case("reused", "write-after-read", "certain", "the NIXL write"),
            case("read", "read-after-write", "certain", "the NIXL read"),
            case("freed", "write-after-write", "certain", "the NIXL read"),
            case("again", "write-after-read", "certain", "the NIXL write"),
            case("places", "read-after-write", "certain", "the NIXL read"),
            case("removed", "read-after-write", "certain", "the NIXL read"),
        ] {
            races_and_is_mended(&program, &one);
        }
        let ended = run(&program, &["one-status"]);
        assert_eq!((ended.code(), ended.out.as_str()), (Some(66), "done\n"), "{}", ended.err);
        for name in ["others", "released", "destroyed", "error", "files", "beside"] {
            is_clean(&program, &[name]);
        }
    }
}

/// A version of NIXL that can sort lists: which descriptor lies at a place is not known then, and
/// what is not named by place is.
#[test]
fn transfers_of_a_nixl_that_sorts() {
    let program = user("nixl.c", &library("nixl_sorted.c", "libnixl_capi.so.0"));
    for name in ["places", "removed"] {
        let said = is_clean(&program, &[name]);
        assert!(said.contains("NIXL: a transfer whose local descriptors are not known"), "{name}: {said}");
    }
    races_and_is_mended(&program, &case("read", "read-after-write", "certain", "the NIXL read"));
}

/// A plugin of NCCL drives its engines as it agrees with NCCL's kernels; the same code in a library
/// of another name is the program's.
#[test]
fn engines_of_a_plugin_of_nccl_are_its_own() {
    let driver = fake::folder().to_string_lossy().into_owned();
    let host = build::c_program("ucx_host.c", &["-L", &driver, "-lcuda"]);
    for (source, soname) in [("verbs.c", "libibverbs.so.1"), ("ucx.c", "libucp.so.0")] {
        let engine = library(source, soname);
        let rpath = format!("-Wl,-rpath,{}", engine.parent().expect("a folder").display());
        let args = ["-shared", "-DPLUGIN", &engine.to_string_lossy(), &rpath, "-L", &driver, "-lcuda"];
        let plugin = build::c_program(source, &args);
        let ended = run(&host, &[&plugin.to_string_lossy(), "reused"]);
        assert_eq!((ended.code(), ended.out.as_str()), (Some(66), "done\n"), "{source}: {}", ended.err);
        let of_nccl = build::scratch(&format!("plugin-{soname}")).join("libnccl-net.so");
        std::fs::copy(&plugin, &of_nccl).expect("a copy");
        is_clean(&host, &[&of_nccl.to_string_lossy(), "reused"]);
    }
}
