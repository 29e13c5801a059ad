"""The table of the corpus, its totals, and the files that hold reports and lines."""

from harness.table import ABSENT, OK, Table

COLUMNS = {
    "case": "34",
    "variant": "11",
    "expect": "14",
    "got": "24",
    "needs": "18",
    "bare": ">6",
    "under": ">6",
    " ok": "",
}
GROUPS = ("hook", "loop", "torch", "cuda", "sample")
# Of reports.txt, in bytes.
ROOM = 12 << 20


def finish(session, check):
    rows = sorted(check.rows, key=lambda r: ((*GROUPS, r["group"]).index(r["group"]), r["case"], r["variant"]))
    table = Table(COLUMNS, live=False)
    for row in rows:
        said = "ok" if row["outcome"] == OK else "; ".join(row["problems"])
        said += f" (known: {row['known']})" if row["known"] else ""
        table.row(
            row["outcome"],
            f"{row['group']}/{row['case']}",
            row["variant"],
            row["expect"],
            row["verdict"],
            row["needs"],
            f"{row.get('bare_s', 0):.2f}",
            f"{row.get('checked_s', 0):.2f}",
            " " + said,
            **without(row, "outcome", "expect", "needs"),
        )
    table.note("")
    for title, of in totals(rows):
        if of:
            table.note(total(title, of))
    for line in [*launches(rows), *example(rows)]:
        table.note(line)
    table.print_all()
    write_reports(session.out / "reports.txt", check.reports)
    if session.args.lines:
        write_lines(session.args.lines, rows)
    return session.finish(table, session.args.strict)


def without(row, *keys):
    return {k: v for k, v in row.items() if k not in ("case", "variant", *keys)} | {"name": row["case"]}


def totals(rows):
    """The rows that are counted together, with a title each."""
    rows = [r for r in rows if r["outcome"] != ABSENT]
    plain = [r for r in rows if r["group"] == "cuda" and r["needs"] == "none" and r["variant"] in ("static", "shared")]
    yield "cuda, needs none", plain
    for group in ("cuda", "torch", "loop", "hook", "sample"):
        of = [r for r in rows if r["group"] == group]
        yield group, [r for r in of if not r["variant"].endswith("+host")]
        yield f"{group}, --host-accesses", [r for r in of if r["variant"].endswith("+host")]


def total(title, rows):
    def has(word):
        return sum(any(word in problem for problem in r["problems"]) for r in rows)

    return (
        f"{title:34} {sum(r['outcome'] == OK for r in rows)} of {len(rows)} right; "
        f"missed {has('MISSED')}, false alarms "
        f"{has('FALSE ALARM')}, other kind or pair {has('other ')}, hung {has('hung')}, exit code {has('exit ')}, "
        f"output {has('differs')}, skipped {has('no time')}"
    )


def launches(rows):
    """What was known of the launches of all programs."""
    seen = [r["coverage"]["launches"] for r in rows if r.get("coverage")]
    if seen:
        part = {k: sum(of[k] for of in seen) for k in ("total", "ranges", "kinds_only", "unknown", "indirect")}
        yield (
            f"launches: {part['total']}, with ranges {part['ranges']}, with kinds only {part['kinds_only']}, unknown "
            f"{part['unknown']}, partly indirect {part['indirect']}"
        )
        missing = {}
        for row in rows:
            for name, count in (row.get("coverage") or {}).get("not_modelled", {}).items():
                missing[name] = missing.get(name, 0) + count
        yield f"not modelled: {missing}"


def example(rows):
    """The example of the README: both lines and the line of the allocation must be named."""
    row = next((r for r in rows if r["case"] == "doc_mul_out" and r.get("findings")), None)
    if row is None:
        return
    best = next((f for f in row["findings"] if "torch.mul" in f["lines"]["access"]), None)
    problems = [] if best else ["no finding names the line with torch.mul"]
    for what in ("previous", "allocation") if best else ():
        if "torch.rand" not in best["lines"][what]:
            problems.append(f"the {what} does not name the line with torch.rand: {best['lines'][what]}")
    yield "doc_mul_out: " + ("; ".join(problems) or "both lines and the allocation's line are named")


def write_reports(path, reports):
    room = ROOM
    with open(path, "w") as file:
        # What went wrong first, the example next.
        for row, text, tail in sorted(
            reports, key=lambda r: (r[0]["outcome"] == OK, r[0]["case"] != "doc_mul_out", r[0]["case"])
        ):
            part = (
                f"######## {row['group']}/{row['case']} {row['variant']}: "
                f"expect {row['expect']}, got {row['verdict']}; "
                f"{'; '.join(row['problems'])}\n{text[:60000]}\n--- stderr\n{tail}\n"
            )
            room -= len(part)
            if room < 0:
                break
            file.write(part)


def write_lines(path, rows):
    known, head = {}, ""
    for line in path.read_text().splitlines() if path.exists() else []:
        if line.startswith("#"):
            head += line + "\n"
        elif line:
            name, _, shown = line.partition(": ")
            known[name] = shown
    # Both runtimes must show the same. The shared one's line is kept: the simulated GPU has no
    # other.
    known.update({f"{r['group']}/{r['case']}": r["line"] for r in rows if r.get("line") and r["variant"] == "shared"})
    path.write_text(head + "".join(f"{name}: {shown}\n" for name, shown in sorted(known.items())))
