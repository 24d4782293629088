#!/usr/bin/env python3
"""Works out what tables of 1 and of 100 TB take, for docs/scale.md: layouts by `hushdb plan --machines`, and a simulation of the queues.

    python3 scripts/scale.py --plan target/release/hushdb    # plans anew and simulates: docs/figures/scale.json, then draws
    python3 scripts/scale.py                                 # draws docs/figures/scale-*.svg of that file
    python3 scripts/scale.py --check                         # fails if the committed figures differ from what it draws
    python3 scripts/scale.py --tables                        # prints the tables of docs/scale.md

What a protocol sends and how long its steps take comes from the planner, with the reference profile
(crates/hush-engine/src/planner/reference_machine.json: two cores of an EPYC, measured). What is assumed beside that is here, at the top.
"""

import argparse
import heapq
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass

from draw_figures import FOLDER, STYLE, text

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROFILE = ROOT / "crates/hush-engine/src/planner/reference_machine.json"
FIGURES = FOLDER / "scale.json"

# Measured: calls of an actor by bytes, there and back, on a busy machine of two cores (Ray 2.60, through its object store).
CALLS = ((150e3, 4e-3), (5e6, 15e-3))
# Assumed: machines as clouds have them, in numbers that do not bind. Cores are those of the profile, and share work evenly.
CORES, MEMORY, NETWORK, MOST = 16, "128G", 12_500, 200_000
# Assumed: one scan of so many takes so many times as long, whatever the reason.
SLOW_ONE_IN, SLOW_TIMES = 1000, 5.0
# What hushdb.ray does about it: a replica is asked after so many times the usual time (crates/hush-py/python/hushdb/ray/_workers.py).
HEDGE, LEAST_HEDGE, IN_FLIGHT = 3.0, 0.05, 2

VALUE = 1024
# No protocol has a table of 100 TB: it is so many of 1 TB, which are asked with one query, as segments are.
TABLES = {"1 TB": 1, "100 TB": 100}
SHARD = 10**12
SIZES = [*(10**power for power in range(9, 13)), *(times * 10**12 for times in (2, 4, 8, 16, 32))]
RATES, LATENCY = (1_000, 100_000), "1s"
PROTOCOLS = ("colpack", "hybrid", "onion", "tfhe")
# Worked out: a ciphertext of colpack's ring, two polynomials of 2048 coefficients modulo two primes, in words of 4 bytes.
COLPACK_CIPHERTEXT = 2 * 2 * 2048 * 4


def transport():
    """Seconds of a call, and bytes a second: the line through both that were measured."""
    (few, short), (many, long) = CALLS
    copy = (many - few) / (long - short)
    return short - few / copy, copy


def machines(network=NETWORK):
    call, copy = transport()
    kinds = [("part", ""), ("head", "heads = true")]
    return f'[ray]\ncall = "{call:.9f}s"\ncopy = "{copy:.0f}"\n' + "".join(
        f'[[machine]]\nname = "{name}"\ncount = {MOST}\ncores = {CORES}\nmemory = "{MEMORY}"\nnetwork = {network}\n{more}\n'
        for name, more in kinds
    )


def plan(program, size, protocol, *wishes):
    """The layout of a table of `size` bytes of values that takes the fewest machines, without the list of its parts; None if there is none."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(machines())
        file.flush()
        command = [program, "plan", "--machine", PROFILE, "--machines", file.name, "--json", "--records", size // VALUE, "--size", VALUE,
                   "--key", "--protocol", protocol, "--max-tiers", 1, *wishes]
        result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode:
        print(f"{size:.0e} {protocol} {wishes}: {result.stderr.splitlines()[-1]}", file=sys.stderr)
        return None
    layout = min(map(json.loads, result.stdout.splitlines()), key=lambda layout: (layout["machines"], layout["latency"]))
    parts = layout.pop("parts")
    layout["count"], layout["part_bytes"] = len(parts), max(part["bytes"] for part in parts)
    del layout["command"]
    return layout


@dataclass
class Times:
    """Seconds of the stages of a batch, straight between that of one query and the one that was planned."""

    layout: dict

    def __call__(self, stage, batch):
        layout, most = self.layout, self.layout["batch"]
        share = (batch - 1) / (most - 1) if most > 1 else 0.0
        return (1 - share) * layout["single"][stage] + share * layout["batched"][stage]


def simulate(layout, rate, hedged, choice, seconds, seed=1):
    """Seconds of look-ups that arrive at random, `rate` a second: heads collect batches, parts scan them one after another. A head takes
    replicas in turn, at random, or the one that is free first, which only somebody who sees all heads knows."""
    rng, times = random.Random(seed), Times(layout)
    heads, replicas, parts, most = layout["heads"], layout["replicas"], layout["count"], layout["batch"]
    free = [[0.0] * replicas for _ in range(parts)]  # when a machine has done what it was told
    waiting, flying, busy = [[] for _ in range(heads)], [0] * heads, [0.0] * heads
    turn, typical = [rng.randrange(replicas) for _ in range(heads)], [math.inf] * heads  # of each head: the next replica, usual seconds
    events, taken = [], []
    arrival = 0.0
    while arrival < seconds:
        arrival += rng.expovariate(rate)
        events.append((arrival, len(events), rng.randrange(heads), None))
    order = len(events)
    heapq.heapify(events)

    def scanned(part, own, late, at, batch):
        """When a part has scanned a batch that comes at `at`; another replica than `own` is asked as well if it is not done at `late`."""
        usual = times("scan", batch)
        took = usual * (SLOW_TIMES if rng.randrange(SLOW_ONE_IN) == 0 else 1.0)
        end = free[part][own] = max(free[part][own], at) + took
        if hedged and replicas > 1 and end > late:
            other = (own + 1) % replicas
            free[part][other] = max(free[part][other], late) + usual
            end = min(end, free[part][other])
        return end

    def send(head, now):
        nonlocal order
        while waiting[head] and (flying[head] == 0 or (flying[head] < IN_FLIGHT and len(waiting[head]) >= most)):
            batch, waiting[head] = waiting[head][:most], waiting[head][most:]
            flying[head] += 1
            turn[head] = (turn[head] + 1) % replicas if choice == "turns" else rng.randrange(replicas)
            count, late = len(batch), now + max(LEAST_HEDGE, HEDGE * typical[head])
            at = now + times("broadcast", count)
            if choice == "free":
                own = [min(range(replicas), key=free[part].__getitem__) for part in range(parts)]
            else:
                own = [turn[head]] * parts
            there = max(scanned(part, own[part], late, at, count) for part in range(parts))
            typical[head] = there - now if math.isinf(typical[head]) else 0.9 * typical[head] + 0.1 * (there - now)
            back = max(there + times("gather", count), busy[head])
            busy[head] = back + times("finish", count)
            heapq.heappush(events, (busy[head], order, head, batch))
            order += 1

    while events:
        now, _, head, batch = heapq.heappop(events)
        if batch is None:
            waiting[head].append(now)
        else:
            flying[head] -= 1
            taken += [now - begun for begun in batch]
        send(head, now)
    return sorted(taken[len(taken) // 10:])  # without the first, which find nothing in their way


def at(share, sorted_values):
    return sorted_values[min(len(sorted_values) - 1, int(share * len(sorted_values)))]


LOADS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
LOOK_UPS = 30_000
# Which replica a head takes, and whether another one is asked if that is late.
KINDS = {"turns": ("turns", False), "random": ("random", False), "free": ("free", False), "hedged": ("free", True)}


def queues(layout):
    """Median and 99th of 100 look-ups by load, in shares of what the layout answers."""
    rows = []
    for load in LOADS:
        rate = load * layout["queries_per_second"]
        row = {"load": load}
        for kind, (choice, hedged) in KINDS.items():
            taken = simulate(layout, rate, hedged, choice, seconds=LOOK_UPS / rate)
            row[kind] = [round(at(share, taken), 4) for share in (0.5, 0.99)]
        rows.append(row)
    return rows


def planned(program):
    """All that is drawn and printed."""
    figures = {"sizes": [], "layouts": []}
    for size in SIZES:
        for protocol in PROTOCOLS:
            layout = plan(program, size, protocol)
            if layout:
                figures["sizes"].append({"bytes": size, "protocol": protocol, **brief(layout)})
    for rate in RATES:
        for protocol in PROTOCOLS:
            layout = plan(program, SHARD, protocol, "--lookups-per-second", rate, "--replicas", 2, "--max-latency", LATENCY)
            if layout:
                figures["layouts"].append({"rate": rate, "protocol": protocol, **brief(layout)})
    figures["queues"] = queues(next(own for own in figures["layouts"] if own["protocol"] == "colpack"))
    return figures


def brief(layout):
    """What is kept of a layout."""
    table = layout["table"]
    kept = ("count", "replicas", "heads", "machines", "batch", "queries_per_second", "query_bytes", "partial_bytes", "part_bytes",
            "head_bytes", "latency", "single", "batched")
    stages = {stage: {name: float(f"{seconds:.4g}") for name, seconds in layout[stage].items()} for stage in ("single", "batched")}
    numbers = {name: layout[name] for name in kept} | stages
    return numbers | {"columns": table["geometry"]["columns"], "blocks": table["geometry"]["blocks"], "preset": table["preset"],
                      "bytes_up": table["bytes_up"], "bytes_down": table["bytes_down"]}


# The figures: curves over logarithms, in the style of scripts/draw_figures.py.

COLOURS = ("#0969da", "#9a6700", "#1a7f37", "#8250df", "#cf222e")
LINES = "\n".join(f".c{i} {{ stroke: {colour}; }}\n.t{i} {{ fill: {colour}; }}" for i, colour in enumerate(COLOURS))
EXTRA = f"""
.axis {{ stroke: #59636e; stroke-width: 1; fill: none; }}
.grid {{ stroke: #d1d9e0; stroke-width: 0.6; }}
.curve {{ fill: none; stroke-width: 2; }}
.dashed {{ stroke-dasharray: 6 4; }}
{LINES}
"""
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 1040, 420, 90, 310, 50, 60


def amount(value):
    """Bytes in decimal units."""
    for power, unit in ((12, "TB"), (9, "GB"), (6, "MB"), (3, "KB")):
        if value >= 10**power:
            return f"{value / 10**power:.3g} {unit}"
    return f"{value:.0f} B"


def chart(title, x_label, y_label, curves, x_ticks, y_ticks, log_x):
    """An SVG of curves `(name, dashed, colour, [(x, y)])`, with ticks `(value, text)`; y over its logarithm."""
    x_of = math.log10 if log_x else float
    (x0, x1), (y0, y1) = ([of(ticks[end][0]) for end in (0, -1)] for of, ticks in ((x_of, x_ticks), (math.log10, y_ticks)))
    across = lambda x: LEFT + (WIDTH - LEFT - RIGHT) * (x_of(x) - x0) / (x1 - x0)
    down = lambda y: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (math.log10(y) - y0) / (y1 - y0)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{title}</title>",
        f"<style>\n{STYLE}\n{EXTRA.strip()}\n</style>",
        f'<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>',
        text("step", "start", LEFT, 26, title),
    ]
    for value, name in y_ticks:
        y = down(value)
        out += [f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>', text("size", "end", LEFT - 8, round(y + 4, 1), name)]
    for value, name in x_ticks:
        out.append(text("size", "middle", round(across(value), 1), HEIGHT - BOTTOM + 20, name))
    out.append(f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>')
    out += [text("size", "middle", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, x_label), text("size", "start", LEFT, TOP - 8, y_label)]
    names = []
    for name, dashed, colour, points in curves:
        path = " ".join(f"{across(x):.1f},{down(max(y, y_ticks[0][0])):.1f}" for x, y in points)
        out.append(f'<polyline class="curve c{colour}{" dashed" if dashed else ""}" points="{path}"/>')
        names.append([down(max(points[-1][1], y_ticks[0][0])) + 4, colour, name])
    names.sort()
    for before, own in zip(names, names[1:]):
        own[0] = max(own[0], before[0] + 16)
    out += [text(f"t{colour}", "start", WIDTH - RIGHT + 10, round(y, 1), name) for y, colour, name in names]
    return "\n".join([*out, "</svg>", ""])


def bytes_chart(figures):
    """What a query moves between machines, by size of the table."""
    def points(protocol, value):
        return [(own["bytes"], value(own)) for own in figures["sizes"] if own["protocol"] == protocol]

    curves = [
        (f"{protocol}: parts to head", False, colour, points(protocol, lambda own: own["partial_bytes"]))
        for colour, protocol in enumerate(PROTOCOLS)
    ]
    curves += [
        ("colpack: query to a part", True, 0, points("colpack", lambda own: own["query_bytes"])),
        ("colpack folded in parts", True, 4, points("colpack", lambda own: COLPACK_CIPHERTEXT * own["count"])),
    ]
    ticks = [(10**power, amount(10**power)) for power in range(3, 10)]
    return chart("Bytes of a query between machines, in as few parts as hold the table", "bytes of values", "bytes a query",
                 [curve for curve in curves if curve[3]], [(size, amount(size)) for size in SIZES], ticks, True)


def queue_chart(figures):
    """Median and 99th of 100 look-ups by load."""
    names = {"turns": "replicas in turn", "random": "at random", "free": "the first that is free", "hedged": "the same, and another if late"}
    curves = []
    for colour, (kind, name) in enumerate(names.items()):
        for place, which in enumerate(("half", "99 of 100")):
            points = [(row["load"], row[kind][place]) for row in figures["queues"]]
            curves.append((f"{which}: {name}", which == "half", colour, points))
    ticks = [(value, f"{value:g} s") for value in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)]
    loads = [(load, f"{load:.0%}") for load in (0.2, 0.4, 0.6, 0.8, 0.9)]
    return chart("colpack, 1 TB, 1,000 look-ups a second: time of a look-up between server and parts", "load, of what the layout answers",
                 "seconds", curves, loads, ticks, False)


CHARTS = {"scale-bytes.svg": bytes_chart, "scale-queues.svg": queue_chart}


def tables(figures):
    """The layouts as rows of Markdown."""
    print("| table | look-ups a second | protocol | machines, cores | parts x replicas, heads | memory of a part | a look-up alone, in a batch |")
    print("|---|---|---|---|---|---|---|")
    for name, shards in TABLES.items():
        for own in figures["layouts"]:
            machines, heads = shards * own["machines"], shards * own["heads"]
            copies = f"{shards} x " if shards > 1 else ""
            print(f"| {name} | {own['rate']:,} | `{own['protocol']}` | {machines:,}, {CORES * machines:,} | "
                  f"{copies}{own['count']} x {own['replicas']:,}, {heads:,} | {amount(own['part_bytes'])} | "
                  f"{own['single']['total']:.2g} s, {own['batched']['total']:.2g} s of {own['batch']} |")
    print("\n| values | protocol | parts | columns | query to a part | parts to head | scan, gather, finish of one query |\n|---|---|---|---|---|---|---|")
    for own in figures["sizes"]:
        single = own["single"]
        print(f"| {amount(own['bytes'])} | `{own['protocol']}` | {own['count']} | {own['columns']:,} | {amount(own['query_bytes'])} | "
              f"{amount(own['partial_bytes'])} | {single['scan']:.2g}, {single['gather']:.2g}, {single['finish']:.2g} s |")
    for row in figures["queues"]:
        print(row)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plan", metavar="HUSHDB", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--tables", action="store_true")
    args = parser.parse_args()
    if args.plan:
        FIGURES.write_text(json.dumps(planned(args.plan), indent=1) + "\n")
    figures = json.loads(FIGURES.read_text())
    if args.tables:
        return tables(figures)
    stale = []
    for name, draw in CHARTS.items():
        path, drawn = FOLDER / name, draw(figures)
        if not args.check:
            path.write_text(drawn)
        elif not path.is_file() or path.read_text() != drawn:
            stale.append(name)
    if stale:
        sys.exit(f"docs/figures: {', '.join(stale)} not as scripts/scale.py draws: run it")


if __name__ == "__main__":
    main()
