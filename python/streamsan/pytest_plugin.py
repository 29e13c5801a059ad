"""``pytest --streamsan``: every test that uses CUDA is checked, and a race fails the test it belongs to.

The tests run in one process, under StreamSan, which is started by running pytest again below it. Each test is a part of the program
(``streamsan_push``), and so are the programs that it starts, so a finding says which tests its two sides belong to; it is charged to the
test of the later one. The report is there when the process has ended: the outer pytest adds the failures to the summary, to the exit code and to the file of
``--junitxml``.
"""

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

import pytest

INNER = "STREAMSAN_PYTEST_INNER"
# Names the part of a program that a process is started in.
REGION = "STREAMSAN_REGION"
# Names the JSON report that this plugin reads itself: see `cuda_required.rs`.
READ_BY_CALLER = "STREAMSAN_JSON_READ_BY_CALLER"


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
    if not config.getoption("streamsan") or os.environ.get(INNER) or _runs_no_test(config):
        return None
    import shlex

    from . import binary

    program = binary()
    if program is None:
        raise pytest.UsageError("--streamsan: no streamsan program in this package or in PATH")
    options, wanted = _without_json(shlex.split(config.getoption("streamsan_args")))
    with tempfile.TemporaryDirectory(prefix="streamsan-pytest-") as folder:
        report = os.path.join(folder, "report.json")
        command = [program, "run", "--json", report, "--error-exitcode", "0"] + options
        command += ["--", sys.executable, "-m", "pytest"] + list(config.invocation_params.args)
        environment = dict(os.environ, **{INNER: "1"})
        if not wanted:
            # A report that the user has not asked for does not ask for CUDA work.
            environment[READ_BY_CALLER] = report
        code = subprocess.run(command, env=environment).returncode
        try:
            with open(report) as file:
                findings = [f for f in json.load(file)["findings"] if f.get("verdict") == "fails"]
        except (OSError, ValueError, KeyError):
            print("streamsan: no report was written", file=sys.stderr)
            return code or pytest.ExitCode.INTERNAL_ERROR
        if not _hand_out(report, wanted):
            code = code or pytest.ExitCode.INTERNAL_ERROR
    lines = sorted(_lines(findings))
    wide = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for test, text in lines:
        line = "FAILED %s - %s" % (test, text)
        print(line if wide is None or len(line) <= wide else line[: max(wide - 3, 0)] + "...")
    junit = getattr(config.option, "xmlpath", None)
    if junit and lines:
        _add_to_junit(os.path.join(str(config.invocation_params.dir), os.path.expanduser(junit)), lines)
    broken = sum(finding.get("kind") == "forbidden" for finding in findings)
    if len(findings) > broken:
        print("streamsan: %d data race(s) between CUDA streams" % (len(findings) - broken))
    if broken:
        print("streamsan: %d call(s) that --forbid forbids" % broken)
    if findings:
        return code or pytest.ExitCode.TESTS_FAILED
    return code


def _runs_no_test(config):
    """Whether pytest only says something: a list of tests, of fixtures, of markers."""
    return any(config.getoption(name, False) for name in ("collectonly", "showfixtures", "show_fixtures_per_test", "markers", "help"))


def _without_json(words):
    """The options without ``--json``, and the files it named: the report is read here first, and copied there."""
    options, wanted, words = [], [], iter(words)
    for word in words:
        if word == "--json":
            wanted.append(next(words, ""))
        elif word.startswith("--json="):
            wanted.append(word[len("--json=") :])
        else:
            options.append(word)
    if "" in wanted:
        raise pytest.UsageError("--streamsan-args: --json needs a FILE")
    return options, wanted


def _hand_out(report, wanted):
    """Copies the report to the files that ``--streamsan-args`` names. False when one cannot be written."""
    with open(report) as file:
        text = file.read()
    for name in wanted:
        try:
            if name == "-":
                print(text, end="")
                continue
            with open(name.replace("%p", str(os.getpid())), "w") as file:
                file.write(text)
        except OSError as error:
            print("streamsan: %s can not be written: %s" % (name, error.strerror), file=sys.stderr)
            return False
    return True


def _add_to_junit(path, lines):
    """Adds the findings to the file that the inner pytest wrote for ``--junitxml``, as failures of their tests."""
    try:
        tree = ElementTree.parse(path)
    except (OSError, ElementTree.ParseError):
        print("streamsan: %s was not written, so it has no findings" % path, file=sys.stderr)
        return
    suite = next(tree.iter("testsuite"))
    for test, text in lines:
        case = next((case for case in suite.iter("testcase") if _is(case, test)), None)
        if case is None:
            case = ElementTree.SubElement(suite, "testcase", classname="streamsan", name=test, time="0")
            suite.set("tests", str(int(suite.get("tests", 0)) + 1))
        # A test counts as failed once.
        if case.find("failure") is None and case.find("error") is None:
            suite.set("failures", str(int(suite.get("failures", 0)) + 1))
        ElementTree.SubElement(case, "failure", message=text).text = text
    tree.write(path, encoding="utf-8", xml_declaration=True)


def _is(case, test):
    """Whether a case of the file is this test: pytest names it by module, classes and function."""
    file, _, rest = test.partition("::")
    # Parameters may hold anything, colons too.
    plain, bracket, parameters = rest.partition("[")
    *classes, name = plain.split("::")
    module = (file[: -len(".py")] if file.endswith(".py") else file).replace("/", ".")
    owner = ".".join([module] + classes)
    named = case.get("classname") or ""
    return case.get("name") == name + bracket + parameters and (named == owner or named.endswith("." + owner))


def _short(name):
    """A long kernel name without parameters and template arguments: the line has to fit a terminal."""
    if len(name) <= 60:
        return name
    short, depth = [], 0
    for c in name.replace("(anonymous namespace)", "{anonymous}"):
        if c == "<":
            short += [] if depth else ["<...>"]
            depth += 1
        elif c == ">" and depth:
            depth -= 1
        elif c == "(" and not depth:
            break
        elif not depth:
            short.append(c)
    return "".join(short).split(" ")[-1] or name


def _lines(findings):
    outside = "(outside of any test)"
    for finding in findings:
        first = next(iter(finding["access"].get("regions") or []), outside)
        # Tests that show the same race again fail as well.
        tests = [first] + [ranges[0] for ranges in finding.get("ranges") or []]
        if finding.get("kind") == "forbidden":
            text, before = "streamsan: %s: %s" % (finding["hazard"], finding["text"]), first
        else:
            before = next(iter(finding["previous"].get("regions") or []), outside)
            what = _short(finding["access"].get("kernel") or finding["access"]["call"])
            text = "streamsan: %s by %s (%s)" % (finding["hazard"], what, finding["confidence"])
        for test in dict.fromkeys(tests):
            yield test, text if test != first or test == before else "%s, after %s" % (text, before)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    inner = os.environ.get(INNER)
    shim = _shim() if inner else None
    if shim is not None:
        shim.streamsan_push(item.nodeid.encode())
    if inner:
        # Programs that the test starts belong to it.
        os.environ[REGION] = item.nodeid
    yield
    if inner:
        os.environ.pop(REGION, None)
    if shim is not None:
        shim.streamsan_pop()
