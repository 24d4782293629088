"""Writes docs/explanation/figures.md and its plots from the JSON of runs in bench/results. With --check, fails if they differ."""

import json
import pathlib
import sys

import measured
import plot
import printed
from measured import Run
from printed import number

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS, DOCS = ROOT / "bench/results", ROOT / "docs/explanation"
CORE_HOUR, GIGABYTE = 1.53 / 36, 0.09  # dollars: ChalametPIR section 6.1, for one of 36 cores of a c5.9xlarge, and for a GB that is sent

HEAD = """# Figures

Find measured times and sizes, with the date, the machine, the level of instructions and the command of each row.

`make figures` writes this page from the runs in [`bench/results`](../../bench/results/README.md); `make papers` and `make peers` make
such runs on your machine. All answers are checked: a wrong answer is an error. Others use the machines too, so compare within a table.
Explanations are in the notes on [speed](notes/speed.md), [packing](notes/packing.md#measured-times),
[column packing](notes/column-packing.md#measured-times) and [GPUs](notes/gpu.md#measured), which has the figures of two GPUs.
"""


def pages() -> dict[pathlib.Path, str]:
    """Returns the text of each file that is written."""
    runs = measured.read(*sorted(RESULTS.glob("*/*/papers.jsonl")))
    peers = [{**json.loads(line), "date": path.parent.name} for path in sorted(RESULTS.glob("*/*/peers.jsonl"))
             for line in path.read_text().splitlines()]
    own = [(row.label.replace("`", ""), runs[row.command]) for row in printed.OWN.rows if measures(runs, row.command)]
    text = [HEAD, *own_section(runs, own), *peers_section(peers), *papers_section(runs)]
    written = {DOCS / "figures.md": "\n".join(text)}
    for name, drawing in drawings(own, peers).items():
        written[DOCS / "drawings" / f"figures-{name}.svg"] = drawing
    return written


def measures(runs: dict[str, Run], command: str) -> bool:
    """Returns whether a command was run and did not fail."""
    return command in runs and not runs[command].failure


def own_section(runs: dict[str, Run], own: list[tuple[str, Run]]) -> list[str]:
    """Returns the lines about our own protocols, with the plots if there is a run."""
    lines = [f"## {printed.OWN.title}", "", *markdown(printed.OWN, runs)]
    if own:
        lines += ["![Bytes of a look-up against the time of one answer](drawings/figures-bytes.svg)", "",
                  "![Queries a second against the batch](drawings/figures-batches.svg)", "",
                  "![Cost of a million look-ups](drawings/figures-cost.svg)", "",
                  f"A million look-ups cost the time of one core in the largest batch, at ${CORE_HOUR:.4f} an hour, and the bytes of answers, at "
                  f"${GIGABYTE} a GB: the prices of ChalametPIR, section 6.1.", ""]
    return lines


def peers_section(peers: list[dict]) -> list[str]:
    """Returns the lines about peers, none without a run."""
    if not peers:
        return []
    lines = ["## Peers", "", "Peers had the same records in the same run, on one thread, by `make peers`: [what compares](../../bench/peers/README.md).", "",
             "| system | what | records | answer, ms | query, ms | decode, ms | up, KiB | down, KiB | once, MiB | set-up, s | machine, level, date |",
             "|---|---|---|---|---|---|---|---|---|---|---|"]
    for row in peers:
        cells = [f"{row['peer']} {row['version']}", row["what"], f"{row['records']} x {row['record_bytes']} B", number(row["answer_ms"]),
                 number(row["query_ms"]), number(row["decode_ms"]), number(row["up_bytes"] / printed.KIB), number(row["down_bytes"] / printed.KIB),
                 number((row["offline_bytes"] + row["key_bytes"]) / printed.MIB), number(row["setup_seconds"]),
                 f"{row['machine']}, {row['level']}, {row['date']}"]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def papers_section(runs: dict[str, Run]) -> list[str]:
    """Returns the lines about the papers' tables, and the names of those that no run has."""
    lines = ["## The papers' tables", "", "Each cell is our figure, and the printed one in parentheses. `make papers ONLY=NAME` runs a table again.", ""]
    missing = []
    for table in printed.PAPERS:
        if not any(measures(runs, row.command) for row in table.rows):
            missing.append(f"`{table.name}`")
            continue
        lines += [f"### {table.title}", "", f"Printed: {table.machine}. `ONLY={table.name}`."]
        lines += [table.note] if table.note else []
        lines += ["", *markdown(table, runs)]
    if missing:
        lines += [f"Not measured yet: {', '.join(missing)}.", ""]
    return lines


def markdown(table: printed.Table, runs: dict[str, Run]) -> list[str]:
    """Returns a table as Markdown, and the machine and the commands of its rows."""
    heads = " | ".join(column.head for column in table.columns)
    lines = [f"| | {heads} |", "|---" * (1 + len(table.columns)) + "|"]
    machines, commands = {}, []
    for row in table.rows:
        run = runs.get(row.command)
        if run is None or run.failure:
            reason = run.failure if run else "not measured"
            lines.append(f"| {row.label} | {reason} |" + " |" * (len(table.columns) - 1))
            continue
        cells = printed.cells(table, row, run)
        lines.append(f"| {row.label} | {' | '.join(cells)} |")
        machines[f"{run.about['machine']}, {run.about['cores']} cores, level {run.about['level']}, {run.date()}"] = True
        commands.append(run.about["command"])
    if commands:
        lines += ["", f"Measured: {'; '.join(machines)}.", "", "<details><summary>Commands</summary>", "", "```text", *commands, "```", "", "</details>"]
    return [*lines, ""]


def drawings(own: list[tuple[str, Run]], peers: list[dict]) -> dict[str, str]:
    """Returns the plots by name."""
    if not own:
        return {}
    asked = [(name, run.fact("query_bytes", "answer_bytes"), 1e3 * run.seconds("answer"), run.rate(max(run.batches())), run.fact("answer_bytes"))
             for name, run in own]
    asked += [(row["peer"], row["up_bytes"] + row["down_bytes"], row["answer_ms"], 1e3 / row["answer_ms"], row["down_bytes"])
              for row in peers if not row["peer"].startswith("HushDB")]
    bytes_plot = [plot.Series(name, ((size / printed.KIB, taken),)) for name, size, taken, *_ in asked]
    batches = [plot.Series(name, tuple((batch, run.rate(batch)) for batch in run.batches())) for name, run in own if len(run.batches()) > 1]
    cost = [plot.Series(name, ((size / printed.KIB, 1e6 / rate * CORE_HOUR / 3600 + 1e6 * down * GIGABYTE / 1e9),))
            for name, size, _, rate, down in asked]
    return {
        "bytes": plot.draw("Bytes of a look-up against the time of one answer", "query and answer, KiB", "one answer on one core, ms", bytes_plot),
        "batches": plot.draw("Queries a second against the batch", "queries in a batch", "queries a second, one core", batches),
        "cost": plot.draw("Cost of a million look-ups", "query and answer, KiB", "dollars a million look-ups", cost),
    }


def main() -> int:
    stale = []
    for path, text in pages().items():
        if "--check" not in sys.argv[1:]:
            path.write_text(text)
        elif not path.is_file() or path.read_text() != text:
            stale.append(str(path.relative_to(ROOT)))
    if stale:
        print(f"figures: {', '.join(stale)} not as scripts/papers/page.py writes: run `make figures`", file=sys.stderr)
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main())
