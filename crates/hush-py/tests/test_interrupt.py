"""Tests of Ctrl-C, and of programs that end with an open server."""

import os
import signal
import subprocess
import sys
import time

INTERRUPTED = """
import hushdb, polars, sys
rows = 3_000_000
frame = polars.DataFrame({"key": [str(i) for i in range(rows)], "value": ["x" * 40] * rows})
print("begun", flush=True)
try:
    hushdb.build(frame, out=sys.argv[1], key="key", protocol="colpack")
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""

LEFT_OPEN = """
import hushdb, polars, sys
frame = polars.DataFrame({"key": ["a"], "value": ["b"]})
hushdb.build(frame, out=sys.argv[1], key="key", protocol="frodo")
server = hushdb.serve(sys.argv[1])
print(server.connect().table().get("a").decode(), flush=True)
"""


def run(program, *args):
    return subprocess.Popen([sys.executable, "-c", program, *map(str, args)], stdout=subprocess.PIPE, text=True, env=os.environ)


def test_a_build_ends_on_ctrl_c_and_leaves_no_table(tmp_path):
    with run(INTERRUPTED, tmp_path / "table") as process:
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.5)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert time.monotonic() - began < 2
        assert process.wait(30) == 0
    assert not (tmp_path / "table").exists()


def test_a_program_ends_although_a_server_is_open(tmp_path):
    with run(LEFT_OPEN, tmp_path / "table") as process:
        assert process.stdout.readline() == "b\n"
        assert process.wait(10) == 0
