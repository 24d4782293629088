"""Tests of a loss of power: after any operation of a command, of what was not synced anything may be left, in any order. Then the last whole
epoch is there, or the new one, and the same command succeeds. What a command that succeeded has done is there whatever is lost.
HUSHDB_FAULTS=all has a loss after every operation."""

import pathlib
import re
import unittest

from faults import SMALL, FaultTest
from keyed import values
from power_loss import Disk, losses, steps_of, write

# The losses of a command, beside those at its end, unless all are tried.
SOME = 6


def table_of(found, name="t"):
    """Returns the files of the table, or of its kept epochs."""
    return {path: content for path, content in found.items() if path == name or path.startswith(f"{name}/")}


class PowerLoss(FaultTest):
    def recorded(self, command, stdin, at=0, mode=""):
        """Runs a command that succeeds. Returns its operations, what losses of power leave, the table before and after, and the kept epochs."""
        disk, record = Disk(self.place), self.dir / "record"
        before = table_of(disk.left("all", "all", None)[0])
        done = self.run_with(command, at, mode, stdin, record)
        self.assertEqual(done.returncode, 0, done.stderr)
        steps = steps_of(record)
        after = Disk(self.place).left("all", "all", None)[0]
        return steps, list(losses(disk, steps)), [before, table_of(after)], table_of(after, ".t.epochs")

    def lose_anywhere(self, name, command, prepare, goal, stdin):
        table = self.place / "t"
        prepare()
        before = self.epoch(table)
        steps, all_losses, whole, epochs = self.recorded(command, stdin)
        # The files of the table tell at once; the program is asked about some, or all.
        is_tried = self.drawn(range(len(all_losses)), SOME)
        for number, (how, found, links, is_end) in enumerate(all_losses):
            with self.subTest(command=name, loss=how):
                self.assertIn(table_of(found), whole[1:] if is_end else whole)
                if is_end:
                    self.assertLessEqual(epochs.items(), table_of(found, ".t.epochs").items())
                if number in is_tried:
                    write(self.place, found, links)
                    epoch = self.epoch(table)
                    self.assertTrue(epoch == before or epoch[1] == goal, (epoch, before))
                    again = self.run_with(command + (["--force"] if epoch and name == "build" else []), 0, stdin=stdin)
                    # A command that has done its work before the loss has nothing to do.
                    if epoch == before or not re.search("no changes to fold|in place already", again.stderr):
                        self.assertEqual(again.returncode, 0, again.stderr)
                    self.assertEqual(self.epoch(table)[1], goal)
        print(f"{name}: {len(steps)} operations, {len(all_losses)} losses, {len(is_tried)} gone on from", end="; ", flush=True)

    def test_a_loss_of_power_leaves_a_whole_epoch(self):
        for command in self.commands():
            self.lose_anywhere(*command)

    def test_a_table_in_a_new_folder_stays(self):
        self.fresh()
        command = ["build", self.rows(300, "a"), "--key", "k", *SMALL, "--out", self.place / "new" / "folder" / "t"]
        _, all_losses, *_ = self.recorded(command, None)
        whole = table_of(Disk(self.place).left("all", "all", None)[0], "new/folder/t")
        for how, found, _, is_end in all_losses:
            if is_end:
                self.assertEqual(table_of(found, "new/folder/t"), whole, how)

    def test_what_a_build_left_is_cleared_whatever_it_is(self):
        # A loss of power may undo the removal of both.
        folder = self.place / ".t.hush-partial" / ".mode"
        folder.mkdir(parents=True)
        folder.parent.chmod(0o700)
        (folder.parent / "build.json").write_text("")
        built = self.hushdb("build", self.rows(300, "a"), "--key", "k", *SMALL, "--out", self.place / "t")
        self.assertEqual(built.returncode, 0, built.stderr)

    def test_a_sync_that_is_left_out_is_found(self):
        _, command, prepare, _, stdin = next(each for each in self.commands() if each[0] == "apply")
        prepare()
        steps, *_ = self.recorded(command, stdin)
        found = {}
        for kind, path, _, number, _ in steps:
            if kind == "sync":
                prepare()
                _, all_losses, whole, _ = self.recorded(command, stdin, number, "lies")
                is_damaged = any(table_of(left) not in (whole[1:] if is_end else whole) for _, left, _, is_end in all_losses)
                found[pathlib.Path(path).name] = is_damaged or found.get(pathlib.Path(path).name, False)
        needed = {"1.db.bin", "1.columns.bin", "1.chain.bin", "changes.bin", "header.json", ".t.hush-partial", "place"}
        self.assertEqual({name for name, is_damaged in found.items() if is_damaged}, needed, found)

    def test_a_client_forgets_few_look_ups_of_its_keys(self):
        records = values(40, 40)
        preset = "INSECURE_RING_N256"
        table = self.table(records, "onion", "--preset", preset)
        self.env["XDG_CACHE_HOME"] = str(self.place)
        with self.serve(table) as (url, _):
            look_up = ["get", url, "--allow-weak", preset]
            self.fresh()
            self.assertEqual(self.hushdb(*look_up, "k0").returncode, 0)
            disk, record = Disk(self.place), self.dir / "record"
            self.assertEqual(self.run_with([*look_up, *list(records)[:20]], 0, record=record).returncode, 0)
            (path,) = self.place.rglob("*.seed")
            kept, counts = path.read_bytes(), set()
            for how, found, _, is_end in losses(disk, steps_of(record)):
                left = found.get(str(path.relative_to(self.place)))
                # A record is shorter than a sector, and so whole or without bytes.
                if is_end and left and left[24:56] == kept[24:56]:
                    counts.add(int.from_bytes(left[16:20], "little"))
            self.assertTrue(counts and min(counts) >= 16, counts)

    def test_a_client_that_saw_a_publication_accepts_none_before(self):
        key = self.dir / "key"
        public = self.hushdb("keygen", key).stdout.strip()
        source = self.csv([["k", "value"]])
        sign = ["--key", "key", "--sign", key, "--sign-as", "table", "--serial"]
        tables = [self.build(source, *sign, serial, name=f"t{serial}") for serial in (7, 8)]
        self.env["XDG_CACHE_HOME"] = str(self.place)
        with self.serve(*tables) as (url, _):
            look_up = lambda serial: ["get", url, "--table", f"t{serial}", "k", "--trust", f"{public}=table"]
            self.fresh()
            disk, record = Disk(self.place), self.dir / "record"
            seen = self.run_with(look_up(8), 0, record=record)
            self.assertEqual(seen.returncode, 0, seen.stderr)
            for how, found, links, is_end in losses(disk, steps_of(record)):
                if not is_end:
                    continue
                with self.subTest(loss=how):
                    write(self.place, found, links)
                    self.assertIn("this client has seen 8", self.fails(*look_up(7)))
                    self.assertEqual(self.hushdb(*look_up(8)).returncode, 0)


if __name__ == "__main__":
    unittest.main()
