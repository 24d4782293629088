"""Tests of changing tables: changes to a running server's table, and clients of any epoch."""

import json
import random
import signal
import subprocess
import threading
import time
import unittest

from harness import BINARY, free_port, request
from keyed import KeyedTest
from proxy import Proxy

COUNT = 3000
SMALL = "INSECURE_COLPACK_N256"
COLPACK = ["--preset", SMALL, "--columns", 600, "--updatable", "--changes", 200]


def value(i, epoch=0):
    """Returns the value of key `i` in an epoch: mostly up to 40 bytes, one in twenty up to 300."""
    length = 40 + i % 260 if i % 20 == 0 else i % 40
    return f"{epoch:02}:" + "".join(chr(97 + (i * 31 + at * at) % 26) for at in range(length))


RECORDS = {f"k{i}": value(i) for i in range(COUNT)}


class ChangeTest(KeyedTest):
    def updatable(self, *args, records=RECORDS, protocol="colpack", by="key", name="table", options=COLPACK):
        return self.table(records, protocol, *options, *args, by=by, name=name)

    def changes(self, records, name="changes.jsonl"):
        return self.jsonl(records, name)

    def apply(self, table, *args):
        result = self.hushdb("apply", table, *args)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr

    def epoch(self, url, table):
        return json.loads(request(f"{url}/v1/tables/{table.name}")[2])["epoch"]

    def taken_up(self, url, table):
        """Waits until the server has loaded the epoch in the folder."""
        epoch = self.facts(table)["epoch"]
        self.wait_for("the epoch was not taken up", lambda: self.epoch(url, table) == epoch)

    def test_lists_of_many_values_change_as_a_whole(self):
        rows = [[f"k{i}", i, f"v{at}"] for at in range(3) for i in range(COUNT) if i % (at + 1) == 0]
        source = self.csv(rows, "k,number,name")
        self.assertIn("or a list of them with --on-duplicate all", self.fails("build", source, "--key", "k", "--out", self.dir / "no"))
        table = self.build(source, "--key", "k", "--on-duplicate", "all", *COLPACK)
        single = self.build(source, "--key", "k", "--value", "name", "--on-duplicate", "all", *COLPACK, name="single")
        changes = self.csv([["k6", 1, "x"], ["n1", 7, "y"], ["k6", 2, "z"]], "k,number,name", "c.csv")
        self.apply(table, changes, "--key", "k")
        self.apply(single, changes, "--key", "k", "--value", "name")
        long = self.csv([["k6", at, "x" * 9] for at in range(9)], "k,number,name", "long.csv")
        self.assertIn("--longest", self.fails("apply", single, long, "--key", "k", "--value", "name"))
        self.assertIn("more than 15 bytes together", self.fails("build", source, "--key", "k", "--value", "name", "--on-duplicate", "all",
                                                                "--max-value-size", 15, "--out", self.dir / "no"))
        keys = ["k6", "k12", "k7", "n1", "absent"]
        expected = [[[1, "x"], [2, "z"]], [[12, "v0"], [12, "v1"], [12, "v2"]], [[7, "v0"]], [[7, "y"]]]
        with self.serve(table, single) as (url, _):
            found, _ = self.ask(url, "--table", table.name, *keys)
            self.assertEqual([value and json.loads(value) for value in found],
                             [[{"number": str(number), "name": name} for number, name in list] for list in expected] + [None])
            found, _ = self.ask(url, "--table", "single", *keys)
            self.assertEqual([value and json.loads(value) for value in found],
                             [[name for _, name in list] for list in expected] + [None])

    def test_changes_from_files_of_all_kinds(self):
        rows = [[f"k{i}", i, f"name {i}"] for i in range(COUNT)]
        table = self.build(self.csv(rows, "k,number,name"), "--key", "k", *COLPACK)
        expected = {key: {"number": number, "name": name} for key, number, name in rows}

        def look_up(keys):
            with self.serve(table) as (url, _):
                found, _ = self.ask(url, *keys)
                read = [value and json.loads(value) for value in found]
                for row in filter(None, read):
                    row["number"] = int(row["number"])
                self.assertEqual(read, [expected.get(key) for key in keys])

        # A file of changes may have its columns in another order.
        self.apply(table, self.csv([["other", "k1", 7], ["new", "n1", 8]], "name,k,number", "c.csv"), "--key", "k")
        expected |= {"k1": {"number": 7, "name": "other"}, "n1": {"number": 8, "name": "new"}}
        lines = [{"k": "k2", "number": 9, "name": "j"}, {"k": "k3", "name": "k", "number": 1}]
        path = self.dir / "c.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        more = self.csv([["k2", 1, "n", "x"]], "k,number,name,other", "more.csv")
        line = self.fails("apply", table, more, "--key", "k")
        self.assertIn("values of the columns number, name, and the changes have values of the columns number, name, other", line)
        (self.dir / "gone.txt").write_text("\ufeffk4\r\nn1\n\nk5\n")
        told = self.apply(table, path, "--key", "k", "--delete", self.dir / "gone.txt")
        self.assertIn("5 of 200 changes since the base was made, 2 of them deletions", told)
        expected |= {line["k"]: {"number": line["number"], "name": line["name"]} for line in lines}
        for key in ("k4", "k5", "n1"):
            del expected[key]
        self.apply(table, "--key", "k", "--delete", self.csv([["k6", "x"]], "k,whatever", "gone.csv"))
        del expected["k6"]
        # Columns may be named in another order than the table's.
        self.apply(table, self.csv([["k7", 3, "n"]], "k,number,name", "order.csv"), "--key", "k", "--value", "name", "--value", "number")
        expected["k7"] = {"number": 3, "name": "n"}
        # A deleted record can be added again.
        self.apply(table, self.csv([["k4", 1, "back"]], "k,number,name", "back.csv"), "--key", "k")
        expected["k4"] = {"number": 1, "name": "back"}
        look_up(["k1", "n1", "k2", "k3", "k4", "k5", "k6", "k7", "absent"])
        facts = self.facts(table)
        self.assertEqual(facts["changes"], {"changes": 7, "deleted": 2, "room": 200})
        self.assertEqual([segment["role"] for segment in facts["segments"]][-1], "delta")
        self.assertIn("7 of 200, 2 of them deletions", self.hushdb("inspect", table).stdout)
        told = self.hushdb("compact", table).stderr
        self.assertIn("0 of 200 changes since the base was made", told)
        self.assertEqual(self.facts(table)["records"], COUNT - 2)
        look_up(["k1", "n1", "k2", "k3", "k4", "k5", "k6", "k7", "absent"])

    def test_positions_change(self):
        records = {str(i): value for i, value in enumerate(RECORDS.values())}
        table = self.updatable(records=records, by="index")
        changed = self.csv([[3, "three"], [COUNT - 1, "last"]], "position,v")
        (self.dir / "gone.txt").write_text("5\n")
        self.apply(table, changed, "--key", "position", "--delete", self.dir / "gone.txt")
        expected = records | {"3": "three", str(COUNT - 1): "last", "5": None}
        for step in ("applied", "compacted"):
            with self.subTest(step), self.serve(table) as (url, _):
                asked = ["3", "4", "5", str(COUNT - 1)]
                found, _ = self.ask(url, "--index", *asked)
                self.assertEqual(found, [expected[key] for key in asked])
            self.hushdb("compact", table)
        for position in (COUNT, "x"):
            line = self.fails("apply", table, self.csv([[position, "v"]], "p,v", "bad.csv"), "--key", "p")
            self.assertIn(f"'{position}' is not a position of this table, which has records 0 to {COUNT - 1}", line)
        # Joined columns are not a position.
        (self.dir / "joined.txt").write_text("1\x1f2\n")
        line = self.fails("apply", table, "--delete", self.dir / "joined.txt")
        self.assertIn("is not a position of this table", line)

    def test_bad_input_changes_nothing(self):
        table = self.updatable("--max-tiers", 1)
        self.apply(table, self.changes({"n1": "v"}), "--key", "k")
        epoch = self.facts(table)["epoch"]
        longest = self.facts(table)["max_value_bytes"]
        gone = self.dir / "gone.txt"
        twice = self.csv([["a", 1], ["a", 2]], "k,v", "twice.csv")
        cases = [
            ([table], None, "there is nothing to change"),
            ([table, self.changes({"a": "v"}, "nokey.jsonl")], None, "name its column, or that of the position, with --key"),
            ([table, twice, "--key", "k"], None, "rows 1 and 2"),
            ([table, self.csv([["a", 1, 2]], "k,v,w", "more.csv"), "--key", "k"], None, "the changes have values of the columns v, w"),
            ([table, self.csv([["a"]], "k", "none.csv"), "--key", "k"], None, "the changes have values of the columns (none)"),
            ([table, self.csv([["a", 1]], "k,w", "other.csv"), "--key", "k"], None, "the changes have values of the columns w"),
            ([table, self.csv([["a", 1]], "x,v", "key.csv"), "--key", "x"], None, "the changes have keys of the columns x"),
            ([table, self.changes({"a": "v" * (longest + 1)}, "long.jsonl"), "--key", "k"], None, f"'hushdb compact --longest {longest + 1}'"),
            ([table, self.changes({f"a{i}": "v" for i in range(200)}, "full.jsonl"), "--key", "k"], None, "'hushdb compact'"),
            ([table, "--key", "k", "--delete", gone], "absent\n", "there is no record of the key 'absent'"),
            ([table, "--key", "k", "--delete", gone], "k1\nk1\n", "the key 'k1' is to be deleted twice"),
            ([table, self.changes({"k1": "v"}, "one.jsonl"), "--key", "k", "--delete", gone], "k1\n", "to be changed and to be deleted"),
            ([self.dir / "none", "--delete", gone], "k1\n", "is not a hushdb snapshot"),
            ([table, "--key", "k", "--delete", self.dir / "no.txt"], None, "cannot be read"),
        ]
        for args, deleted, words in cases:
            with self.subTest(words):
                gone.write_text(deleted or "")
                self.assertIn(words, self.fails("apply", *args))
        self.apply(table, twice, "--key", "k", "--on-duplicate", "last")
        self.assertNotEqual(self.facts(table)["epoch"], epoch)
        self.assertFalse((self.dir / ".table.hush-partial").exists())
        fixed = self.table(RECORDS, "simple", name="fixed")
        self.assertIn("build it again with --updatable", self.fails("apply", fixed, "--delete", gone))
        self.assertIn("build it again with --updatable", self.fails("compact", fixed))
        self.assertIn("no changes to fold", self.fails("compact", self.updatable(name="new")))

    def test_bad_rows_of_changes_are_left_out(self):
        table, bad = self.updatable(), self.dir / "bad.jsonl"
        changes = self.dir / "changes.csv"
        changes.write_text("k,v\na,b,c\nn1,new\nn2\n")
        self.assertIn("3 fields", self.fails("apply", table, changes, "--key", "k"))
        told = self.apply(table, changes, "--key", "k", "--skip-bad-rows", bad)
        self.assertIn(f"read 3 rows: 1 records; 2 bad rows were left out, and are in {bad}", told)
        self.assertIn("1 of 200 changes", told)
        self.assertEqual([json.loads(line)["row"] for line in bad.read_text().splitlines()], [1, 3])
        # A key to delete that cannot be read is never skipped.
        line = self.fails("apply", table, "--delete", changes, "--key", "k", "--skip-bad-rows", bad)
        self.assertIn("3 fields", line)

    def test_signed_tables_stay_signed(self):
        key = self.dir / "key"
        publisher = self.hushdb("keygen", key).stdout.strip()
        table = self.updatable("--sign", key)
        changes = self.changes({"k1": "changed"})
        self.assertIn("sign the new epoch too (--sign)", self.fails("apply", table, changes, "--key", "k"))
        published = [self.facts(table)]
        for command in (("apply", table, changes, "--key", "k"), ("compact", table)):
            result = self.hushdb(*command, "--sign", key)
            self.assertEqual(result.returncode, 0, result.stderr)
            published.append(self.facts(table))
        self.assertEqual({facts["signed_name"] for facts in published}, {table.name})
        # Serials rise even if publications follow each other at once.
        serials = [facts["serial"] for facts in published]
        self.assertEqual(serials, sorted(set(serials)))
        with self.serve(table) as (url, _):
            self.assertEqual(self.ask(url, "k1", "--table", table.name, "--trust", publisher)[0], ["changed"])

    def test_look_ups_are_alike_on_the_wire(self):
        options = {"colpack": COLPACK, "simple": ["--columns", 600, "--updatable"]}
        for protocol, options in options.items():
            table = self.updatable("--tiers", "50,400", protocol=protocol, options=options, name=protocol)
            before = self.facts(table)
            many = {f"k{i}": value(i, 1) for i in range(1000, 1100)}
            (self.dir / "gone.txt").write_text("k9\n")
            self.apply(table, self.changes(many | {"new": "v" * 300, "k20": "short"}), "--key", "k", "--delete", self.dir / "gone.txt")
            facts = self.facts(table)
            for size in ("query_bytes", "answer_bytes", "server_bytes", "hint_bytes", "segments", "records"):
                self.assertEqual(facts[size], before[size], f"{size} tells of changes")
            # Keys of all kinds: short, long, changed from long to short and back, new, deleted, absent.
            asked = ["k1", "k40", "k20", "k1000", "k1001", "new", "k9", "absent"]
            expected = RECORDS | many | {"new": "v" * 300, "k20": "short", "k9": None}
            with self.serve(table) as (url, _), Proxy(url) as proxy:
                self.ask(proxy.url, "k1")  # the hint
                sizes = set()
                for key in asked:
                    del proxy.requests[:]
                    found, stats = self.ask(proxy.url, key)
                    self.assertEqual(found, [expected.get(key)], key)
                    sent = [(method, path, len(body)) for method, path, body in proxy.requests]
                    sizes.add((stats["queries"], stats["bytes_up"], stats["bytes_down"], *sent))
                self.assertEqual(len(sizes), 1, sizes)

    def test_a_server_takes_changes_up(self):
        table, fixed = self.updatable(), self.table(RECORDS, "simple", name="fixed")
        for args, tell in ((["--watch"], lambda server: None), ([], lambda server: server.send_signal(signal.SIGHUP))):
            with self.subTest(args), self.serve(table, fixed, args=args) as (url, server):
                word = f"by {args}"
                self.apply(table, self.changes({"k1": word}), "--key", "k")
                tell(server)
                self.taken_up(url, table)
                self.assertEqual(self.ask(url, "--table", "table", "k1", "k2")[0], [word, RECORDS["k2"]])
                self.assertEqual(self.ask(url, "--table", "fixed", "k1")[0], [RECORDS["k1"]])
                # A damaged epoch is not loaded, and the current one stays.
                epoch = self.epoch(url, table)
                self.apply(table, self.changes({"k1": "damaged"}), "--key", "k")
                if args:
                    self.taken_up(url, table)
                segment = len(self.facts(table)["segments"]) - 1
                broken, whole = self.dir / "broken", self.dir / "whole"
                subprocess.run(["cp", "-r", table, broken], check=True)
                with open(broken / f"{segment}.db.bin", "r+b") as file:
                    file.write(b"\xff" * 64)
                table.rename(whole)
                broken.rename(table)
                tell(server)
                time.sleep(1)
                self.assertEqual(request(f"{url}/readyz")[0], 200)
                self.assertEqual(self.ask(url, "--table", "table", "k2")[0], [RECORDS["k2"]])
                subprocess.run(["rm", "-r", table], check=True)
                whole.rename(table)
                tell(server)
                self.taken_up(url, table)
                self.assertEqual(self.ask(url, "--table", "table", "k1")[0], ["damaged"])
                self.assertNotEqual(self.epoch(url, table), epoch)

    def test_an_operator_tells_the_server(self):
        table = self.updatable()
        port = free_port()
        admin = f"http://127.0.0.1:{port}/v1/admin/tables"

        def tell(path, status):
            got, _, body = request(f"{admin}/{path}", b"")
            self.assertEqual(got, status, body)
            return json.loads(body)

        with self.serve(table, args=["--listen-admin", f"127.0.0.1:{port}"]) as (url, _):
            self.apply(table, self.changes({"k1": "told"}), "--key", "k")
            self.assertEqual(tell("table/reload", 200), {"epoch": self.facts(table)["epoch"]})
            self.assertEqual(self.ask(url, "k1")[0], ["told"])
            self.assertEqual(tell("table/compact", 202), {"state": "begun"})
            self.wait_for("no new base", lambda: self.facts(table)["changes"]["changes"] == 0)
            self.taken_up(url, table)
            self.assertEqual(self.ask(url, "k1", "k2")[0], ["told", RECORDS["k2"]])
            self.assertIn("no changes to fold", tell("table/compact", 409)["detail"])
            self.assertEqual(tell("nothing/reload", 404)["code"], "unknown_table")
            # The public address does not have the endpoint.
            self.assertEqual(request(f"{url}/v1/admin/tables/table/reload", b"")[0], 404)
            self.assertEqual(request(f"http://127.0.0.1:{port}/v1/tables")[0], 404)
            (table / "header.json").write_text("{}")
            self.assertIn("is damaged", tell("table/reload", 409)["detail"])
            self.assertIn('hush_reload_failures_total{table="table"} 1', request(f"{url}/metrics")[2].decode())
            self.assertIn(b"table table is not up to date", request(f"{url}/readyz")[2])
            self.assertEqual(self.ask(url, "k2")[0], [RECORDS["k2"]])
        fixed = self.build(self.changes({"k1": "v"}, "fixed.jsonl"), "--key", "k", name="fixed")
        with self.serve(fixed, args=["--listen-admin", f"127.0.0.1:{port}"]):
            self.assertIn("build it again with 'updatable: true'", tell("fixed/compact", 409)["detail"])
        line = self.fails("serve", table, "--listen", "127.0.0.1:0", "--listen-admin", "0.0.0.0:0")
        self.assertIn("choose a loopback --listen-admin", line)

    def test_a_client_does_not_notice_that_epochs_pass(self):
        keys = [f"k{i}" for i in range(0, COUNT, 60)]
        table = self.updatable()
        done, epochs = threading.Event(), [0]

        def change(url):
            try:
                for epoch in range(1, 21):
                    records = {key: value(int(key[1:]), epoch) for key in keys}
                    self.apply(table, self.changes(records), "--key", "k")
                    self.taken_up(url, table)
                    epochs.append(epoch)
                    if epoch % 10 == 5:
                        result = self.hushdb("compact", table)
                        self.assertEqual(result.returncode, 0, result.stderr)
            finally:
                done.set()

        with self.serve(table, args=["--watch"]) as (url, _):
            changing = threading.Thread(target=change, args=[url])
            changing.start()
            asked, passed = 0, 0
            while asked < 1000 or not done.is_set():
                first = epochs[-1]
                found, _ = self.ask(url, *keys * 2)
                last = epochs[-1] + 1
                asked += len(found)
                seen = [int(text.split(":")[0]) for text in found]
                for key, text, epoch in zip(keys * 2, found, seen):
                    self.assertEqual(text, value(int(key[1:]), epoch))
                    self.assertTrue(first <= epoch <= last, (key, first, epoch, last))
                passed += len(set(seen)) > 1
            changing.join()
            self.assertEqual(epochs[-1], 20)
            self.taken_up(url, table)
            self.assertEqual(self.ask(url, keys[1])[0], [value(60, 20)])
            print(f"{asked} look-ups over 20 epochs and 2 new bases; {passed} times an epoch passed between two of one session")

    def test_a_server_makes_a_new_base_when_there_is_little_room(self):
        table = self.updatable()
        with self.serve(table, args=["--watch", "--compact-at", 50]) as (url, _):
            self.apply(table, self.changes({f"k{i}": value(i, 1) for i in range(99)}), "--key", "k")
            self.taken_up(url, table)
            time.sleep(1)
            self.assertEqual(self.facts(table)["changes"]["changes"], 99)
            self.apply(table, self.changes({f"k{i}": value(i, 2) for i in range(100)}), "--key", "k")
            self.wait_for("no new base", lambda: self.facts(table)["changes"]["changes"] == 0)
            self.taken_up(url, table)
            self.assertEqual(self.ask(url, "k1", "k99", "k100")[0], [value(1, 2), value(99, 2), RECORDS["k100"]])

    def test_changes_go_on_while_a_new_base_is_made(self):
        rng = random.Random(8)
        for name, count, turns, options in (("keys", 20_000, 2, []), ("sorted", 40_000, 1, ["--sorted", "bytes", "--leaf-bytes", 4096])):
            rows = {f"k{i:06}": f"v{i:015}" for i in range(count)}
            source = self.jsonl(rows, f"{name}.jsonl")
            table = self.build(source, "--key", "k", "--protocol", "colpack", "--updatable", "--changes", 3000, *options, name=name)
            with self.serve(table, args=["--watch"]) as (url, _):
                during = 0
                for turn in range(turns):
                    self.apply(table, self.changes({f"k{i:06}": f"before {turn}" for i in range(turn, 90, 3)}, "before.jsonl"), "--key", "k")
                    rows.update({f"k{i:06}": f"before {turn}" for i in range(turn, 90, 3)})
                    compaction = subprocess.Popen([BINARY, "compact", table], stderr=subprocess.PIPE, text=True, env=self.env)
                    while compaction.poll() is None:
                        new = {f"k{rng.randrange(count):06}": f"during {during}" for _ in range(5)} | {f"new{during:05}": "n"}
                        # Some of what was added a moment ago, and of what the new base has, goes again.
                        gone = {f"k{rng.randrange(count):06}", *([f"new{during - 1:05}"] if during % 2 else [])} - new.keys()
                        gone = [key for key in gone if key in rows]
                        (self.dir / "gone.txt").write_text("\n".join(gone) + "\n")
                        self.apply(table, self.changes(new, "during.jsonl"), "--key", "k", *(["--delete", self.dir / "gone.txt"] if gone else []))
                        rows.update(new)
                        for key in gone:
                            del rows[key]
                        during += 1
                    said = compaction.communicate()[1]
                    self.assertEqual(compaction.returncode, 0, said)
                self.assertGreater(during, 0)
                self.taken_up(url, table)
                asked = [f"new{i:05}" for i in range(during)] + [f"k{i:06}" for i in range(90)] + rng.sample(sorted(rows), 200)
                self.assertEqual(self.ask(url, *asked)[0], [rows.get(key) for key in asked], name)
                if options:
                    self.assertEqual(self.facts(table)["records"], len(rows))
                print(f"{name}: {during} changes while {turns} new bases were made", end="; ")
            self.assertEqual([path.name for path in self.dir.glob(".*.compact")], [])


if __name__ == "__main__":
    unittest.main()
