"""``pytest --streamsan``: every test that uses CUDA is checked, and a race fails the test it belongs to.

The tests run in one process, under StreamSan, which is started by running pytest again below it. Each test is a part of the program
(``streamsan_push``), and so are the programs that it starts, so a finding says which tests its two sides belong to; it is charged to the
test of the later one. The report is there when the process has ended: the outer pytest adds the failures to the summary, to the exit code and to the file of
``--junitxml``. What the tests ended with, and which findings they are marked with, the processes that run them tell it in files.

    @pytest.mark.streamsan_expects("read-after-write")    # fails unless this race is found in it
    def test_racy(): ...

    def test_strict(streamsan_no_findings): ...           # fails by findings that are set aside, too
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
# Names the folder for what the tests tell. Not set while a test runs: a pytest that it starts tells nothing.
NOTES = "STREAMSAN_PYTEST_NOTES"
OUTSIDE = "(outside of any test)"


def pytest_addoption(parser):
    group = parser.getgroup("streamsan", "data races between CUDA streams")
    group.addoption("--streamsan", action="store_true", help="run the tests under StreamSan; a race fails its test")
    group.addoption("--streamsan-sim", action="store_true", help="as --streamsan, on the simulated GPU")
    group.addoption("--streamsan-args", default="", help="options for streamsan, e.g. '--sim --suppressions FILE'")


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "streamsan_expects(*hazards): under --streamsan, the test fails unless these findings (of any kind without an argument) come up in it"
    )


@pytest.fixture
def streamsan_no_findings(request):
    """Any finding fails the test: those that a baseline or a suppression covers, and those that are shown but do not fail a run, too. Without
    StreamSan nothing would be checked, and the test is skipped."""
    if request.node.get_closest_marker("streamsan_expects"):
        pytest.fail("a test that expects findings cannot use streamsan_no_findings", pytrace=False)
    if not os.environ.get(INNER) or _shim() is None:
        pytest.skip("nothing looks for races without --streamsan")
    request.node.streamsan_strict = True


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
    sim = config.getoption("streamsan_sim")
    if not (sim or config.getoption("streamsan")) or os.environ.get(INNER) or _runs_no_test(config):
        return None
    import shlex

    from . import binary

    program = binary()
    if program is None:
        raise pytest.UsageError("--streamsan: no streamsan program in this package or in PATH")
    options, wanted = _without_json(shlex.split(config.getoption("streamsan_args")))
    with tempfile.TemporaryDirectory(prefix="streamsan-pytest-") as folder:
        report = os.path.join(folder, "report.json")
        command = [program, "run", "--json", report, "--error-exitcode", "0"] + ["--sim"] * sim + options
        command += ["--", sys.executable, "-m", "pytest"] + list(config.invocation_params.args)
        environment = dict(os.environ, **{INNER: "1", NOTES: folder})
        if not wanted:
            # A report that the user has not asked for does not ask for CUDA work.
            environment[READ_BY_CALLER] = report
        code = subprocess.run(command, env=environment).returncode
        try:
            with open(report) as file:
                found = json.load(file)
            findings = found["findings"] + found.get("set_aside", [])
        except (OSError, ValueError, KeyError):
            print("streamsan: no report was written", file=sys.stderr)
            return code or pytest.ExitCode.INTERNAL_ERROR
        if not _hand_out(report, wanted):
            code = code or pytest.ExitCode.INTERNAL_ERROR
        notes = _read_notes(folder)
    races, failing, expected = _judge(findings, notes)
    absent = _absent(findings, notes)
    lines = sorted(races + absent)
    wide = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for test, text in lines:
        line = "FAILED %s - %s" % (test, text)
        print(line if wide is None or len(line) <= wide else line[: max(wide - 3, 0)] + "...")
    junit = getattr(config.option, "xmlpath", None)
    if junit and lines:
        _add_to_junit(os.path.join(str(config.invocation_params.dir), os.path.expanduser(junit)), lines)
    for number, noun, rest in _kinds(failing):
        print("streamsan: %s %s" % (_count(number, noun), rest))
    if expected:
        print("streamsan: %s as expected" % _count(expected, "finding"))
    if lines:
        print("streamsan: %s" % _ending(notes, {test for test, _ in races}, {test for test, _ in absent}))
        return code or pytest.ExitCode.TESTS_FAILED
    return code


# What the summary calls findings that are no races between streams, by their kinds.
CALLED = {
    "race-inside-kernel": ("data race", "inside kernels"),
    "uninitialized-read": ("read", "of unwritten memory"),
    "forbidden": ("call", "that --forbid forbids"),
}
BETWEEN_STREAMS = ("data race", "between CUDA streams")


def _kinds(findings):
    """How many findings there are of what the summary calls alike, and how it calls them."""
    called = [CALLED.get(finding.get("kind"), BETWEEN_STREAMS) for finding in findings]
    return [(called.count(name),) + name for name in (BETWEEN_STREAMS,) + tuple(CALLED.values()) if name in called]


def _count(number, noun):
    return "%d %s%s" % (number, noun, "" if number == 1 else "s")


def _read_notes(folder):
    """What the tests told, by test. Each process has a file of its own; a test that ran again has told the last line."""
    notes = {}
    for name in sorted(os.listdir(folder)):
        if name.startswith("notes-"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                # A process that died may have left half a line.
                for line in file:
                    try:
                        note = json.loads(line)
                    except ValueError:
                        continue
                    notes[note["test"]] = note
    return notes


def _ending(notes, racy, absent):
    """The line that counts again what pytest counted before the findings were known."""
    outcomes = [note["outcome"] for test, note in notes.items() if test not in racy | absent]
    count = outcomes.count
    parts = ["%d failed by races" % len(racy - {OUTSIDE})]
    parts += ["%d failed without the expected finding" % len(absent - racy)] if absent - racy else []
    parts += ["%d failed otherwise" % count("failed")] if count("failed") else []
    parts += ["%d passed" % count("passed")]
    parts += ["%d skipped" % count("skipped")] if count("skipped") else []
    return ", ".join(parts)


def _is_expected(finding, note):
    """Whether a test is marked with this finding, which fails the run without the mark."""
    hazards = note.get("expects")
    return hazards is not None and (not hazards or not _names(finding).isdisjoint(hazards)) and finding.get("verdict") == "fails"


def _names(finding):
    """What a mark may call a finding: its hazard (``read-after-write``) or its kind (``race-inside-kernel``)."""
    return {finding["hazard"], finding.get("kind")} - {None}


def _judge(findings, notes):
    """What fails tests (test and text), the findings that do, and the number of those that are expected. A test with the strict fixture
    fails by each finding, any other by those that fail a run."""
    failures, failing, expected = [], [], 0
    for finding in findings:
        lines, excused = [], False
        for test, text in _lines(finding):
            note = notes.get(test, {})
            if _is_expected(finding, note):
                excused = True
            elif finding.get("verdict") == "fails":
                lines.append((test, text))
            elif note.get("strict"):
                lines.append((test, text + ": set aside elsewhere, but not in this test"))
        failures += lines
        if lines:
            failing.append(finding)
        expected += excused and not lines
    return failures, failing, expected


def _absent(findings, notes):
    """A failure for each test that passed without what it is marked with. One that failed or was skipped has not come to its race."""
    found = {}
    for finding in findings:
        for test, _ in _lines(finding):
            if _is_expected(finding, notes.get(test, {})):
                found.setdefault(test, set()).update(_names(finding))
    failures = []
    for test, note in notes.items():
        if note.get("expects") is None or note["outcome"] != "passed":
            continue
        missing = [hazard for hazard in note["expects"] if hazard not in found.get(test, ())]
        if missing or test not in found:
            failures.append((test, "streamsan: expected %s, which was not found" % (" and ".join(missing) or "a finding")))
    return failures


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


def _lines(finding):
    """The tests that a finding belongs to, each with what is said of it."""
    first = next(iter(finding["access"].get("regions") or []), OUTSIDE)
    # Tests that show the same race again fail as well.
    tests = [first] + [ranges[0] for ranges in finding.get("ranges") or []]
    if finding.get("kind") == "forbidden":
        text, before = "streamsan: %s: %s" % (finding["hazard"], finding["text"]), first
    else:
        before = next(iter(finding["previous"].get("regions") or []), OUTSIDE)
        access = finding["access"]
        # The user wrote the operator; the kernel's name is that of a template inside of PyTorch.
        what = access.get("operator") or _short(access.get("kernel") or access["call"])
        where = "inside" if finding.get("kind") == "race-inside-kernel" else "by"
        text = "streamsan: %s %s %s (%s)" % (finding["hazard"], where, what, finding["confidence"])
    for test in dict.fromkeys(tests):
        yield test, text if test != first or test == before else "%s, after %s" % (text, before)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    report = (yield).get_result()
    if report.when == "setup":
        # A plugin may run a test again.
        item.streamsan_outcome = "passed"
    if report.outcome == "failed" or (report.outcome == "skipped" and getattr(item, "streamsan_outcome", "passed") == "passed"):
        item.streamsan_outcome = report.outcome


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    inner = os.environ.get(INNER)
    shim = _shim() if inner else None
    if shim is not None:
        shim.streamsan_push(item.nodeid.encode())
    notes = os.environ.pop(NOTES, None)
    if inner:
        # Programs that the test starts belong to it.
        os.environ[REGION] = item.nodeid
    yield
    if inner:
        os.environ.pop(REGION, None)
    if notes:
        os.environ[NOTES] = notes
        _note(notes, item)
    if shim is not None:
        shim.streamsan_pop()


def _note(folder, item):
    """Tells the outer pytest what became of a test, and what it expects."""
    marks = list(item.iter_markers("streamsan_expects"))
    expects = [str(hazard) for mark in marks for hazard in mark.args] if marks else None
    note = {
        "test": item.nodeid,
        "outcome": getattr(item, "streamsan_outcome", "failed"),
        "expects": expects,
        "strict": getattr(item, "streamsan_strict", False),
    }
    with open(os.path.join(folder, "notes-%d" % os.getpid()), "a", encoding="utf-8") as file:
        file.write(json.dumps(note) + "\n")
