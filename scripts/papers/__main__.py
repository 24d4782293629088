"""Runs the papers' tables and prints ours beside the printed figures: `make papers`. Rows that are in OUT already are not run again, so a
run that is stopped goes on where it was; rows that failed are tried again. ONLY names the tables whose names begin with it, such as chalametpir-2 or ppir."""

import argparse
import json
import pathlib
import shlex
import subprocess
import sys
import time

import measured
import printed

LEAST_DISK = 24 << 30


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bench", type=pathlib.Path, help="hush-bench")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("target/papers/papers.jsonl"), help="JSON of the runs")
    parser.add_argument("--only", default="", help="tables whose names begin so")
    parser.add_argument("--most", type=float, default=30, help="minutes after which a row ends (%(default)s)")
    parser.add_argument("--list", action="store_true", help="print the commands, and run nothing")
    options = parser.parse_args()
    tables = [table for table in printed.TABLES if table.name.startswith(options.only)]
    if not tables:
        print(f"papers: no table begins with {options.only}: {', '.join(table.name for table in printed.TABLES)}", file=sys.stderr)
        return 2
    commands = list(dict.fromkeys(row.command for table in tables for row in table.rows))
    if options.list:
        print("\n".join(commands))
        return 0
    options.out.parent.mkdir(parents=True, exist_ok=True)
    runs = measured.read(options.out)
    missing = [command for command in commands if command not in runs or runs[command].failure]
    print(f"papers: {len(missing)} of {len(commands)} rows are to be measured; all tables take up to two hours, 20 GiB of memory and "
          f"{LEAST_DISK >> 30} GiB of disk", file=sys.stderr)
    for number, command in enumerate(missing, start=1):
        begun = time.monotonic()
        run(options.bench, command, options.out, 60 * options.most)
        print(f"papers: {number} of {len(missing)}, {time.monotonic() - begun:.0f} s: {command}", file=sys.stderr, flush=True)
    runs = measured.read(options.out)
    for table in tables:
        print("\n".join(lines(table, runs)))
    return int(any(runs[command].failure for command in commands))


def run(bench: pathlib.Path, command: str, out: pathlib.Path, most: float) -> None:
    """Runs a command, and appends its rows to `out`, with a last row if it fails."""
    try:
        done = subprocess.run([bench, *shlex.split(command)[1:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=most, check=False)
        rows, said, code = done.stdout, done.stderr, done.returncode
    except subprocess.TimeoutExpired as late:
        rows, said, code = partial(late.stdout), f"error: more than {most / 60:.0f} minutes", 1
    if code:
        reason = next((line.removeprefix("error: ") for line in reversed(said.splitlines()) if line.startswith("error: ")), f"status {code}")
        rows = rows or json.dumps({"name": "run", "command": command}) + "\n"
        rows += json.dumps({"name": "failed", "skipped": reason}) + "\n"
    with out.open("a") as file:
        file.write(rows)


def partial(output: str | bytes | None) -> str:
    """Returns what a command that was stopped has printed: whole lines, as text."""
    text = output.decode() if isinstance(output, bytes) else output or ""
    return text[: text.rfind("\n") + 1]


def lines(table: printed.Table, runs: dict[str, measured.Run]):
    """Yields a table as text: ours, and the printed figure in parentheses."""
    yield f"\n{table.title}." + (f" Printed: {table.machine}." if table.machine else "")
    if table.note:
        yield table.note
    heads = [column.head for column in table.columns]
    yield f"{'':<44}" + "".join(f"{head:>32}" for head in heads)
    for row in table.rows:
        run = runs.get(row.command)
        if run is None or run.failure:
            yield f"{row.label:<44}  {run.failure if run else 'not measured'}"
            continue
        yield f"{row.label:<44}" + "".join(f"{text:>32}" for text in printed.cells(table, row, run))


if __name__ == "__main__":
    sys.exit(main())
