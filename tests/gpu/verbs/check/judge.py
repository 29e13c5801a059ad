"""Runs one program bare and under StreamSan, and judges what was found. Adds nothing up."""

from harness import cases, reports
from harness.table import ABSENT, KNOWN, LATE, OK, WRONG


class Check:
    """The rows of one call, and the reports behind them."""

    def __init__(self, session):
        self.session, self.args = session, session.args
        self.known = cases.known_failures()
        self.rows, self.reports = [], []

    def new_row(self, case, label, *problems):
        return {
            "case": case.name,
            "variant": label,
            "group": case.group,
            "expect": " ".join(case.expect),
            "needs": case.needs,
            "verdict": "none",
            "problems": list(problems),
        }

    def checked(self, case, label, command, env, options=()):
        """Bare and under the tool; one row for each run."""
        session, row = self.session, self.new_row(case, label)
        if session.left() < 5:
            row["verdict"] = "skipped"
            row["problems"].append("no time left")
            return self.add(row)
        bare = None
        if not self.args.sim:
            bare = session.run(command, env=env)
            row["bare_s"] = round(bare.wall, 2)
            if bare.missing:
                row["verdict"], row["outcome"] = "left out", ABSENT
                row["problems"].append(f"{bare.missing} is not installed")
                return self.add(row)
            if bare.hung or bare.code:
                words = bare.last_words(120).replace("\n", " ")
                row["problems"].append(f"bare run: {'hung' if bare.hung else f'exit {bare.code}: {words}'}")
        if "sm_90" in case.needs:
            env = dict(env, STREAMSAN_SIM="arch=90")
        for number in range(self.args.runs):
            stem = f"{case.group}-{case.name}-{label}-{number}"
            report, log = session.work / f"{stem}.json", session.work / f"{stem}.txt"
            under = session.streamsan("run", "--json", report, "--log-file", log, "--error-exitcode", "0", *options)
            ran = session.run([*under, *(["--sim"] if self.args.sim else []), "--", *command], factor=2, env=env)
            if ran.missing and bare is None:
                row["verdict"], row["outcome"] = "left out", ABSENT
                row["problems"].append(f"{ran.missing} is not installed")
                return self.add(row)
            self.judge(row, case, bare, ran, report, log, number)
        return None

    def judge(self, first, case, bare, ran, report, log, number):
        row = dict(first, problems=list(first["problems"]), run=number, checked_s=round(ran.wall, 2))
        problems = row["problems"]
        expected_code = bare.code if bare else 0
        if ran.hung:
            problems.append("hung")
        elif ran.code != expected_code:
            problems.append(f"exit {ran.code} instead of {expected_code}")
        self.judge_output(row, case, bare, ran)
        found = reports.load(report)
        if found is None:
            problems.append("no JSON")
        else:
            self.judge_findings(row, case, ran, found)
        self.add(row, log.read_text(errors="replace") if log.exists() else "", ran.errors[-3000:])

    @staticmethod
    def judge_output(row, case, bare, ran):
        """A sample must print what is expected, another program what it prints bare."""
        if case.output is not None:
            for which, end in (("bare", bare), ("checked", ran)):
                if end and end.out != case.output:
                    row["problems"].append(f"{which} output differs from expected/{case.name}.txt")
                    row[f"{which}_out"] = end.text[:2000]
        # What a racy twin computes is not defined.
        elif bare and not ran.hung and not case.racy:
            for what, a, b in (("stdout", bare.out, ran.out), ("stderr", bare.err, ran.err)):
                if a != b and reports.numbers_hidden(a) != reports.numbers_hidden(b):
                    row["problems"].append(f"{what} differs")
                elif a != b and what == "stdout":
                    row["numbers"] = "differ"

    @staticmethod
    def judge_findings(row, case, ran, found):
        problems, findings = row["problems"], reports.findings(found)
        row["findings"] = [
            {
                "hazard": f["hazard"],
                "host": f["host"],
                "confidence": f["confidence"],
                "count": f["count"],
                "pair": f"{reports.side(f['previous'])} / {reports.side(f['access'])}",
                "lines": lines(f),
            }
            for f in findings
        ]
        row["count"] = found["summary"]["findings"]
        row["coverage"] = found.get("coverage", {})
        row["verdict"] = reports.kinds(findings) if row["count"] else "clean"
        if ran.code == 0 and row["coverage"].get("ops"):
            row["line"] = reports.shown(row["count"] and findings, ran.out)
        right = [f for f in findings if f["hazard"] == case.kind and bool(f["host"]) == case.host]
        if case.races and not row["count"]:
            problems.append("MISSED")
        elif case.races and not right:
            problems.append("other kind")
        elif case.races and not any(
            reports.is_side(f["previous"], case.pair[0]) and reports.is_side(f["access"], case.pair[1]) for f in right
        ):
            problems.append("other pair")
        elif not case.races and row["count"]:
            problems.append("FALSE ALARM")
        if not found["coverage"].get("ops"):
            problems.append("saw no CUDA")
        if found["coverage"].get("disabled"):
            problems.append("shim off")

    def add(self, row, text="", tail=""):
        known = self.known.get(f"{row['group']}/{row['case']}") or self.known.get(row["case"])
        row["known"] = "" if row["variant"].endswith("+host") else known or ""
        if "outcome" not in row:
            late = row["problems"] == ["no time left"]
            row["outcome"] = OK if not row["problems"] else LATE if late else KNOWN if row["known"] else WRONG
        with self.session.lock:
            self.rows.append(row)
            self.reports.append((row, text, tail))
        self.session.say(
            f"{row['outcome']:7} {row['group']:6} {row['case']:28} {row['variant']:11} expect {row['expect']:14} "
            f"got {row['verdict']:24} {'; '.join(row['problems'])}".rstrip()
        )

    def internal(self, error):
        """A failure of this script is a failure of the check."""
        self.add(
            {
                "case": "internal",
                "variant": "",
                "group": "?",
                "expect": "",
                "needs": "",
                "verdict": "none",
                "problems": [repr(error)],
            }
        )


def lines(finding):
    """The innermost line with a file of both accesses and of the allocation."""
    return {
        "access": reports.inner_line(finding["access"]["stack"]),
        "previous": reports.inner_line(finding["previous"]["stack"]),
        "allocation": reports.inner_line((finding.get("allocation") or {}).get("stack")),
    }
