//! `pytest --streamsan-sim --streamsan-args=--inside`: a race inside a kernel fails each test that
//! launched the kernel so that it came up, in pytest's output and in its JUnit file; the mended
//! twin passes.
//!
//! The kernels are PTX: they need neither a compiler nor a GPU. Does not own which kernels race:
//! that is `simulator/inside.rs`.

use tests::build;
use tests::run::{Ended, end};

use super::pytest_plugin::{prepared, python};

/// A kernel that writes a tile of shared memory and reads it backwards. Without the barrier the
/// warps race, while each thread that stays in its own warp does not.
const KERNELS: &str = r#"
import ctypes

import pytest

cuda = ctypes.CDLL("libcuda.so.1")

PTX = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry %s(.param .u64 out)
{
    .reg .b32 %%r<6>;
    .reg .b64 %%d<4>;
    .shared .align 4 .b8 tile[1024];
    mov.u32 %%r1, %%tid.x;
    shl.b32 %%r2, %%r1, 2;
    mov.u32 %%r3, tile;
    add.u32 %%r4, %%r3, %%r2;
    st.shared.u32 [%%r4], %%r1;
    %s
    sub.u32 %%r4, %%r3, %%r2;
    ld.shared.u32 %%r5, [%%r4+1020];
    ld.param.u64 %%d1, [out];
    mul.wide.u32 %%d2, %%r1, 4;
    add.u64 %%d3, %%d1, %%d2;
    st.global.u32 [%%d3], %%r5;
    ret;
}
"""


def make(function, *arguments):
    handle = ctypes.c_void_p()
    assert function(ctypes.byref(handle), *arguments) == 0
    return handle


def setup_module(module):
    assert cuda.cuInit(0) == 0
    assert cuda.cuCtxSetCurrent(make(cuda.cuDevicePrimaryCtxRetain, 0)) == 0
    module.out = make(cuda.cuMemAlloc_v2, ctypes.c_size_t(1024))
    module.kernels = {}
    for name, barrier in [("racy", ""), ("mended", "bar.sync 0;")]:
        loaded = make(cuda.cuModuleLoadData, (PTX % (name, barrier)).encode())
        kernels[name] = make(cuda.cuModuleGetFunction, loaded, name.encode())


def launch(name):
    pointer = ctypes.c_void_p(out.value)
    values = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.pointer(pointer), ctypes.c_void_p))
    assert cuda.cuLaunchKernel(kernels[name], 1, 1, 1, 256, 1, 1, 0, None, values, None) == 0
    assert cuda.cuCtxSynchronize() == 0


def test_mended():
    launch("mended")


def test_nothing():
    pass
"#;

const RACY: &str = r#"

@pytest.mark.parametrize("name", ["racy", "mended", "racy"])
def test_reverses(name):
    launch(name)
"#;

const KNOWN: &str = r#"

@pytest.mark.streamsan_expects("race-inside-kernel")
def test_known():
    launch("racy")


@pytest.mark.streamsan_expects("read-after-write")
def test_known_hazard():
    launch("racy")
"#;

const UNFOUNDED: &str = r#"

@pytest.mark.streamsan_expects("race-inside-kernel")
def test_unfounded():
    launch("mended")
"#;

fn pytest(name: &str, text: &str, words: &[&str]) -> Option<(Ended, String)> {
    let python = python()?;
    let folder = build::scratch(name);
    let words = [&["--streamsan-sim", "--strict-markers", "--junitxml=junit.xml"], words].concat();
    let ended = end(prepared(&python, &folder, text, &words).env_remove("LD_LIBRARY_PATH"));
    Some((ended, std::fs::read_to_string(folder.join("junit.xml")).expect("a JUnit file")))
}

fn failed(out: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = out.lines().filter_map(|line| line.strip_prefix("FAILED test_streams.py::")).collect();
    lines.sort_unstable();
    lines
}

/// The failure of a test in the JUnit file; none if it passed.
fn failure<'a>(junit: &'a str, test: &str) -> Option<&'a str> {
    let (_, case) = junit.split_once(&format!("name=\"{test}\"")).unwrap_or_else(|| panic!("{test}: {junit}"));
    let case = case.split("<testcase").next().unwrap_or_default();
    case.split_once("<failure message=\"").and_then(|(_, rest)| rest.split('"').next())
}

#[test]
fn a_race_inside_a_kernel_fails_each_test_that_shows_it() {
    let Some((ended, junit)) = pytest("pytest-inside", &format!("{KERNELS}{RACY}"), &["--streamsan-args=--inside"])
    else {
        return;
    };
    assert_eq!(ended.code(), Some(1), "{}\n{}", ended.out, ended.err);
    let race = "streamsan: read-after-write inside racy (certain)";
    let expected = ["racy0", "racy1"].map(|name| format!("test_reverses[{name}] - {race}"));
    assert_eq!(failed(&ended.out), expected, "{}\n{}", ended.out, ended.err);
    let ending = "streamsan: 1 data race inside kernels\nstreamsan: 2 failed by races, 3 passed\n";
    assert!(ended.out.ends_with(ending), "{}", ended.out);
    assert!(junit.contains(r#"failures="2""#) && junit.contains(r#"tests="5""#), "{junit}");
    for test in ["test_reverses[racy0]", "test_reverses[racy1]"] {
        assert_eq!(failure(&junit, test), Some(race), "{junit}");
    }
    for test in ["test_reverses[mended]", "test_mended", "test_nothing"] {
        assert_eq!(failure(&junit, test), None, "{junit}");
    }
}

#[test]
fn the_mended_kernel_passes_and_without_the_check_the_racy_one_too() {
    for (text, words) in [
        (KERNELS.to_owned(), &["--streamsan-args=--inside --pedantic"][..]),
        (format!("{KERNELS}{RACY}"), &[]),
        (format!("{KERNELS}{RACY}"), &["--streamsan-args=--inside=mended"]),
    ] {
        let Some((ended, junit)) = pytest("pytest-inside-mended", &text, words) else { return };
        assert_eq!(ended.code(), Some(0), "{words:?}: {}\n{}", ended.out, ended.err);
        assert!(failed(&ended.out).is_empty() && !ended.out.contains("data race"), "{}", ended.out);
        assert!(junit.contains(r#"failures="0""#), "{junit}");
    }
}

#[test]
fn a_mark_expects_a_race_inside_a_kernel_by_its_kind_or_hazard() {
    let Some((ended, junit)) =
        pytest("pytest-inside-known", &format!("{KERNELS}{KNOWN}"), &["--streamsan-args=--inside"])
    else {
        return;
    };
    assert_eq!(ended.code(), Some(0), "{}\n{}", ended.out, ended.err);
    assert!(ended.out.ends_with("streamsan: 1 finding as expected\n"), "{}", ended.out);
    assert!(junit.contains(r#"failures="0""#), "{junit}");
    // The mark does not excuse a test without the race.
    let text = format!("{KERNELS}{KNOWN}{UNFOUNDED}");
    let Some((ended, junit)) = pytest("pytest-inside-unfounded", &text, &["--streamsan-args=--inside"]) else { return };
    assert_eq!(ended.code(), Some(1), "{}\n{}", ended.out, ended.err);
    let absent = "streamsan: expected race-inside-kernel, which was not found";
    assert_eq!(failed(&ended.out), [format!("test_unfounded - {absent}")], "{}", ended.out);
    assert_eq!(failure(&junit, "test_unfounded"), Some(absent), "{junit}");
}
