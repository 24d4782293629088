#!/usr/bin/env python3
"""What parts on a Ray cluster add to a look-up: `target/python/bin/python scripts/bench_parts.py TABLE KEY [PARTS ..]`, all on this machine.

One server in this process is the measure: the same table, the same threads in all. Prints the median and the 90th percentile of look-ups
one after another, in milliseconds, in JSON, a line for each; rounds of both take turns, so that others' load hits both.
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
