"""Tests of sorted tables: neighbours, prefixes and ranges, at size and with changes, and what is sent meanwhile."""

import bisect
import csv
import ipaddress
import json
import random

from keyed import KeyedTest, weak
from proxy import Proxy


class SortedTest(KeyedTest):
    def rows(self, rows, *args, header, name="table"):
        """Builds a sorted table of rows."""
        source = self.dir / f"{name}.csv"
        with source.open("w", newline="") as file:
            csv.writer(file).writerows([header, *rows])
        return self.build(source, "--protocol", "colpack", *args, name=name)

    def find(self, url, match, *keys):
        """Returns what is found for each key: rows, or None. Without a match, the values."""
        file = self.dir / "keys.txt"
        file.write_text("".join(f"{key}\n" for key in keys))
        args = [f"--{match}"] if match else []
        result = self.hushdb("get", url, "--json", *weak(url, []), *args, "--keys-file", file)
        self.assertIn(result.returncode, (0, 1), result.stderr)
        found = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual([line["key"] for line in found], [str(key) for key in keys])
        read = json.loads if match else str
        return [read(line["value"]) if line["found"] else None for line in found]

    def test_neighbours_and_prefixes_of_text(self):
        rng = random.Random(3)
        words = sorted({"".join(rng.choices("abcdeé", k=rng.randint(1, 8))) for _ in range(20_000)}, key=str.encode)
        rows = {word: str(at * 7919 % 100_000) for at, word in enumerate(words)}
        shuffled = rng.sample(sorted(rows.items()), len(rows))
        table = self.rows(shuffled, "--sorted", "bytes", "--key", "word", header=("word", "n"))
        facts = self.facts(table)["sorted"]
        self.assertEqual((facts["order"], facts["rows"]), ("bytes", len(rows)))
        encoded = [word.encode() for word in words]
        asked = rng.sample(words, 60) + ["".join(rng.choices("abcdeéf", k=rng.randint(1, 9))) for _ in range(60)] + ["A", "~~~"]
        with self.serve(table) as (url, _):
            below, above = self.find(url, "at-or-below", *asked), self.find(url, "at-or-above", *asked)
            exact, prefix = self.find(url, None, *asked), self.find(url, "prefix", *asked)
            shown = [{"word": word, "n": rows[word]} for word in words]
            for word, under, over, value, begun in zip(asked, below, above, exact, prefix):
                at = bisect.bisect_right(encoded, word.encode())
                self.assertEqual(under, shown[at - 1] if at else None, word)
                at = bisect.bisect_left(encoded, word.encode())
                self.assertEqual(over, shown[at] if at < len(words) else None, word)
                self.assertEqual(value, rows.get(word), word)
                expected = [row for row in shown[at:at + 20_000] if row["word"].startswith(word)]
                if not expected:
                    self.assertIsNone(begun, word)
                    continue
                self.assertEqual(begun["rows"], expected[:len(begun["rows"])], word)
                self.assertEqual(begun["more"], len(begun["rows"]) < len(expected), word)
                # An answer is whole if its rows take fewer bytes than a leaf repeats of those behind it.
                self.assertTrue(not begun["more"] or sum(len(row["word"]) + len(row["n"]) + 3 for row in expected) > facts["overlap"])
            # Each request is one look-up of one size, whatever the client asks for and the table has.
            with Proxy(url) as proxy:
                sent = set()
                for match, word in [("at-or-below", "aaa"), ("at-or-above", "zz"), ("prefix", "b"), ("prefix", "zzz"), (None, words[0])]:
                    del proxy.requests[:]
                    self.hushdb("get", proxy.url, word, *([f"--{match}"] if match else []))
                    sent.add(tuple((method, path, len(body)) for method, path, body in proxy.requests if method == "POST"))
                self.assertEqual({len(requests) for requests in sent}, {1}, sent)
                self.assertEqual(len(sent), 1, sent)
            refused = self.hushdb("get", url, "a", "--in-range")
            self.assertEqual((refused.returncode, "no ranges" in refused.stderr), (2, True), refused.stderr)
            self.assertIn("looked up by key", self.hushdb("get", url, "1", "--index").stderr)

    def test_networks_within_networks(self):
        rng = random.Random(4)
        networks = {ipaddress.ip_network(("10.0.0.0", 8)), ipaddress.ip_network("::/0")}
        while len(networks) < 3000:
            if rng.random() < 0.7:
                networks.add(ipaddress.ip_network((10 << 24 | rng.getrandbits(24), rng.randint(9, 32)), strict=False))
            else:
                networks.add(ipaddress.ip_network((0x2001 << 112 | rng.getrandbits(100), rng.randint(20, 64)), strict=False))
        rows = [(str(network), f"as{at}") for at, network in enumerate(sorted(networks, key=str))]
        table = self.rows(rows, "--sorted", "ip", "--range", "net", header=("net", "who"))
        by_name = {name: who for name, who in rows}
        asked = []
        for _ in range(300):
            network = rng.choice(sorted(networks, key=str))
            first, last = int(network[0]), int(network[-1])
            own = ipaddress.IPv4Address if network.version == 4 else ipaddress.IPv6Address
            asked.append(own(rng.choice([first, last, rng.randint(first, last), max(first - 1, 0), min(last + 1, int(own(own._ALL_ONES)))])))
        asked += [ipaddress.ip_address("9.255.255.255"), ipaddress.ip_address("11.0.0.0"), ipaddress.ip_address("::ffff:10.1.2.3")]
        with self.serve(table) as (url, _):
            found, values = self.find(url, "in-range", *asked), self.find(url, None, *asked)
            for address, row, value in zip(asked, found, values):
                address = getattr(address, "ipv4_mapped", None) or address
                around = [network for network in networks if network.version == address.version and address in network]
                longest = max(around, key=lambda network: network.prefixlen, default=None)
                expected = None if longest is None else {"net": str(longest), "who": by_name[str(longest)]}
                self.assertEqual(row, expected, address)
                self.assertEqual(value, expected and expected["who"], address)
            bad = self.hushdb("get", url, "10.1", "--in-range")
            self.assertIn("give an IP address", bad.stderr)
        for text, words in [("10.0.0.1/8", "row 1: '10.0.0.1/8' is not a network"), ("x", "is not a network")]:
            source = self.csv([(text, "a")], header="net,who", name="bad.csv")
            self.assertIn(words, self.fails("build", source, "--sorted", "ip", "--range", "net", "--out", self.dir / "bad"))

    def test_numbers_and_ranges_of_numbers(self):
        rows = [(number, f"v{number}") for number in range(-5000, 5000, 7)]
        table = self.rows(rows, "--sorted", "number", "--key", "n", header=("n", "v"))
        with self.serve(table) as (url, _):
            row = {number: {"n": number, "v": value} for number, value in rows}
            self.assertEqual(self.find(url, "at-or-below", -5001, -4993, -4990, 0, 99999), [None, row[-4993], row[-4993], row[-2], row[4996]])
            self.assertEqual(self.find(url, "at-or-above", 4996, 4997, -3), [row[4996], None, row[-2]])
        ranges = [(0, 9, "a"), (20, 29, "b"), (25, 25, "c"), (28, 35, "d")]
        table = self.rows(ranges, "--sorted", "number", "--range", "from,to", header=("from", "to", "who"), name="ranges")
        with self.serve(table) as (url, _):
            self.assertEqual(self.find(url, None, 9, 10, 24, 25, 26, 28, 35, 36), ["a", None, "b", "c", "b", "d", "d", None])
            self.assertEqual(self.find(url, "in-range", 26), [{"from": 20, "to": 29, "who": "b"}])

    def test_rows_change(self):
        rng = random.Random(5)
        rows = {f"{rng.getrandbits(64):016x}": "x" * rng.randint(0, 20) for _ in range(3000)}
        out = self.rows(rows.items(), "--sorted", "hex", "--key", "id", "--updatable", "--changes", 700, "--leaf-bytes", 1000, header=("id", "v"))
        with self.serve(out, args=["--watch"]) as (url, _):
            for turn in range(3):
                changes = {f"{rng.getrandbits(64):016x}": "y" * rng.randint(0, 40) for _ in range(200)}
                changes.update({key: "z" for key in rng.sample(sorted(rows), 50)})
                gone = [key for key in rng.sample(sorted(rows), 60) if key not in changes]
                source = self.csv(changes.items(), header="id,v", name="changes.csv")
                deleted = self.dir / "gone.txt"
                deleted.write_text("".join(f"0x{key}\n" for key in gone))
                self.ok("apply", out, source, "--key", "id", "--delete", deleted)
                rows.update(changes)
                for key in gone:
                    del rows[key]
                if turn == 1:
                    self.ok("compact", out)
                epoch = self.facts(out)["epoch"]
                self.wait_for("the new epoch", lambda: self.hushdb("get", url, "00", "--at-or-above", "--epoch", epoch).returncode == 0)
                ordered = sorted(rows)
                asked = rng.sample(sorted(changes), 50) + gone[:30] + rng.sample(ordered, 30)
                below = self.find(url, "at-or-below", *asked)
                for key, row in zip(asked, below):
                    at = bisect.bisect_right(ordered, key)
                    self.assertEqual(row, {"id": ordered[at - 1], "v": rows[ordered[at - 1]]} if at else None, key)
                self.assertEqual(self.find(url, None, *asked), [rows.get(key) for key in asked])
        self.assertIn("so that it cannot be deleted", self.fails("apply", out, "--delete", deleted))
        network = self.csv([("10.0.0.0/8", "a")], header="net,who", name="net.csv")
        self.assertIn("cannot be changed", self.fails(
            "build", network, "--sorted", "ip", "--range", "net", "--updatable", "--out", self.dir / "no"))

    def ok(self, *args):
        result = self.hushdb(*args)
        self.assertEqual(result.returncode, 0, result.stderr)
