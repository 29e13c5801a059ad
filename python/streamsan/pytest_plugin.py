"""``pytest --streamsan``: every test that uses CUDA is checked, and a race fails the test it belongs to.

The tests run in one process, under StreamSan, which is started by running pytest again below it. Each test is a part of the program
(``streamsan_push``), so a finding says which tests its two sides belong to; it is charged to the test of the later one. The report is there
when the process has ended: the outer pytest adds the failures to the summary and to the exit code.
"""

import ctypes
import json
import os
import subprocess
import sys
import tempfile

import pytest

INNER = "STREAMSAN_PYTEST_INNER"


def pytest_addoption(parser):
    group = parser.getgroup("streamsan", "data races between CUDA streams")
    group.addoption("--streamsan", action="store_true", help="run the tests under StreamSan; a race fails its test")
    group.addoption("--streamsan-args", default="", help="options for streamsan, e.g. '--sim --suppressions FILE'")


def _shim():
    """The preloaded shim's functions; None where it is not there."""
    try:
        library = ctypes.CDLL(None)
        library.streamsan_push.argtypes = [ctypes.c_char_p]
        library.streamsan_push.restype = library.streamsan_pop.restype = None
        return library
    except AttributeError:
        return None


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    if not config.getoption("streamsan") or os.environ.get(INNER):
        return None
    import shlex

    from . import binary

    program = binary()
    if program is None:
        raise pytest.UsageError("--streamsan: no streamsan program in this package or in PATH")
    with tempfile.TemporaryDirectory(prefix="streamsan-pytest-") as folder:
        report = os.path.join(folder, "report.json")
        command = [program, "run", "--json", report, "--error-exitcode", "0"]
        command += shlex.split(config.getoption("streamsan_args"))
        command += ["--", sys.executable, "-m", "pytest"] + list(config.invocation_params.args)
        code = subprocess.run(command, env=dict(os.environ, **{INNER: "1"})).returncode
        try:
            with open(report) as file:
                findings = [f for f in json.load(file)["findings"] if f.get("verdict") == "fails"]
        except (OSError, ValueError, KeyError):
            print("streamsan: no report was written", file=sys.stderr)
            return code or pytest.ExitCode.INTERNAL_ERROR
    for test, text in sorted(_lines(findings)):
        print("FAILED %s - %s" % (test, text))
    broken = sum(finding.get("kind") == "forbidden" for finding in findings)
    if len(findings) > broken:
        print("streamsan: %d data race(s) between CUDA streams" % (len(findings) - broken))
    if broken:
        print("streamsan: %d call(s) that --forbid forbids" % broken)
    if findings:
        return code or pytest.ExitCode.TESTS_FAILED
    return code


def _lines(findings):
    for finding in findings:
        test = next(iter(finding["access"].get("regions") or []), "(outside of any test)")
        if finding.get("kind") == "forbidden":
            yield test, "streamsan: %s: %s" % (finding["hazard"], finding["text"])
            continue
        before = next(iter(finding["previous"].get("regions") or []), "(outside of any test)")
        what = finding["access"].get("kernel") or finding["access"]["call"]
        text = "streamsan: %s by %s (%s)" % (finding["hazard"], what, finding["confidence"])
        yield test, text if test == before else "%s, after %s" % (text, before)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    shim = _shim() if os.environ.get(INNER) else None
    if shim is not None:
        shim.streamsan_push(item.nodeid.encode())
    yield
    if shim is not None:
        shim.streamsan_pop()
