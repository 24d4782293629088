"""The commands that change a table, and their runs under `faults.c`, for tests of faults of the disk."""

import json
import os
import pathlib
import random
import shutil
import subprocess

from harness import BINARY
from keyed import KeyedTest

SMALL = ["--protocol", "colpack", "--preset", "INSECURE_COLPACK_N256", "--columns", 600, "--updatable", "--changes", 200]


class FaultTest(KeyedTest):
    """A test whose commands work in the folder `place`, of which operations fail, or are recorded."""

    @classmethod
    def setUpClass(cls):
        cls.faults = pathlib.Path(BINARY).parent / f"faults-{os.getpid()}"
        subprocess.run(["cc", "-O1", "-o", cls.faults, pathlib.Path(__file__).with_name("faults.c")], check=True)
        cls.addClassCleanup(cls.faults.unlink)

    def setUp(self):
        super().setUp()
        self.place = self.dir / "place"
        self.rng = random.Random(6)

    def rows(self, count, name):
        return self.csv([[f"k{i:04}", f"{name}{i:06}"] for i in range(count)], "k,v", f"{name}.csv")

    def drawn(self, numbers, few):
        """Returns the numbers to try: `few` of them, as many as HUSHDB_FAULTS says, or all."""
        count = os.environ.get("HUSHDB_FAULTS", few)
        return sorted(numbers if count == "all" else self.rng.sample(numbers, min(int(count), len(numbers))))

    def fault_env(self, at, mode="", record=None):
        env = {**self.env, "FAULT_DIR": str(self.place), "FAULT_AT": str(at), "FAULT_MODE": mode, "FAULT_COUNT": str(self.dir / "count")}
        return env | ({"FAULT_TRACE": str(record)} if record else {})

    def operations(self):
        """Returns the number of operations of the last command."""
        return int((self.dir / "count").read_text())

    def run_with(self, command, at, mode="", stdin=None, record=None):
        """Runs a command of which operation `at` fails."""
        command = [self.faults, BINARY, *map(str, command)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, input=stdin, env=self.fault_env(at, mode, record))

    def epoch(self, table):
        """Returns the epoch of the table, all of whose files have their checksums, or None if there is no table."""
        if not table.exists():
            return None
        done = self.hushdb("inspect", table, "--json", "--verify", "full")
        self.assertEqual(done.returncode, 0, done.stderr)
        facts = json.loads(done.stdout)
        return facts["epoch"], (facts["changes"] or {}).get("changes")

    def fresh(self):
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir()

    def kept(self, name):
        """Keeps the place as it is. Returns what puts it back."""
        kept = self.dir / name
        shutil.copytree(self.place, kept)

        def put_back():
            shutil.rmtree(self.place, ignore_errors=True)
            shutil.copytree(kept, self.place)
        return put_back

    def commands(self):
        """Yields every command that changes a table: its name, its arguments, what makes the place as it was before, the number of
        changes that the table has afterwards, and the command's input."""
        table = self.place / "t"
        first, second = self.rows(3000, "a"), self.rows(40, "b")
        build = ["build", first, "--key", "k", *SMALL, "--out", table]
        yield "build", build, self.fresh, 0, None
        self.fresh()
        self.assertEqual(self.hushdb(*build).returncode, 0)
        built = self.kept("built")
        yield "build --force", [*build, "--force"], built, 0, None
        apply = ["apply", table, second, "--key", "k", "--keep-epochs", 2]
        yield "apply", apply, built, 40, None
        lines = "".join(json.dumps({"op": "put", "k": f"k{i:04}", "v": f"c{i:06}"}) + "\n" for i in range(30))
        yield "follow", ["apply", table, "--follow", "-", "--key", "k"], built, 30, lines
        built()
        self.assertEqual(self.hushdb(*apply).returncode, 0)
        changed = self.kept("changed")
        yield "compact", ["compact", table], changed, 0, None
        before = next((self.dir / "changed" / ".t.epochs").iterdir()).name
        yield "rollback", ["rollback", table, "--to", before[:12]], changed, 0, None
