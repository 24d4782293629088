"""Runs the real binary: builds tables, serves them on loopback, looks records up."""

import contextlib
import json
import os
import pathlib
import re
import socket
import ssl
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

BINARY = pathlib.Path(os.environ.get("HUSHDB", pathlib.Path(__file__).resolve().parents[2] / "target/debug/hushdb"))
BENCH = BINARY.with_name("hush-bench")


class HushTest(unittest.TestCase):
    """A test with a scratch folder and the binary."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="hushdb-e2e-")
        self.addCleanup(scratch.cleanup)
        self.dir = pathlib.Path(scratch.name)
        self.env = {"PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(self.dir / "cache"),
                    "XDG_STATE_HOME": str(self.dir / "state")}
        for name in ("HUSH_CPU", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING"):
            if name in os.environ:
                self.env[name] = os.environ[name]

    def hushdb(self, *args, **kwargs):
        """Runs a command to its end, with text as input and output."""
        kwargs.setdefault("timeout", 120)
        kwargs.setdefault("env", self.env)
        command = [BINARY, *map(str, args)]
        return subprocess.run(command, capture_output=True, text=kwargs.pop("text", True), **kwargs)

    def build(self, source, *args, name="table"):
        """Builds a table, which must succeed, and returns its folder."""
        out = self.dir / name
        result = self.hushdb("build", source, "--out", out, *args)
        self.assertEqual(result.returncode, 0, result.stderr)
        return out

    def fails(self, *args, **kwargs):
        """Runs a command that must fail with exactly one clear line, and returns the line."""
        result = self.hushdb(*args, **kwargs)
        self.assertEqual(result.returncode, 2, (result.stdout, result.stderr))
        errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
        self.assertEqual(len(errors), 1, result.stderr)
        self.assertNotIn("panicked", result.stderr)
        return errors[0]

    @contextlib.contextmanager
    def serve(self, *dirs, args=(), listen="127.0.0.1:0", env=None, health=None, log=None, within=()):
        """Serves tables, and yields (url, process) once they are ready. `health` is the address of the health checks, if it differs from
        the server's. `log` is a file for the server's output. `within` is a command that becomes the one behind it."""
        command = [*within, BINARY, "serve", *map(str, dirs), "--listen", listen, *map(str, args)]
        with open(log, "w") if log else contextlib.nullcontext(subprocess.PIPE) as said:
            process = subprocess.Popen(command, stderr=said, text=True, env=env or self.env)
        try:
            if log:
                self.wait_for("the server's first line", lambda: process.poll() is not None or "\n" in log.read_text())
                line = log.read_text().split("\n")[0]
            else:
                line = process.stderr.readline()
            self.assertRegex(line, "listening on https?://")
            url = re.search(r"https?://[^ ]+", line)[0]
            wait_ready(health or url, process)
            yield url, process
        finally:
            process.terminate()
            try:
                process.communicate(timeout=40)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                raise

    def get(self, url, *args):
        """Looks records up with --json, and returns (exit code, answers)."""
        result = self.hushdb("get", url, "--json", *args)
        self.assertIn(result.returncode, (0, 1), result.stderr)
        return result.returncode, [json.loads(line) for line in result.stdout.splitlines()]

    def wait_for(self, what, until, seconds=30):
        """Waits until `until` returns true. The failure names `what`."""
        deadline = time.time() + seconds
        while not until():
            self.assertLess(time.time(), deadline, what)
            time.sleep(0.02)

    def csv(self, rows, header="key,value", name="table.csv"):
        """Writes a CSV file of rows that need no quotes, and returns its path."""
        path = self.dir / name
        path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
        return path


def wait_ready(url, process):
    for _ in range(400):
        if process.poll() is not None:
            raise AssertionError("the server stopped: " + (process.stderr.read() if process.stderr else "its log says why"))
        try:
            if request(url + "/readyz")[0] == 200:
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise AssertionError("the server did not become ready")


def request(url, body=None, headers=None, timeout=30, method=None):
    """Sends an HTTP request, with a body as a POST unless `method` is set. Returns (status, headers, body), also for errors."""
    req = urllib.request.Request(url, data=body, headers=headers or {}, method=method)
    try:
        # Tests of TLS check the certificate themselves.
        with urllib.request.urlopen(req, timeout=timeout, context=ssl._create_unverified_context()) as response:
            return response.status, response.headers, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
