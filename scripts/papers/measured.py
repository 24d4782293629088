"""Runs of hush-bench: the rows of a command, read from JSON, and the figures in them."""

import json
import pathlib
import time
from dataclasses import dataclass, field


@dataclass
class Run:
    """The rows of one command. `about` is the first row: command, machine, cores, level, unix_seconds, version."""

    about: dict
    rows: list[dict] = field(default_factory=list)

    @property
    def failure(self) -> str | None:
        """The reason why the command failed, if it did."""
        return next((row["skipped"] for row in self.rows if row["name"] == "failed"), None)

    def seconds(self, name: str, batch: int = 1, threads: int | None = None) -> float | None:
        """Returns the seconds of the row with this name and batch, of the fewest threads unless `threads` are asked for."""
        rows = [row for row in self.rows if row["name"] == name and row.get("batch", 1) == batch and "seconds" in row]
        rows = [row for row in rows if threads in (None, row.get("threads"))]
        return min(rows, key=lambda row: row.get("threads", 1))["seconds"] if rows else None

    def rate(self, batch: int, threads: int | None = None) -> float | None:
        """Returns the queries a second in batches of `batch`."""
        seconds = self.seconds("answer", batch, threads)
        return seconds and batch / seconds

    def batches(self) -> list[int]:
        """Returns the batches of whole answers."""
        return sorted({row["batch"] for row in self.rows if row["name"] == "answer" and "seconds" in row})

    def date(self) -> str:
        """Returns the day of the run, as YYYY-MM-DD."""
        return time.strftime("%Y-%m-%d", time.gmtime(self.about.get("unix_seconds", 0)))

    def facts(self) -> dict:
        """Returns the facts of the table: records, value_bytes, query_bytes, answer_bytes, key_bytes, hint_bytes and others."""
        return next((row for row in self.rows if row["name"] == "table"), {})

    def fact(self, *names: str) -> int | None:
        """Returns the sum of facts of the table."""
        facts = self.facts()
        return sum(facts[name] for name in names) if facts else None

    def value_bytes(self) -> int | None:
        """Returns the bytes of all values."""
        facts = self.facts()
        return facts["records"] * facts["value_bytes"] if facts else None


def read(*paths: pathlib.Path) -> dict[str, Run]:
    """Returns the runs in files, by their commands. A later run of the same command replaces an earlier one."""
    runs = []
    for path in paths:
        for line in path.read_text().splitlines() if path.exists() else []:
            row = json.loads(line)
            if row["name"] == "run":
                runs.append(Run(row))
            else:
                runs[-1].rows.append(row)
    return {run.about["command"]: run for run in sorted(runs, key=lambda run: run.about.get("unix_seconds", 0))}
