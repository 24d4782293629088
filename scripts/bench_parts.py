#!/usr/bin/env python3
"""Measures what parts on a local Ray cluster add to a look-up: `target/python/bin/python scripts/bench_parts.py TABLE KEY [PARTS ..]`.

The baseline is one server in this process with the same table and the same number of threads in all. For each number of parts, prints a
line of JSON with the median and the 90th percentile of sequential look-ups, in milliseconds. Rounds alternate between both servers, so
that other load on the machine affects both.
"""

import json
import os
import statistics
import sys
import time

import hushdb
import hushdb.ray

ROUNDS, LOOK_UPS = 5, 20


def main():
    folder, key, *parts = sys.argv[1:]
    threads = len(os.sched_getaffinity(0))
    with hushdb.serve(folder) as whole:
        for count in map(int, parts or (1, 2, 4, 8)):
            cpus = threads / count
            with hushdb.ray.serve(folder, parts=count, cpus=cpus, verify=False) as service:
                tables = {"whole": whole.connect().table(), "parts": service.connect().table()}
                taken = {name: [] for name in tables}
                for _ in range(ROUNDS):
                    for name, table in tables.items():
                        table.get(key)
                        taken[name] += [timed(table, key) for _ in range(LOOK_UPS)]
                line = {"parts": count, "cores": threads}
                for name, times in taken.items():
                    line |= {f"{name}_p50_ms": round(statistics.median(times), 2), f"{name}_p90_ms": round(statistics.quantiles(times, n=10)[-1], 2)}
                print(json.dumps(line), flush=True)


def timed(table, key):
    started = time.perf_counter()
    table.get(key)
    return 1e3 * (time.perf_counter() - started)


if __name__ == "__main__":
    main()
