"""Measured bytes against what programs say they touch, and the patch's own table."""

import re

from .check import PROGRAMS, notes


def marks(check):
    """The patch by itself: what its table holds."""
    program = check.compile(PROGRAMS / "marks.cu")
    if program:
        ran = check.run("marks", [program])
        wrong = [line for line in ran.text.splitlines() if "WRONG" in line]
        check.judged(
            ran.code == 0 and "OK" in ran.text,
            "marks",
            f"exit {ran.code}, {ran.text.count('right ')} right; {'; '.join(wrong)} {ran.last_words(200)}",
        )


def truth(check):
    """Every launch must be exact to the byte; with --exact=copy, those of the kernels named so."""
    program = check.compile(PROGRAMS / "truth.cu")
    for name, words, least in (("truth", ["--exact"], 23), ("truth_pattern", ["--exact=copy"], 3)) if program else ():
        pattern, trace = name.endswith("_pattern"), check.session.work / f"{name}.trace"
        ran = check.run(name, [*check.streamsan("record", *words, "--no-stacks", "-o", trace, "--"), program], 40)
        dumped = check.run(name + "_dump", check.streamsan("dump", trace)).text
        right, wrong, counts = judge(ran.text, dumped, pattern)
        fine = not wrong and ran.code == 0 and "OK" in ran.text and right >= least
        exact = f"{right} launches exact to the byte (at least {least}), {len(wrong)} not"
        check.judged(fine, name, f"exit {ran.code}, {exact}; {counts} {notes(ran)}")
        for line in wrong:
            check.wrong(name, line)
        if not fine:
            check.wrong(name, f"{ran.text.strip()[-80:]}, {ran.last_words()}")


def announced(out):
    """By launch: for reads, writes and atomics the ranges that the program says it touches, and the
    kernels' names.
    """
    said, names = {}, {}
    for line in out.splitlines():
        f = line.split()
        if line.startswith("X "):
            seq, kind, start = int(f[1]), int(f[3]), int(f[4], 16)
            names[seq] = f[2]
            said.setdefault(seq, ([], [], []))[kind].append((start, *map(int, f[5:8])))
    return said, names


def recorded(dumped):
    """Launches in their order, those of graphs, and by launch and node the flags and runs that were
    measured.
    """
    launches, graphs, measured = [], [], {}
    for line in dumped.splitlines():
        at = re.search(r"timeline=(\d+) time=(\d+) .*? (Graph)?Launch \{", line)
        if at:
            (graphs if at[3] else launches).append((int(at[1]), int(at[2])))
        at = re.search(
            r"Exact \{ timeline: TimelineId\((\d+)\), time: (\d+), node: (\d+), flags: (\d+), runs: \[(.*)\] \}", line
        )
        if at:
            fields = re.findall(r"start: (\d+), stride: (\d+), width: (\d+), count: (\d+), kind: (\d+)", at[5])
            measured[int(at[1]), int(at[2]), int(at[3])] = int(at[4]), [tuple(map(int, r)) for r in fields]
    return launches, graphs, measured


def bytes_of(runs):
    """The addresses of some runs; a long one stands for itself."""
    found = set()
    for start, width, stride, count in runs:
        if width * count > 8 << 20:
            found.add((start, start + width))
        else:
            for i in range(count):
                found.update(range(start + i * stride, start + i * stride + width))
    return found


def judge(out, dumped, pattern):
    """How many launches are exact, lines about those that are not, and the numbers of launches."""
    said, names = announced(out)
    launches, graphs, measured = recorded(dumped)
    # Launches in their order, and for each launch of the graph its two nodes.
    places = iter([(*at, 0) for at in launches])
    nodes = iter([(*at, node) for at in graphs for node in (1, 2)])
    right, wrong = 0, []
    for seq in sorted(said):
        at = next(nodes if names[seq].startswith("g_") else places, None)
        if at not in measured:
            if not pattern or names[seq].endswith("copy"):
                wrong.append(f"{seq} {names[seq]}: nothing was measured")
            continue
        flags, runs = measured[at]
        apart = []
        for kind in range(3):
            got = bytes_of([(start, width, stride, count) for start, stride, width, count, k in runs if k == kind])
            want = bytes_of(said[seq][kind])
            # The API gives the whole size of copies that fill up with zeros: the analyzer takes
            # that for a bound.
            got = want & got if names[seq] == "zfill" and kind == 0 else got
            if got != want:
                apart.append(f"{'rwa'[kind]}: {len(want - got)} missing, {len(got - want)} too many")
        if flags or apart:
            wrong.append(f"{seq} {names[seq]}: flags {flags}, {'; '.join(apart)}")
        else:
            right += 1
    lost = sum(m[0] & 1 for m in measured.values())
    return right, wrong, f"{len(launches)} launches, {len(graphs)} of graphs, {len(measured)} measured, {lost} lost;"
