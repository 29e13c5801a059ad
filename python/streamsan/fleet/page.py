"""The report as one HTML page: no script, no other file.

Owns the markup. Everything that a trace holds is escaped.
"""

import html

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; }
table { border-collapse: collapse; width: 100%; margin: 1em 0 2em; }
th, td { border-bottom: 1px solid #ccc; padding: .3em .6em; text-align: left; vertical-align: top; overflow-wrap: anywhere; }
pre { margin: 0; white-space: pre-wrap; }
.new { color: #a00; font-weight: bold; }
@media (prefers-color-scheme: dark) { body { background: #111; color: #ddd; } .new { color: #f66; } }
"""


def escaped(value):
    return html.escape("" if value is None else str(value))


def table(heads, rows):
    head = "".join(f"<th>{escaped(name)}</th>" for name in heads)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>" if rows else "<p>None.</p>"


def cells(*values):
    return "".join(f"<td>{value}</td>" for value in values)


def state(row):
    return f'<span class="{escaped(row["state"])}">{escaped(row["state"])}</span>'


def page(found):
    from .report import counted, in_full, where

    causes = [cells(state(r), f"<pre>{escaped(r['cause_missing'])}\n{escaped(r['cause_mend'])}</pre>", escaped(r["cause_after"]),
                    escaped(r["cause_before"]), r["findings"], r["ranks"], r["hosts"], escaped(r["first_seen"]), escaped(r["last_seen"]))
              for r in found["causes"]]
    findings = [cells(state(r), f"{escaped(r['hazard'])} ({escaped(r['confidence'])})<br>{escaped(r['fingerprint'])}",
                      escaped(where(r, "access")), escaped(where(r, "previous")) if r["previous_call"] or r["previous_kernel"] else "",
                      r["ranks"], r["hosts"], escaped(r["first_seen"]), escaped(r["last_seen"]),
                      f"<code>{escaped(in_full(r))}</code>")
                for r in found["findings"]]
    unread = [cells(escaped(r["date"]), escaped(r["job"]), escaped(r["trace"]), escaped(r["status"]), escaped(r["error"]))
              for r in found["unread"]]
    jobs = [cells(escaped(r["date"]), escaped(r["job"]), r["traces"], r["read_whole"], r["in_part"], r["with_findings"], r["hosts"])
            for r in found["jobs"]]
    span = ("ranks", "hosts", "first seen", "last seen")
    parts = [
        f"<h1>Races of a fleet</h1><p>{escaped(found['dataset'])}, new since {escaped(found['since'])}, made {escaped(found['made'])}.</p>",
        f"<h2>Causes</h2><p>{counted(found['causes'])}</p>",
        table(("state", "missing", "after", "before", "findings", *span), causes),
        f"<h2>Findings</h2><p>{counted(found['findings'])}</p>",
        table(("state", "finding", "access", "previous", *span, "in full"), findings),
        "<h2>Traces that were not read whole</h2>", table(("date", "job", "trace", "status", "error"), unread),
        "<h2>Jobs</h2>", table(("date", "job", "traces", "read whole", "in part", "with findings", "hosts"), jobs),
    ]
    return (f"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
            f"<title>Races of a fleet</title><style>{STYLE}</style>{''.join(parts)}</html>\n")
