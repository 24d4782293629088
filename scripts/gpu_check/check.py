#!/usr/bin/env python3
"""Checks and measures the CUDA backend on a machine with a GPU: conformance of primitives and steps, look-ups from end to end,
then benchmarks. Runs from carried binaries (`make gpu-carry`), which may be packed; needs a driver and Python 3, no
compiler and no network.

With --emulated, the benchmarks alone run in the emulator, at a small scale: a test of them and of this script."""

import argparse
import gzip
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUDGET = 540  # seconds for all of it
RESERVE = 240  # of these, for benchmarks
AGAIN = 60  # seconds for tests that did not pass, each by itself
LEAST = 5  # nothing begins with less
THREADS = 4  # tests at once: most of their time goes by on the host, for the reference
STEPS_SIZE = "32G"  # the table of the steps, or half of the memory
SIZES = ["64G", "16G", "4G", "1G"]  # tables of answers; those with targets first
EMULATED_SIZE = "1M"


class Check:
    """Runs stages one after another while there is time, and keeps what they say: a log and a JSON file."""

    def __init__(self, carry, out, emulated):
        self.carry, self.out = carry, out
        self.env = {"HUSH_CUDA": "emulator"} if emulated else {}
        self.log = (out / "gpu-check.log").open("w+", errors="replace")
        self.deadline = time.monotonic() + BUDGET
        self.machine = "emulator" if emulated else machine()
        self.stages, self.rows, self.said = [], [], ""

    def run(self, name, command, limit, env=None, reserve=0):
        """One stage, whose output goes to the log; returns whether it passed. `reserve` seconds are left for what comes after.
        What is known by then is written."""
        left = min(limit, self.left(reserve))
        self.said = ""
        start = time.monotonic()
        print(f"== {name}", flush=True)
        why = "no time left" if left < LEAST else self.execute(name, list(map(str, command)), left, env or {})
        print(f"   {why or 'passed'}, {time.monotonic() - start:.1f} s", flush=True)
        seconds = round(time.monotonic() - start, 1)
        self.stages.append({"stage": name, "passed": not why, "seconds": seconds, "why": why})
        self.write()
        return not why

    def left(self, reserve):
        """Seconds until `reserve` seconds are left."""
        return self.deadline - reserve - time.monotonic()

    def execute(self, name, command, limit, env):
        """Runs a command with all that it starts; returns why it failed, or nothing."""
        self.log.write(f"== {name}\n")
        self.log.flush()
        begin = self.log.tell()
        try:
            process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT, cwd=ROOT,
                                       env={**os.environ, **self.env, **env}, start_new_session=True)
        except OSError as error:
            return str(error)
        try:
            code = process.wait(limit)
            why = "" if code == 0 else f"exit status {code}"
        except subprocess.TimeoutExpired:
            # With its children: a server that is left would keep its part of the device's memory.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(20)
            why = f"not done after {limit:.0f} s"
        self.log.seek(begin)
        self.said = self.log.read()
        self.rows += list(objects(self.said, name))
        if why:
            print("\n".join(self.said.splitlines()[-25:]))
        return why

    def suite(self, name, limit, env, reserve):
        """The tests of a binary: all in one process; then those that did not pass, each in its own, since one fault spoils all that
        follow."""
        binary, options = self.carry / name, ["--include-ignored", f"--test-threads={THREADS}"]
        if self.run(name, [binary, *options], limit, env, reserve):
            return
        passed = tests_that_passed(self.said)
        alone, end = {**env, "CUDA_LAUNCH_BLOCKING": "1"}, time.monotonic() + AGAIN
        for test in tests_of(binary):
            left = min(end - time.monotonic(), self.left(reserve))
            if left > LEAST and test not in passed:
                self.run(f"{name}: {test}", [binary, "--exact", test, *options], left, alone, reserve)

    def write(self):
        """Everything as JSON, one file."""
        summary = {"machine": self.machine, "stages": self.stages, "rows": self.rows}
        (self.out / "gpu-check.json").write_text(json.dumps(summary, indent=1) + "\n")

    def table(self):
        """Rates, rows and stages, for people."""
        for row in self.rows:
            if "rate" in row:
                print(f"{row['name']:<46} {row['rate']:12.4e} {row['unit']}")
        print(f"{'what':<30} {'protocol':>11} {'GiB':>7} {'B':>4} {'ms':>10} {'floor':>10} {'bound':>6} {'share':>6} "
              f"{'streams':>7} {'queries/s':>10}")
        for row in self.rows:
            if "seconds" in row or "skipped" in row:
                print(line(row))
        for stage in self.stages:
            print(f"{stage['stage']:<30} {'passed' if stage['passed'] else 'FAILED'} {stage['seconds']:8.1f} s  {stage['why']}")


def unpack(carry, folder):
    """Unpacks what is packed in `carry`; returns the folder of the binaries, `carry` itself if nothing is."""
    packed = sorted(carry.glob("*.gz"))
    for path in packed:
        binary = folder / path.stem
        binary.write_bytes(gzip.decompress(path.read_bytes()))
        binary.chmod(0o755)
    return folder if packed else carry


def machine():
    """What the driver says of the GPU."""
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, timeout=10, check=False).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"


def tests_of(binary):
    """The names of the tests of a binary."""
    try:
        listed = subprocess.run([binary, "--list", "--include-ignored"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line.removesuffix(": test") for line in listed.stdout.splitlines() if line.endswith(": test")]


def tests_that_passed(text):
    """The names of the tests that a log says are ok; others failed, or were not reached."""
    return set(re.findall(r"^test (\S+)(?: - should panic)? \.\.\. ok$", text, re.MULTILINE))


def objects(text, stage):
    """The JSON objects of a log, one a line."""
    for candidate in text.splitlines():
        if candidate.startswith("{"):
            try:
                yield {"stage": stage, **json.loads(candidate)}
            except json.JSONDecodeError:
                pass


def line(row):
    """A row of the last table."""
    size = f"{row['table_bytes'] / 2**30:.2f}" if row.get("table_bytes") else "-"
    what = f"{row['name']:<30} {row.get('protocol') or '-':>11} {size:>7}"
    if "skipped" in row:
        return f"{what} {row.get('batch') or '-':>4} skipped: {row['skipped']}"
    streams = f"{row['streams']:.2f}x" if row.get("streams") else "-"
    rate = f"{row['queries_per_second']:.0f}" if row.get("queries_per_second") else "-"
    return (f"{what} {row['batch']:>4} {1e3 * row['seconds']:10.3f} "
            f"{1e3 * row['floor_seconds']:10.3f} {row['bound']:>6} {100 * row['share']:5.0f}% {streams:>7} {rate:>10}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--carry", type=pathlib.Path, default=ROOT / "target/gpu-carry", help="folder of the binaries")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "target/gpu-check", help="folder for logs and JSON")
    parser.add_argument("--only", choices=["tests", "bench"], help="one half alone")
    parser.add_argument("--sizes", nargs="*", help="tables of the benchmark of answers")
    parser.add_argument("--emulated", action="store_true", help="the benchmarks, in the emulator")
    args = parser.parse_args()
    steps, sizes = (EMULATED_SIZE, [EMULATED_SIZE]) if args.emulated else (STEPS_SIZE, SIZES)
    sizes = sizes if args.sizes is None else args.sizes
    tests, benchmarks = args.only != "bench" and not args.emulated, args.only != "tests"
    scratch = tempfile.TemporaryDirectory(prefix="gpu-check-")
    carry = unpack(args.carry.resolve(), pathlib.Path(scratch.name))
    hushdb, bench = carry / "hushdb", carry / "hush-bench"
    for binary in (hushdb, bench):
        if not binary.exists():
            sys.exit(f"error: {binary.name} is not in {args.carry}: run `make gpu-carry` where cargo is")
    args.out.mkdir(parents=True, exist_ok=True)
    check = Check(carry, args.out.resolve(), args.emulated)
    required = {"HUSH_REQUIRE_CUDA": "1", "HUSHDB": str(hushdb), "PYTHONDONTWRITEBYTECODE": "1"}
    reserve = RESERVE if benchmarks else 0
    # Where not a single rate can be measured, there is no GPU.
    check.run("doctor", [hushdb, "doctor"], 60)
    check.run("floors", [bench, "gpu-floors", "--json"], 60)
    if any("rate" in row for row in check.rows):
        if tests:
            check.suite("primitives", 60, required, reserve)
            check.suite("steps", 150, required, reserve)
            check.run("lookups", [sys.executable, "-m", "unittest", "discover", "-v", "-s", "tests/e2e", "-t", "tests/e2e",
                                  "-p", "test_cuda.py"], 120, required, reserve)
        if benchmarks:
            check.run("bench-steps", [bench, "gpu-steps", "--size", steps, "--json"], 120)
            for size in sizes:
                check.run(f"answers-{size}", [bench, "gpu-answers", "--size", size, "--json"], 120)
    check.table()
    sys.exit(not all(stage["passed"] for stage in check.stages))


if __name__ == "__main__":
    main()
