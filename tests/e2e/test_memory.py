"""Tests of memory and files that run out: what cannot be answered is refused with a reason, all else goes on, and nothing ends."""

import os
import pathlib
import resource
import socket
import subprocess

from harness import BINARY, request
from keyed import KeyedTest, weak

# The length of allocations that are refused. None of the small table's is as long; a scan of one query of the large table is longer.
LEAST = 128 << 10
# A scan of one query is shorter, and one of all of these queries is longer.
LEAST_OF_SOME, SOME = 1 << 20, 32
# A scan of so many queries takes more memory than a container has left, and one of a quarter of them less.
IN_CONTAINER, LEFT = 8, 400 << 20


class MemoryTest(KeyedTest):
    @classmethod
    def setUpClass(cls):
        source = pathlib.Path(__file__).with_name("memory.c")
        cls.library = pathlib.Path(BINARY).parent / "memory.so"
        subprocess.run(["cc", "-O1", "-fno-builtin", "-shared", "-fPIC", "-o", cls.library, source], check=True)

    def setUp(self):
        super().setUp()
        self.gone = self.dir / "no-memory"
        small = {f"k{i}": f"small {i}" for i in range(20)}
        large = {f"k{i}": f"large {i}" * 4 for i in range(40_000)}
        self.small = self.table(small, "colpack", "--preset", "INSECURE_COLPACK_N256", name="small")
        self.large = self.table(large, "colpack", name="large")

    def short_of(self, least):
        """Returns the environment of a server whose allocations of `least` bytes and more fail while the file `gone` is there."""
        return {**self.env, "LD_PRELOAD": str(self.library), "MEMORY_FILE": str(self.gone), "MEMORY_BYTES": str(least)}

    def value(self, url, table):
        return self.ask(url, "k7", "--table", table)[0]

    def test_a_scan_without_memory_is_refused_and_other_tables_answer(self):
        with self.serve(self.small, self.large, env=self.short_of(LEAST)) as (url, process):
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

    def test_queries_are_scanned_some_by_some_where_memory_is_short(self):
        with self.serve(self.large, env=self.short_of(LEAST_OF_SOME)) as (url, process):
            keys = [f"k{i}" for i in range(SOME)]
            values = [f"large {i}" * 4 for i in range(SOME)]
            self.assertEqual(self.ask(url, *keys)[0], values)  # each thread has its workspace from here on
            self.gone.touch()
            self.assertEqual(self.ask(url, *keys)[0], values)
            self.assertIsNone(process.poll())

    def test_a_container_with_little_memory_answers_some_by_some(self):
        group = pathlib.Path(f"/sys/fs/cgroup/memory/hushdb-{os.getpid()}")
        try:
            group.mkdir()
        except OSError as error:
            self.skipTest(f"no control group can be made here: {error}")
        self.addCleanup(group.rmdir)
        # The server then sees the group's limit where a program in a container sees its own.
        enter = f'echo $$ >{group}/cgroup.procs && mount --bind {group} /sys/fs/cgroup/memory && exec "$@"'
        table = self.table({f"k{i}": f"value {i}" for i in range(5000)}, "hybrid")
        with self.serve(table, within=["unshare", "--mount", "sh", "-c", enter, "sh"]) as (url, process):
            keys = [f"k{i}" for i in range(IN_CONTAINER)]
            self.ask(url, keys[0])
            used = int((group / "memory.usage_in_bytes").read_text())
            (group / "memory.limit_in_bytes").write_text(str(used + LEFT))
            self.assertEqual(self.ask(url, *keys)[0], [f"value {i}" for i in range(IN_CONTAINER)])
            self.assertIsNone(process.poll())
            most = int((group / "memory.max_usage_in_bytes").read_text()) - used
            self.assertLess(most, LEFT)

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
