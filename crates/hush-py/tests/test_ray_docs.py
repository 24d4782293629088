"""Runs the commands of docs/how-to/cluster.md for several machines, with other addresses, folders and sizes. Also runs commands without a
cluster."""

import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import uuid

import pytest

import hushdb
import ray  # noqa: F401: without it there is nothing to test

PAGE = pathlib.Path(__file__).parents[3] / "docs/how-to/cluster.md"
COUNT = 100
LISTENING = re.compile(r"listening on (http://\S+)")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def commands():
    """Returns the commands of the page's block that has the token."""
    block = re.search(r"(?:^    .*\n)*^    export RAY_AUTH_MODE.*\n(?:^    .*\n)*", PAGE.read_text(), re.MULTILINE)
    return [line.partition("#")[0].strip() for line in block[0].splitlines()]


class Machine:
    """A machine, whose processes have a mark in their environment: Ray's processes do not end with the command that starts them."""

    def __init__(self, home):
        programs = pathlib.Path(sys.executable).parent
        self.mark = f"HUSHDB_TEST={uuid.uuid4()}"
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        self.env.update([self.mark.split("=")], HOME=str(home), PATH=f"{programs}:{os.environ['PATH']}")

    def run(self, command, seconds=90):
        done = subprocess.run(shlex.split(command), env=self.env, capture_output=True, text=True, timeout=seconds)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def serve(self, command, log):
        """Starts a server, and returns its URL."""
        with log.open("w") as file:
            process = subprocess.Popen(shlex.split(command), env=self.env, stdout=file, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 120
        while not (found := LISTENING.search(log.read_text())):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        return found[1]

    def end(self):
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                    os.kill(int(folder.name), signal.SIGKILL)
            except (OSError, ProcessLookupError):
                pass  # the process has ended, or belongs to another user


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are found in /proc")
def test_the_commands_of_the_page(tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("key,value\n" + "".join(f"k{i},value {i}\n" for i in range(COUNT)))
    hushdb.build(rows, out=tmp_path / "people", key="key", protocol="colpack")
    machine, ray_port = Machine(tmp_path), free_port()
    tokens = tmp_path / "tokens.json"
    token = machine.run(f"hushdb token create --tokens {tokens} --name test").split()[-1]
    urls, seen = [], []
    try:
        for command in commands():
            for theirs, ours in (
                ("FIRST:6379", f"127.0.0.1:{ray_port}"), ("--port 6379", f"--port {ray_port} --num-cpus 2 --include-dashboard false"),
                ("/srv/people", str(tmp_path / "people")), ("tokens=tokens.json", f"tokens={tokens}"),
                ("0.0.0.0:7700", "127.0.0.1:0"), ("--parts 8 --replicas 2", "--parts 2 --cpus 0.5"), ("python ", f"{sys.executable} "),
            ):
                command = command.replace(theirs, ours)
            if command.startswith("export "):
                name, _, value = command.removeprefix("export ").partition("=")
                machine.env[name] = value
            elif "s3://" in command:
                continue  # test_ray_elsewhere has tables of a web server
            elif " serve " in command or " head " in command:
                urls.append(machine.serve(command, tmp_path / f"server-{len(urls)}"))
                assert hushdb.connect(urls[-1], token=token).table().get("k5") == b"value 5"
            else:
                seen.append(machine.run(command))
        assert len(urls) == 2
        status, stopped = seen[-2:]
        assert status.startswith("people: 2 parts, ") and all(url.removeprefix("http://") in status for url in urls), status
        assert stopped == "people: 2 parts ended\n"
    finally:
        machine.end()


def test_where_there_is_no_cluster(tmp_path):
    """Checks that the error comes soon, and is one line that says what to do."""
    port, start = free_port(), time.monotonic()
    for command in ("status", "stop people", "head people"):
        done = subprocess.run([sys.executable, "-m", "hushdb.ray", *command.split(), "--address", f"127.0.0.1:{port}"], capture_output=True, text=True)
        [line] = done.stderr.splitlines()
        assert done.returncode == 2 and line.startswith(f"error: there is no cluster at 127.0.0.1:{port}: start one with"), line
    assert time.monotonic() - start < 60
