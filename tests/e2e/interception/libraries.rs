//! Libraries that are ops of their own, and what they keep for themselves: NCCL, NVSHMEM and cuDNN,
//! each against one that does as it does.

mod engines;

use std::path::{Path, PathBuf};

use tests::run::{end, streamsan};
use tests::{build, fake};

/// A library of `programs/fake` that stands for one of NVIDIA's.
fn library(source: &str, name: &str) -> PathBuf {
    let source = build::programs().join("fake").join(source);
    let header = build::programs().join("fake/cuda_mini.h");
    let own_header = Some(source.with_extension("h")).filter(|own| own.exists()).unwrap_or(header.clone());
    let mut args: Vec<String> = ["-O1", "-shared", "-fPIC", "-w", "-o", "{out}"].map(String::from).into();
    args.push(format!("-Wl,-soname,{name}"));
    args.push(format!("-I{}", build::programs().join("fake").display()));
    args.extend([source.display().to_string(), "-L".into(), fake::folder().display().to_string(), "-lcuda".into()]);
    build::cached(name, Path::new("gcc"), &args, &[&source, &header, &own_header])
        .unwrap_or_else(|e| panic!("the fake {name} does not compile: {e}"))
}

/// A program of `programs` that is linked with such a library.
fn user(source: &str, library: &Path) -> PathBuf {
    let folder = library.parent().expect("a folder").display().to_string();
    let driver = fake::folder();
    build::c_program(
        source,
        &[&library.to_string_lossy(), &format!("-Wl,-rpath,{folder}"), "-L", &driver.to_string_lossy(), "-lcuda"],
    )
}

#[test]
fn collectives_are_ops_of_their_streams() {
    let program = user("nccl.c", &library("nccl.c", "libnccl.so.2"));
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

/// A group is one operation on all streams of its communicator: it waits for all of them, and they
/// wait for it. Of two groups the second follows the first. Of the four pairs two race then: what
/// the second stream did before, and what the first one does behind the second group.
#[test]
fn a_group_of_collectives_orders_the_streams_that_it_is_on() {
    let program = user("nccl.c", &library("nccl.c", "libnccl.so.2"));
    let ended = end(streamsan(["--"]).arg(&program).arg("streams"));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    assert!(ended.err.contains("SUMMARY: 2 findings (2 certain, 0 likely)"), "{}", ended.err);
    let ended = end(streamsan(["--"]).arg(&program).args(["streams", "together"]));
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{}", ended.err);
    assert!(ended.err.contains("SUMMARY: 0 findings"), "{}", ended.err);
}

/// A communicator that has ended orders nothing, for the next one may have its handle, unless it
/// has waited for its operations.
#[test]
fn what_follows_a_communicator_that_has_ended_is_another_one() {
    let program = user("nccl_communicators.c", &library("nccl.c", "libnccl.so.2"));
    let ended = end(streamsan(["--"]).arg(&program).args(["again", "abort"]));
    assert_eq!((ended.code(), ended.out.as_str()), (Some(66), "done\n"), "{}", ended.err);
    assert!(ended.err.contains("SUMMARY: 1 finding (1 certain, 0 likely), 1 occurrence"), "{}", ended.err);
    for how in ["destroy", "finalize", "kept", "waits"] {
        let ended = end(streamsan(["--"]).arg(&program).args(["again", how]));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{how}: {}", ended.err);
        assert!(ended.err.contains("SUMMARY: 0 findings"), "{how}: {}", ended.err);
    }
}

/// Two processes use two communicators in different orders, or in the same one.
#[test]
fn members_of_two_communicators_enqueue_in_one_order() {
    let program = user("nccl_communicators.c", &library("nccl.c", "libnccl.so.2"));
    let hints = |calls: [&str; 3]| {
        let ended = end(streamsan(["--hints", "--"]).arg(&program).args(calls));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{calls:?}: {}", ended.err);
        (ended.err.matches("HINT: A collective of one NCCL communicator").count(), ended.err)
    };
    for (first, second) in [("ab", "ba"), ("aab", "aba"), ("(aa)(bb)", "(bb)(aa)")] {
        for made in ["order", "split"] {
            let (count, said) = hints([made, first, second]);
            assert_eq!(count, 1, "{made} {first} {second}: {said}");
            assert!(said.contains("ncclAllReduce") || said.contains("ncclGroupEnd"), "{said}");
        }
    }
    // One communicator by itself, one group, sends and receives, which not all members make, and
    // one that has come further.
    for (first, second) in [
        ("ab", "ab"),
        ("abab", "abab"),
        ("aa", "bb"),
        ("(ab)", "(ba)"),
        ("sab", "arb"),
        ("(sr)aab", "a(sr)ab"),
        ("ab", "ababab"),
    ] {
        for made in ["order", "split"] {
            let (count, said) = hints([made, first, second]);
            assert_eq!(count, 0, "{made} {first} {second}: {said}");
        }
    }
}

/// Collectives of NVSHMEM, each with a twin in order.
#[test]
fn collectives_of_nvshmem_read_and_write_memory_of_their_element() {
    let program = user("nvshmem.c", &library("nvshmem.c", "libnvshmem_host.so.3"));
    for (case, call) in [
        ("broadcast", "nvshmemx_broadcastmem_on_stream"),
        ("gathered", "nvshmemx_fcollectmem_on_stream"),
        ("exchanged", "nvshmemx_alltoallmem_on_stream"),
        ("reduced", "nvshmemx_float_sum_reduce_on_stream"),
        ("landed", "nvshmemx_fcollectmem_on_stream"),
        ("scattered", "nvshmemx_float_sum_reducescatter_on_stream"),
    ] {
        let ended = end(streamsan(["--"]).arg(&program).arg(case));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(66), "done\n"), "{case}: {}", ended.err);
        assert!(ended.err.contains("DATA RACE: read-after-write (certain)"), "{case}: {}", ended.err);
        assert!(ended.err.contains(call), "{case}: {}", ended.err);
    }
    for args in [
        &["broadcast", "ordered"][..],
        &["gathered", "ordered"],
        &["exchanged", "ordered"],
        &["reduced", "ordered"],
        &["landed", "ordered"],
        &["scattered", "ordered"],
        &["others'"],
        &["untouched"],
    ] {
        let ended = end(streamsan(["--"]).arg(&program).args(args));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{args:?}: {}", ended.err);
        assert!(ended.err.contains("SUMMARY: 0 findings"), "{args:?}: {}", ended.err);
    }
}

/// Puts, gets and signals of NVSHMEM, each with a twin in order.
#[test]
fn puts_and_gets_of_nvshmem_are_ops_of_their_streams() {
    let program = user("nvshmem.c", &library("nvshmem.c", "libnvshmem_host.so.3"));
    for (case, hazard, call) in [
        ("put", "read-after-write", "nvshmemx_putmem_on_stream"),
        ("remote", "read-after-write", "nvshmemx_putmem_nbi_on_stream"),
        ("get", "read-after-write", "nvshmemx_getmem_on_stream"),
        ("into", "read-after-write", "nvshmemx_getmem_nbi_on_stream"),
        ("signal", "read-after-write", "nvshmemx_putmem_signal_on_stream"),
        ("early", "read-after-write", "nvshmemx_putmem_signal_nbi_on_stream"),
        ("waited", "read-after-write", "nvshmemx_putmem_signal_on_stream"),
        ("typed", "read-after-write", "nvshmemx_float_put_on_stream"),
        ("sized", "read-after-write", "nvshmemx_get64_on_stream"),
        ("one", "read-after-write", "nvshmemx_int_p_on_stream"),
        ("double", "read-after-write", "nvshmemx_double_p_on_stream"),
        ("stepped", "read-after-write", "nvshmemx_int_iput_on_stream"),
        ("hosts", "read-after-write", "nvshmem_putmem"),
        ("fetched", "write-after-read", "nvshmem_getmem"),
        ("begun", "write-after-read", "nvshmem_putmem_nbi"),
        ("met", "write-after-read", "nvshmem_putmem_nbi"),
        ("begun_get", "read-after-write", "nvshmem_double_get_nbi"),
        ("meets", "read-after-write", "cuMemsetD8Async"),
        ("blocked", "read-after-write", "nvshmem_float_sum_reduce"),
        ("blocked_part", "read-after-write", "nvshmem_int32_xor_reducescatter"),
        ("blocked_all", "read-after-write", "nvshmem_double_alltoall"),
        ("blocked_into", "write-after-read", "nvshmem_fcollectmem"),
        ("counted", "read-after-write", "cuMemsetD8Async"),
        ("counted_real", "read-after-write", "cuMemsetD8Async"),
        ("fetched_word", "read-after-write", "cuMemsetD8Async"),
        ("nowhere", "read-after-write", "nvshmemx_putmem_nbi_on_stream"),
    ] {
        let report = build::scratch(&format!("nvshmem-{case}")).join("report.json");
        let ended = end(streamsan(["--json"]).arg(&report).arg("--").arg(&program).arg(case));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(66), "done\n"), "{case}: {}", ended.err);
        let json = std::fs::read_to_string(&report).expect("a report");
        // The copies that the library makes are not others.
        assert!(ended.err.contains("SUMMARY: 1 finding (1 certain, 0 likely), 1 occurrence"), "{case}: {}", ended.err);
        assert!(json.contains(&format!("\"call\": \"{call}\"")) && json.contains(hazard), "{case}: {json}");
        let unmodelled =
            if case == "nowhere" { "1 call not modelled (nvshmemx_putmem_nbi" } else { "0 calls not modelled" };
        assert!(ended.err.contains(unmodelled), "{case}: {}", ended.err);
        let ended = end(streamsan(["--"]).arg(&program).arg(case).arg("ordered"));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{case}: {}", ended.err);
        assert!(ended.err.contains("SUMMARY: 0 findings"), "{case}: {}", ended.err);
    }
}

/// What the host begins is not over behind a fence, and words between those that are put are left
/// alone.
#[test]
fn fences_of_nvshmem_end_nothing_and_steps_leave_out_what_is_between() {
    let program = user("nvshmem.c", &library("nvshmem.c", "libnvshmem_host.so.3"));
    let ended = end(streamsan(["--"]).arg(&program).arg("fenced"));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    assert!(ended.err.contains("SUMMARY: 1 finding (1 certain, 0 likely), 1 occurrence"), "{}", ended.err);
    // What another element sends is not read here, and two atomics are no race.
    for case in ["between", "blocked_root", "counted_both"] {
        let ended = end(streamsan(["--"]).arg(&program).arg(case));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{case}: {}", ended.err);
        assert!(ended.err.contains("SUMMARY: 0 findings"), "{case}: {}", ended.err);
    }
}

/// Two elements in two processes: barriers on their streams order them, and barriers of the hosts
/// do for what the hosts have seen.
#[test]
fn barriers_of_nvshmem_order_its_elements() {
    let program = user("nvshmem_elements.c", &library("nvshmem.c", "libnvshmem_host.so.3"));
    // A result of a collective needs what all have given, and a broadcast what the root has.
    let collectives = ["reduced", "gathered", "exchanged", "scattered", "sent", "into-met", "from-met"];
    for how in ["all", "team", "sync", "second", "host"].into_iter().chain(collectives) {
        let ended = end(streamsan(["--pedantic", "--"]).arg(&program).arg(how));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{how}: {}", ended.err);
        assert!(ended.err.contains("SUMMARY: 0 findings"), "{how}: {}", ended.err);
        assert!(ended.err.contains("0 calls not modelled"), "{how}: {}", ended.err);
    }
    let collectives =
        ["reduced-early", "gathered-early", "exchanged-early", "scattered-early", "sent-early", "sent_back"];
    let of_one_call = ["into", "from"];
    for how in ["nothing", "early", "late", "unseen"].into_iter().chain(collectives).chain(of_one_call) {
        let ended = end(streamsan(["--"]).arg(&program).arg(how));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(66), "done\n"), "{how}: {}", ended.err);
        assert!(ended.err.contains("SUMMARY: 1 finding (1 certain, 0 likely), 1 occurrence"), "{how}: {}", ended.err);
    }
}

/// Teams of some of four elements, each a process: the elements of one meet, and nobody else.
#[test]
fn teams_of_nvshmem_order_their_elements() {
    let program = user("nvshmem_teams.c", &library("nvshmem.c", "libnvshmem_host.so.3"));
    for how in ["even", "chain", "column", "twins", "made_again", "reduced"] {
        let ended = end(streamsan(["--pedantic", "--"]).arg(&program).arg(how));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{how}: {}", ended.err);
        assert!(ended.err.contains("SUMMARY: 0 findings"), "{how}: {}", ended.err);
        assert!(ended.err.contains("0 calls not modelled"), "{how}: {}", ended.err);
    }
    for how in ["nothing", "late", "odd", "halves", "unchained", "row", "strangers", "elsewhere"] {
        let ended = end(streamsan(["--"]).arg(&program).arg(how));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(66), "done\n"), "{how}: {}", ended.err);
        assert!(ended.err.contains("SUMMARY: 1 finding (1 certain, 0 likely), 1 occurrence"), "{how}: {}", ended.err);
    }
}

/// What a library does with memory of its own is not the program's to mend, with stacks and
/// without; what the program does is.
#[test]
fn what_a_library_keeps_for_itself_is_set_aside() {
    let program = user("cudnn.c", &library("cudnn.c", "libcudnn_ops.so.9"));
    for stacks in ["--stacks", "--no-stacks"] {
        for (case, code) in [("inside", 0), ("outside", 66)] {
            let ended = end(streamsan([stacks, "--"]).arg(&program).arg(case));
            assert_eq!((ended.code(), ended.out.as_str()), (Some(code), "done\n"), "{stacks} {case}: {}", ended.err);
            assert_eq!(
                ended.err.contains("1 finding inside memory that a CUDA library keeps"),
                code == 0,
                "{}",
                ended.err
            );
        }
        let ended = end(streamsan([stacks, "--pedantic", "--"]).arg(&program).arg("inside"));
        assert_eq!(ended.code(), Some(66), "{}", ended.err);
    }
    // Lent memory is the program's matter too, and its stack says that the program uses it.
    let ended = end(streamsan(["--"]).arg(&program).arg("lent"));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
}

/// A pool that tells its blocks through the header: whose they are, and that one went back too
/// early.
#[test]
fn blocks_of_a_pool_of_the_program() {
    let program = build::c_program("pool.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"]);
    let alone = end(tests::run::command(&program).arg("same"));
    assert_eq!((alone.code(), alone.out.as_str()), (Some(0), "done 0\n"), "{}", alone.err);
    let next = "2048 bytes of a pool of the program, arena at ";
    for (case, findings, said) in [
        ("early", 1, "A block of a pool was freed while stream 2"),
        ("same", 1, next),
        ("waited", 0, ""),
        ("user", 0, ""),
        ("any", 0, ""),
    ] {
        let ended = end(streamsan(["--error-exitcode", "0", "--"]).arg(&program).arg(case));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done 1\n"), "{case}: {}", ended.err);
        assert!(ended.err.contains(&format!("SUMMARY: {findings} finding")), "{case}: {}", ended.err);
        assert!(ended.err.contains(said) && !ended.err.contains("record_stream"), "{case}: {}", ended.err);
    }
}

/// Files that cuFile reads and writes, by a direct link and looked up in a library that is opened.
/// The copies that it makes inside are its own matter.
#[test]
fn cufile_reads_and_writes_memory_beside_the_streams() {
    let cufile = library("cufile.c", "libcufile.so.0");
    let folder = cufile.parent().expect("a folder").display().to_string();
    let opened = build::c_program(
        "cufile.c",
        &["-DDLOPEN", &format!("-Wl,-rpath,{folder}"), "-L", &fake::folder().to_string_lossy(), "-lcuda"],
    );
    for program in [user("cufile.c", &cufile), opened] {
        for (case, hazard, grade, call) in [
            ("read", "write-after-read", "certain", "cuFileRead"),
            ("write", "read-after-write", "certain", "cuFileWrite"),
            ("default", "read-after-write", "certain", "cuFileWrite"),
            ("on-stream", "read-after-write", "likely", "cuFileReadAsync"),
            ("write-on-stream", "read-after-write", "likely", "cuFileWriteAsync"),
            ("batch", "read-after-write", "likely", "cuFileBatchIOSubmit"),
            ("one-of-two", "read-after-write", "likely", "cuFileBatchIOSubmit"),
            ("alike", "read-after-write", "likely", "cuFileBatchIOSubmit"),
            ("reused", "write-after-read", "certain", "cuFileBatchIOSubmit"),
        ] {
            let ended = end(streamsan(["--"]).arg(&program).arg(case));
            assert_eq!((ended.code(), ended.out.as_str()), (Some(66), "done\n"), "{case}: {}", ended.err);
            assert!(ended.err.contains("SUMMARY: 1 finding ("), "{case}: {}", ended.err);
            assert!(ended.err.contains(&format!("DATA RACE: {hazard} ({grade})")), "{case}: {}", ended.err);
            assert!(ended.err.contains(&format!(": {call} ")), "{case}: {}", ended.err);
            let ended = end(streamsan(["--"]).arg(&program).arg(case).arg("waits"));
            assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{case}: {}", ended.err);
            assert!(ended.err.contains("SUMMARY: 0 findings"), "{case}: {}", ended.err);
        }
        for case in ["short", "same", "failed", "cancelled"] {
            let ended = end(streamsan(["--"]).arg(&program).arg(case));
            assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{case}: {}", ended.err);
            assert!(ended.err.contains("SUMMARY: 0 findings"), "{case}: {}", ended.err);
        }
    }
}

/// An engine that CUDA does not see, in the program's own words: it is a timeline beside the host
/// and the streams, from one call to another.
#[test]
fn an_engine_that_the_program_announces() {
    let program = build::c_program("external.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"]);
    let alone = end(tests::run::command(&program).arg("received"));
    assert_eq!((alone.code(), alone.out.as_str()), (Some(0), "done 0\n"), "{}", alone.err);
    for (case, hazard) in [
        ("sent", "read-after-write"),
        ("received", "read-after-write"),
        ("reused", "write-after-read"),
        ("freed", "write-after-write"),
        ("host", "read-after-write"),
    ] {
        let ended = end(streamsan(["--"]).arg(&program).arg(case));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(66), "done 1\n"), "{case}: {}", ended.err);
        assert!(ended.err.contains("SUMMARY: 1 finding (1 certain"), "{case}: {}", ended.err);
        assert!(ended.err.contains(&format!("DATA RACE: {hazard} (certain)")), "{case}: {}", ended.err);
        assert!(ended.err.contains("STREAMSAN_EXTERNAL_BEGIN "), "{case}: {}", ended.err);
        let mends = ended.err.contains("STREAMSAN_EXTERNAL_END(key);  // before this access");
        assert_eq!(mends, case != "sent", "{case}: {}", ended.err);
        let ended = end(streamsan(["--"]).arg(&program).arg(case).arg("waits"));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done 1\n"), "{case}: {}", ended.err);
        assert!(ended.err.contains("SUMMARY: 0 findings"), "{case}: {}", ended.err);
    }
    for case in ["pieces", "beside", "other", "unknown"] {
        let ended = end(streamsan(["--"]).arg(&program).arg(case));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done 1\n"), "{case}: {}", ended.err);
        assert!(ended.err.contains("SUMMARY: 0 findings"), "{case}: {}", ended.err);
    }
}

/// Two libraries in the place of PyTorch's: `old` are those of a version that tells of its blocks
/// in another way.
fn torch_blocks(old: bool) -> PathBuf {
    let source = build::programs().join("fake/c10.c");
    let header = build::programs().join("fake/cuda_mini.h");
    let library = |soname: &str, more: &[String]| {
        let mut args: Vec<String> = ["-O1", "-shared", "-fPIC", "-w", "-o", "{out}"].map(String::from).into();
        args.extend([format!("-Wl,-soname,{soname}"), format!("-I{}", build::programs().join("fake").display())]);
        args.extend(old.then(|| "-DOLD".to_string()));
        args.push(source.display().to_string());
        args.extend_from_slice(more);
        build::cached(soname, Path::new("gcc"), &args, &[&source, &header])
            .unwrap_or_else(|e| panic!("the fake {soname} does not compile: {e}"))
    };
    let driver = ["-L".to_string(), fake::folder().display().to_string(), "-lcuda".to_string()];
    let c10 = library("libc10.so", &[]);
    let mut more = vec!["-DC10_CUDA".to_string(), c10.display().to_string()];
    more.extend(driver.clone());
    let cuda = library("libc10_cuda.so", &more);
    let mut flags = vec![c10.display().to_string(), cuda.display().to_string()];
    flags.extend([&c10, &cuda].map(|l| format!("-Wl,-rpath,{}", l.parent().expect("a folder").display())));
    flags.extend(driver);
    flags.push("-pthread".to_string());
    build::c_program("torch_blocks.c", &flags.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Blocks of PyTorch's allocator are memory of their own; of a version that does not tell of them
/// the segment is named as what it is.
#[test]
fn blocks_of_a_caching_allocator() {
    for (old, case, findings, memory) in [
        (false, "racy", 1, "4096 bytes of PyTorch tensor memory"),
        (false, "apart", 0, ""),
        (false, "freed", 1, "1024 bytes of PyTorch tensor memory"),
        (false, "elsewhere", 1, "4096 bytes of PyTorch tensor memory"),
        (false, "waited", 0, ""),
        (false, "fresh", 0, ""),
        (true, "racy", 1, "1048576 bytes of a segment of PyTorch's allocator, whose blocks were not seen"),
        (true, "apart", 0, ""),
        (true, "freed", 1, "1048576 bytes of a segment of PyTorch's allocator, whose blocks were not seen"),
        (true, "elsewhere", 0, ""),
        (true, "waited", 0, ""),
    ] {
        let ended = end(streamsan(["--error-exitcode", "0", "--"]).arg(torch_blocks(old)).arg(case));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "0\n"), "{case}: {}", ended.err);
        assert!(ended.err.contains(&format!("SUMMARY: {findings} finding")), "{old} {case}: {}", ended.err);
        assert!(ended.err.contains(memory), "{old} {case}: {}", ended.err);
        assert_eq!(ended.err.contains("record_stream"), !old && case == "elsewhere", "{old} {case}: {}", ended.err);
    }
}
