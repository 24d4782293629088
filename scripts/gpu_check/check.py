"""Runs stages one after another while there is time, and writes their output to a log and a JSON file."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import gpu

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUDGET = 570  # seconds for all stages
AGAIN = 60  # seconds for repeating all tests that did not pass, one by one
ONCE_MORE = 20  # seconds for repeating one test
LEAST = 5  # seconds that must be left to begin a stage
KILLED = 20  # seconds for a killed process to end
THREADS = min(os.cpu_count() or 1, 12)  # tests at once: the host's reference takes most of their time
SLOWER = 4  # the emulator's limits are so many times as long: it computes on a processor that others use, too


class Check:
    def __init__(self, carry, out, seconds, emulated):
        self.carry, self.out = carry, out
        # Thresholds of the emulator must not reach the user's cache.
        self.env = {"HUSH_CUDA": "emulator:2", "XDG_CACHE_HOME": str(out / "cache")} if emulated else {}
        self.log = (out / "gpu-check.log").open("w+", errors="replace")
        self.deadline = time.monotonic() + seconds
        self.machine = "emulator" if emulated else gpu.machine()
        self.slower = SLOWER if emulated else 1
        self.watch = None if emulated else gpu.Watch()
        self.stages, self.rows, self.said = [], [], ""

    def run(self, name, command, limit, env=None, reserve=0):
        """Runs a stage with its output in the log, and returns whether it passed. Leaves `reserve` seconds for later stages. Writes the
        results so far."""
        left = min(limit * self.slower, self.left(reserve))
        self.said = ""
        start = time.monotonic()
        print(f"== {name}", flush=True)
        why = "no time left" if left < LEAST else self.execute(name, list(map(str, command)), left, env or {})
        seconds = time.monotonic() - start
        print(f"   {why or 'passed'}, {seconds:.1f} s", flush=True)
        seen = self.watch.since(start) if self.watch else {}
        self.stages.append({"stage": name, "passed": not why, "seconds": round(seconds, 1), "why": why, "gpu": seen})
        self.write()
        return not why

    def left(self, reserve):
        """Returns the seconds until only `reserve` seconds are left."""
        return self.deadline - reserve - time.monotonic()

    def execute(self, name, command, limit, env):
        """Runs a command in its own process group. Returns the reason of its failure, or nothing."""
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
            why = f"not done after {limit:.0f} s{killed(process)}"
        self.log.seek(begin)
        self.said = self.log.read()
        self.log.seek(0, os.SEEK_END)
        self.rows += list(objects(self.said, name))
        if why:
            print("\n".join(self.said.splitlines()[-25:]))
        return why

    def suite(self, name, limit, env, reserve):
        """Runs the tests of a binary, except those for the emulator's sanitizers, in one process. Then repeats each test that did not pass
        in its own process, because a fault on a GPU spoils all later tests of a process."""
        binary, options = self.carry / name, ["--include-ignored", "--skip", "small_", f"--test-threads={THREADS}"]
        if self.run(name, [binary, *options], limit, env, reserve):
            return
        passed = tests_that_passed(self.said)
        alone, end = {**env, "CUDA_LAUNCH_BLOCKING": "1"}, time.monotonic() + AGAIN
        for test in tests_of(binary):
            left = min(ONCE_MORE, end - time.monotonic(), self.left(reserve))
            if left > LEAST and test not in passed:
                self.run(f"{name}: {test}", [binary, "--exact", test, *options], left, alone, reserve)

    def write(self):
        """Writes all results to a JSON file."""
        summary = {"machine": self.machine, "stages": self.stages, "rows": self.rows}
        (self.out / "gpu-check.json").write_text(json.dumps(summary, indent=1) + "\n")

    def close(self):
        if self.watch:
            self.watch.end()
        self.log.close()


def killed(process):
    """Kills a process with its children: a remaining server would keep its device memory. Prints a message if the process does not end:
    one that waits in the driver cannot be killed, and the check goes on beside it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        process.wait(KILLED)
    except subprocess.TimeoutExpired:
        return ", nor to be killed: it waits in the driver"
    return ""


def tests_of(binary):
    """Returns the names of the tests of a binary."""
    try:
        listed = subprocess.run([binary, "--list", "--include-ignored"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line[: -len(": test")] for line in listed.stdout.splitlines() if line.endswith(": test")]


def tests_that_passed(text):
    """Returns the names of the tests that passed, by the log. Other tests failed, or were not reached."""
    return set(re.findall(r"^test (\S+)(?: - should panic)? \.\.\. ok$", text, re.MULTILINE))


def objects(text, stage):
    """Yields the JSON objects of a log, which has one on a line, each with the name of the stage."""
    for candidate in text.splitlines():
        if candidate.startswith("{"):
            with contextlib.suppress(json.JSONDecodeError):
                yield {"stage": stage, **json.loads(candidate)}
