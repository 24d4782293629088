"""Runs stages one after another while there is time, and keeps what they say: a log and a JSON file."""

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
BUDGET = 570  # seconds for all of it
AGAIN = 60  # seconds for tests that did not pass, each by itself
ONCE_MORE = 20  # of these, for one test
LEAST = 5  # nothing begins with less
KILLED = 20  # seconds for a process to end that was killed
THREADS = min(os.cpu_count() or 1, 12)  # tests at once: most of their time goes by on the host, for the reference


class Check:
    def __init__(self, carry, out, seconds, emulated):
        self.carry, self.out = carry, out
        # What an emulator finds of thresholds is not kept.
        self.env = {"HUSH_CUDA": "emulator", "XDG_CACHE_HOME": str(out / "cache")} if emulated else {}
        self.log = (out / "gpu-check.log").open("w+", errors="replace")
        self.deadline = time.monotonic() + seconds
        self.machine = "emulator" if emulated else gpu.machine()
        self.watch = None if emulated else gpu.Watch()
        self.stages, self.rows, self.said = [], [], ""

    def run(self, name, command, limit, env=None, reserve=0):
        """Runs a stage, whose output goes to the log; returns whether it passed. `reserve` seconds are left for what comes after.
        What is known by then is written."""
        left = min(limit, self.left(reserve))
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
            why = f"not done after {limit:.0f} s{killed(process)}"
        self.log.seek(begin)
        self.said = self.log.read()
        self.log.seek(0, os.SEEK_END)
        self.rows += list(objects(self.said, name))
        if why:
            print("\n".join(self.said.splitlines()[-25:]))
        return why

    def suite(self, name, limit, env, reserve):
        """The tests of a binary, but for those that are for the emulator's sanitizers: all in one process; then those that did not pass, each in its own, since one fault spoils all that
        follow."""
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
        """Everything as JSON, one file."""
        summary = {"machine": self.machine, "stages": self.stages, "rows": self.rows}
        (self.out / "gpu-check.json").write_text(json.dumps(summary, indent=1) + "\n")

    def close(self):
        if self.watch:
            self.watch.end()
        self.log.close()


def killed(process):
    """Kills a process with its children: a server that is left would keep its part of the device's memory. Says so if it does not end:
    one that waits in the driver cannot be killed, and the rest of the check goes on beside it."""
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
    """Returns the names of the tests that a log says are ok; others failed, or were not reached."""
    return set(re.findall(r"^test (\S+)(?: - should panic)? \.\.\. ok$", text, re.MULTILINE))


def objects(text, stage):
    """Yields the JSON objects of a log, one a line."""
    for candidate in text.splitlines():
        if candidate.startswith("{"):
            with contextlib.suppress(json.JSONDecodeError):
                yield {"stage": stage, **json.loads(candidate)}
