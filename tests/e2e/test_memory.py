"""Tests of memory and files that run out: what cannot be answered is refused with a reason, all else goes on, and nothing ends."""

import pathlib
import resource
import socket
import subprocess

from harness import BINARY, request
from keyed import KeyedTest, weak

# Allocations that are refused: none of the small table's is as long.
LEAST = 128 << 10


class MemoryTest(KeyedTest):
    @classmethod
    def setUpClass(cls):
        source = pathlib.Path(__file__).with_name("memory.c")
        cls.library = pathlib.Path(BINARY).parent / "memory.so"
        subprocess.run(["cc", "-O1", "-fno-builtin", "-shared", "-fPIC", "-o", cls.library, source], check=True)

    def setUp(self):
        super().setUp()
        self.gone = self.dir / "no-memory"
        self.small_env = {**self.env, "LD_PRELOAD": str(self.library), "MEMORY_FILE": str(self.gone), "MEMORY_BYTES": str(LEAST)}
        small = {f"k{i}": f"small {i}" for i in range(20)}
        large = {f"k{i}": f"large {i}" * 4 for i in range(40_000)}
        self.small = self.table(small, "colpack", "--preset", "INSECURE_COLPACK_N256", name="small")
        self.large = self.table(large, "colpack", name="large")

    def value(self, url, table):
        return self.ask(url, "k7", "--table", table)[0]

    def test_a_scan_without_memory_is_refused_and_other_tables_answer(self):
        with self.serve(self.small, self.large, env=self.small_env) as (url, process):
            both = self.value(url, "small"), self.value(url, "large")
            self.gone.touch()
            args = ["--table", "large"]
            for _ in range(2):
                error = self.fails("get", url, "k7", *args, *weak(url, args))
                self.assertIn("there is no memory for", error)
            self.assertEqual(self.value(url, "small"), both[0])
            self.assertEqual(request(url + "/readyz")[0], 200)
            self.gone.unlink()
            self.assertEqual(self.value(url, "large"), both[1])
            self.assertIsNone(process.poll())

    def test_files_run_out(self):
        with self.serve(self.small, self.large) as (url, process):
            both = self.value(url, "small"), self.value(url, "large")
            soft, hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
            used = len(list(pathlib.Path(f"/proc/{process.pid}/fd").iterdir()))
            resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (used + 4, hard))
            host, port = url.removeprefix("http://").split(":")
            idle = [socket.create_connection((host, int(port))) for _ in range(20)]
            # Idle connections make room, so that whoever asks is answered.
            self.assertEqual((self.value(url, "small"), self.value(url, "large")), both)
            resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (soft, hard))
            for connection in idle:
                connection.close()
            self.assertEqual((self.value(url, "small"), self.value(url, "large")), both)
            self.assertIsNone(process.poll())
