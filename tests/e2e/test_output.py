"""Tests of output that cannot be written: the pipe is closed, or the disk is full."""

import contextlib
import os
import subprocess

from harness import BINARY, free_port, wait_ready
from keyed import values
from test_changes import COLPACK
from test_admin import AdminTest as _AdminTest


@contextlib.contextmanager
def unread():
    """Yields the write end of a pipe whose read end is closed."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        yield writer
    finally:
        os.close(writer)


@contextlib.contextmanager
def full():
    """Yields a file on a disk that is full."""
    with open("/dev/full", "wb") as file:
        yield file


class OutputTest(_AdminTest):
    def run_with(self, *args, **streams):
        command = [BINARY, *map(str, args)]
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
        return subprocess.run(command, env=self.env, timeout=120, stdin=subprocess.DEVNULL, **streams)

    def test_a_server_whose_log_fails_takes_changes_up(self):
        records = values(500, 40)
        for name, log in (("unread", unread), ("full", full)):
            with self.subTest(name), log() as stderr:
                table = self.table(records, "colpack", *COLPACK, name=name)
                listen = f"127.0.0.1:{free_port()}"
                command = [BINARY, "serve", table, "--listen", listen, "--watch", "--compact-at", "1"]
                # The log prints everything too.
                env = {**self.env, "RUST_LOG": "debug"}
                server = subprocess.Popen([*map(str, command)], stderr=stderr, env=env)
                try:
                    url = f"http://{listen}"
                    wait_ready(url, server)
                    for word in ("once", "twice"):
                        # The server compacts the changes to a new base, and loads it.
                        changes = self.jsonl({f"k{i}": word for i in range(9)}, "changes.jsonl")
                        apply = ["apply", table, changes, "--key", "k", "--value", "v"]
                        # A new base is in place a moment before the folder is unlocked.
                        self.wait_for("the folder", lambda: self.hushdb(*apply).returncode == 0)
                        self.wait_for("what was applied", lambda: self.ask(url, "k1")[0] == [word])
                        self.wait_for("a new base", lambda: self.facts(table)["changes"]["changes"] == 0)
                    self.assertIsNone(server.poll())
                finally:
                    server.terminate()
                    self.assertEqual(server.wait(timeout=40), 0)

    def test_work_goes_on_although_its_progress_is_not_read(self):
        records = self.jsonl(values(500, 40))
        changes = self.jsonl({"k1": "changed"}, "changes.jsonl")
        for name, log in (("unread", unread), ("full", full)):
            with self.subTest(name), log() as stderr:
                out = self.dir / name
                built = self.run_with(
                    "build", records, "--key", "k", "--value", "v", "--protocol", "colpack", *COLPACK, "--out", out, stderr=stderr)
                applied = self.run_with("apply", out, changes, "--key", "k", "--value", "v", stderr=stderr)
                compacted = self.run_with("compact", out, stderr=stderr)
                self.assertEqual([done.returncode for done in (built, applied, compacted)], [0, 0, 0])
                with self.serve(out) as (url, _):
                    shown = ["get", url, "--allow-weak", self.facts(out)["preset"], "--stats", "k1"]
                    self.assertEqual(self.run_with(*shown, stderr=stderr).stdout, b"changed")
                    self.assertEqual(self.run_with(*shown, "absent", stderr=stderr).returncode, 1)

    def test_commands_that_print(self):
        records = self.jsonl(values(50, 30))
        table = self.build(records, "--key", "k", "--value", "v", "--protocol", "simple")
        settings, tokens, gateway = (self.dir / name for name in ("c.toml", "tokens.json", "gateway.json"))
        settings.write_text(f'tables = ["{table}"]\nlisten = "127.0.0.1:0"\n')
        self.assertEqual(self.hushdb("token", "create", "--tokens", tokens, "--name", "one").returncode, 0)
        self.assertEqual(self.hushdb("gateway-key", "rotate", "--keys", gateway).returncode, 0)
        with self.server(table) as (url, _):
            self.admin("build", "kept", records, "--key", "k", "--value", "v", "--protocol", "simple")
            admin = ["--url", self.admin_url]
            commands = [
                ["inspect", table], ["inspect", table, "--json"], ["presets"], ["presets", "--json"], ["doctor"], ["doctor", "--json"],
                ["plan", "--backend", "cuda", "--records", "1000", "--size", "1"],
                ["plan", "--backend", "cuda", "--records", "1000", "--size", "1", "--all", "--json"],
                ["config", "check", settings], ["token", "list", "--tokens", tokens],
                ["token", "create", "--tokens", tokens, "--name", "two"], ["gateway-key", "list", "--keys", gateway],
                ["get", url, "--table", "table", "k1"], ["get", url, "--table", "table", "k1", "k2"],
                ["get", url, "--table", "table", "--json", "--stats", "k1", "k2"],
                ["admin", *admin, "tables"], ["admin", *admin, "tables", "--json"], ["admin", *admin, "tasks"],
                ["admin", *admin, "task", "1"], ["admin", *admin, "compact", "kept", "--detach"], ["--help"], ["--version"],
            ]
            commands += [["keygen", self.dir / name] for name in ("unread", "full")]
            for command in commands:
                with self.subTest(command=[str(arg) for arg in command]), unread() as stdout:
                    if command[-1] != self.dir / "full":
                        result = self.run_with(*command, stdout=stdout)
                        self.assertEqual((result.returncode, b"panicked" in result.stderr), (0, False), result.stderr)
                    # clap itself prints help and version.
                    if command[0].startswith("--") or command[-1] == self.dir / "unread":
                        continue
                    with full() as disk:
                        result = self.run_with(*command, stdout=disk)
                    self.assertEqual(result.returncode, 2, result.stderr)
                    self.assertIn(b"error: cannot write the output: No space left on device", result.stderr)
