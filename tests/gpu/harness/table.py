"""Owns the table that every verb prints: its rows, their outcomes, and the exit code they make."""

import collections
import json
import threading

OK = "ok"
# Wrong, for a reason that a list of known failures gives.
KNOWN = "known"
WRONG = "WRONG"
# Not checked: there was no time left. That is no success.
LATE = "no time"
# Not checked: something it needs is not installed here.
ABSENT = "left out"


class Table:
    """Rows under titles. `columns` maps a title to its width and alignment, as in a format string.

    Live tables print each row as it comes; the others are printed by `print_all`, in the order that
    `sort` gave them.
    """

    def __init__(self, columns, live=True):
        self.columns, self.live = columns, live
        self.rows, self.notes = [], []
        self.lock = threading.Lock()
        if live:
            print(self.head(), flush=True)

    def head(self):
        return self._line(list(self.columns))

    def _line(self, cells):
        one_line = (" | ".join(str(cell).split("\n")) for cell in cells)
        return " ".join(f"{cell:{width}}" for cell, width in zip(one_line, self.columns.values())).rstrip()

    def row(self, outcome, *cells, below=(), **data):
        """Adds a row. `below`: lines that explain it. `data`: goes to the results only."""
        if len(cells) > len(self.columns):
            raise ValueError(f"{len(cells)} cells for {len(self.columns)} columns: {cells}")
        with self.lock:
            self.rows.append((outcome, list(cells), [line for text in below for line in text.splitlines()], data))
            if self.live:
                print(self._print(self.rows[-1]), flush=True)

    def note(self, text):
        """A line under the table."""
        with self.lock:
            self.notes.append(text)
            if self.live:
                print(text, flush=True)

    def sort(self, key):
        """Sorts by a key of each row's data."""
        self.rows.sort(key=lambda row: key(row[3]))

    def _print(self, row):
        return "\n".join([self._line(row[1]), *(f"    {line}" for line in row[2])])

    def text(self):
        return "\n".join([self.head(), *map(self._print, self.rows), *self.notes])

    def print_all(self):
        print("\n" + self.text(), flush=True)

    def counts(self):
        return collections.Counter(row[0] for row in self.rows)

    def summary(self):
        """One line: how many rows of each outcome."""
        counts = self.counts()
        order = (OK, KNOWN, WRONG, LATE, ABSENT)
        return ", ".join(f"{counts[o]} {o}" for o in order if counts[o]) or "nothing was run"

    def exit_code(self, strict=False):
        counts = self.counts()
        bad = counts[WRONG] or counts[LATE] or (strict and counts[KNOWN])
        return 1 if bad or not counts[OK] + counts[KNOWN] else 0

    def write(self, folder, verb, seconds, strict=False):
        """Leaves table.txt and results.json in a folder."""
        (folder / "table.txt").write_text(self.text() + "\n")
        counts = self.counts()
        rows = [
            {"outcome": o, **dict(zip(self.columns, cells)), **({"below": below} if below else {}), **data}
            for o, cells, below, data in self.rows
        ]
        results = {
            "verb": verb,
            "seconds": round(seconds, 1),
            "exit": self.exit_code(strict),
            "summary": self.summary(),
            "ok": counts[OK],
            "known": counts[KNOWN],
            "wrong": counts[WRONG],
            "no_time": counts[LATE],
            "left_out": counts[ABSENT],
            "rows": rows,
        }
        (folder / "results.json").write_text(json.dumps(results, indent=1, default=str) + "\n")
