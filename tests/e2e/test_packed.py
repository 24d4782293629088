"""Protocols whose answers are packed: nothing to download, keys that each client uploads once, four ways to answer."""

import random
import unittest

import wire
from harness import free_port, request
from keyed import HEADERS, KeyedTest, values
from proxy import Proxy

PROTOCOLS = ("exppack-s", "exppack-d", "double-pack", "hybrid")
# A set with short keys and a short hint, for tests of shapes and bytes: plaintexts of 256 bytes.
SMALL = ["--preset", "INSECURE_PACK_N256"]
MIB = 1 << 20


class PackedLookups(KeyedTest):
    def test_records_of_every_size(self):
        # Sizes of slots, of which a fingerprint takes 8 bytes; lanes and planes; records.
        cases = {
            "lanes": (9, 28, 1, 900),
            "lane": (64, 4, 1, 130),
            "plane": (256, 1, 1, 60),
            "planes": (400, 1, 2, 60),
            "page": (4096, 1, 16, 40),
        }
        tables, records = [], {}
        for protocol in PROTOCOLS:
            for name, (slot, lanes, planes, count) in cases.items():
                if protocol == "exppack-d" and slot > 64:
                    continue
                for by, size in (("key", slot - 8), ("index", slot)):
                    with self.subTest(name, protocol=protocol, by=by):
                        label = f"{protocol}-{name}-{by}"
                        records[label] = values(count, size)
                        args = [*SMALL, "--columns", 10]
                        tables.append(self.table(records[label], protocol, *args, name=label, by=by))
                        facts = self.facts(tables[-1])
                        self.assertEqual((facts["protocol"], facts["slot_bytes"]), (protocol, slot))
                        self.assertEqual((facts["lanes"], facts["planes"]), (lanes, planes))
                        self.assertGreater(facts["entries"], 2)
                        self.assertEqual(facts["folds"] > 0, protocol == "hybrid")
        with self.serve(*tables) as (url, _):
            uploads = []
            for label, expected in records.items():
                with self.subTest(label):
                    wanted = list(expected)[::max(1, len(expected) // 4)]
                    if label.endswith("index"):
                        keys = ["--index", *(str(list(expected).index(key)) for key in wanted)]
                        line = self.fails("get", url, "--allow-weak", "--table", label, "--index", len(expected))
                        self.assertIn(f"0 to {len(expected) - 1}", line)
                    else:
                        keys = [*wanted, "absent"]
                    found, stats = self.ask(url, "--table", label, *keys)
                    self.assertEqual(found[:len(wanted)], [expected[key] for key in wanted])
                    self.assertEqual(found[len(wanted):], [] if label.endswith("index") else [None])
                    uploads.append(stats["key_bytes_up"] > 0)
            # One parameter set, so one upload, whatever the protocol; the first client of all is another one.
            self.assertEqual(uploads, [True] + [False] * (len(uploads) - 1))

    def test_parameter_sets_of_full_size(self):
        # Protocol, size of a slot, records, columns, preset.
        cases = (
            ("exppack-s", 60, 100, None, None),
            ("exppack-d", 3, 100, None, None),
            ("double-pack", 60, 500, "7", None),
            ("double-pack", 2000, 20, "10", "VIPIR_N4096_3X29"),
            ("hybrid", 60, 100, None, None),
            ("hybrid", 4096, 20, "10", None),
            ("hybrid", 5000, 10, None, None),
            ("hybrid", 60, 100, None, "VIPIR_N4096_3X29"),
        )
        tables, records = [], []
        for number, (protocol, slot, count, columns, preset) in enumerate(cases):
            by = "key" if slot in (60, 5000) else "index"
            records.append(values(count, slot - 8 if by == "key" else slot))
            args = [*(["--columns", columns] if columns else []), *(["--preset", preset] if preset else [])]
            tables.append(self.table(records[-1], protocol, *args, name=str(number), by=by))
            with self.subTest(cases[number]):
                facts = self.facts(tables[-1])
                self.assertEqual(facts["preset"], preset or "PACK_M31")
                self.assertEqual(facts["planes"], -(-slot // 4096))
                self.assertGreaterEqual(facts["security_bits"], 128)
                self.assertLess(facts["failure_log2"], -40)
                self.assertGreaterEqual(facts["noise_sigmas"], 12)
                self.assertEqual(facts["hint_bytes"], 0)
        with self.serve(*tables) as (url, _):
            for number, (case, expected) in enumerate(zip(cases, records)):
                with self.subTest(case):
                    # Few look-ups: in a debug build, each takes seconds.
                    last = len(expected) - 1
                    by_index = case[1] not in (60, 5000)
                    keys = ["--index", str(last)] if by_index else [f"k{last}", "absent"]
                    found, stats = self.ask(url, "--table", str(number), *keys)
                    self.assertEqual(found, [expected[f"k{last}"]] + [None] * (not by_index))
                    facts = self.facts(tables[number])
                    # A query on the wire is its bytes, framed, and so is an answer.
                    self.assertTrue(facts["query_bytes"] <= stats["query_bytes"] <= facts["query_bytes"] + 200, stats)
                    self.assertTrue(facts["answer_bytes"] <= stats["answer_bytes"] <= facts["answer_bytes"] + 100)
                    self.assertEqual(stats["setup_bytes_up"], 0)
                    self.assertLess(stats["setup_bytes_down"], 20_000)

    def test_a_mebibyte(self):
        expected = {"long": "x" * MIB, "short": "y", "empty": "", "other": "z" * (MIB - 1)}
        plain = ["--preset", "INSECURE_PLAIN"]
        choices = {"hybrid": SMALL, "onion": [], "simple": [*plain, "--columns", 3], "frodo": plain}
        limit = ["--max-value-size", MIB]
        tables = [self.table(expected, protocol, *args, *limit, name=protocol) for protocol, args in choices.items()]
        with self.serve(*tables) as (url, _):
            for table in tables:
                with self.subTest(table.name):
                    facts = self.facts(table)
                    self.assertEqual((facts["max_value_bytes"], facts["slot_bytes"]), (MIB, MIB + 8 + 3))
                    found, stats = self.ask(url, "--table", table.name, *expected, "absent")
                    self.assertEqual(found, [*expected.values(), None])
                    self.assertTrue(facts["answer_bytes"] <= stats["answer_bytes"] <= facts["answer_bytes"] + 100)
        source, out = self.jsonl(expected), self.dir / "out"
        for protocol, words in (("double", "use simple"), ("exppack-d", "for the shortest")):
            line = self.fails("build", source, "--key", "k", "--protocol", protocol, *limit, "--out", out)
            self.assertIn(words, line)
        line = self.fails("build", source, "--key", "k", "--out", out)
        self.assertIn(f"raise --max-value-size, up to {MIB}", line)

    def test_lengths_that_vary_and_few_records(self):
        self.varied_and_few(PROTOCOLS, *SMALL)

    def test_answers_look_alike_on_the_wire(self):
        records = values(200, 50, 0)
        tables = [self.table(records, protocol, *SMALL, name=protocol) for protocol in PROTOCOLS]
        with self.serve(*tables) as (url, _), Proxy(url) as proxy:
            self.ask(proxy.url, "--table", "hybrid", "k0")
            for protocol in PROTOCOLS:
                sizes = set()
                for key in ("k0", "k199", "k77", "absent", "", "x" * 4096):
                    del proxy.requests[:]
                    found, stats = self.ask(proxy.url, "--table", protocol, key)
                    self.assertEqual(found, [records.get(key)])
                    sent = [(method, path, len(body)) for method, path, body in proxy.requests]
                    sizes.add((stats["queries"], stats["bytes_up"], stats["bytes_down"], *sent))
                self.assertEqual(len(sizes), 1, sizes)

    def test_every_level_of_the_machine(self):
        self.every_level(PROTOCOLS, *SMALL)


class PackedKeys(KeyedTest):
    def test_keys_are_uploaded_once(self):
        records = values(50, 50)
        tables = [self.table(records, protocol, *SMALL, name=protocol) for protocol in ("hybrid", "double-pack")]
        facts = self.facts(tables[0])
        keys, port = self.dir / "keys.redb", free_port()
        serve = lambda file: self.serve(*tables, args=["--keys", file], listen=f"127.0.0.1:{port}")
        steps = lambda proxy: [method for method, *_ in proxy.requests if method != "GET"]
        with Proxy(f"http://127.0.0.1:{port}") as proxy:
            ask = lambda table, key, client="cache": self.ask(proxy.url, "--table", table, key, client=client)
            with serve(keys) as (url, _):
                found, stats = ask("hybrid", "k1")
                self.assertEqual((found, stats["key_bytes_up"]), ([records["k1"]], facts["key_bytes"]))
                self.assertEqual((stats["protocol"], stats["setup_bytes_up"]), ("hybrid", 0))
                # Asked for by a 428, and the query made once more.
                self.assertEqual(steps(proxy), ["POST", "PUT", "POST"])
                found, stats = ask("double-pack", "k2")
                self.assertEqual((found, stats["key_bytes_up"]), ([records["k2"]], 0))
                self.assertEqual(steps(proxy), ["POST", "PUT", "POST", "POST"])
                found, stats = ask("double-pack", "absent", client="other")
                self.assertEqual((found, stats["key_bytes_up"]), ([None], facts["key_bytes"]))
            del proxy.requests[:]
            with serve(keys):
                self.assertEqual(ask("hybrid", "k3")[1]["key_bytes_up"], 0, "the file outlives the server")
                self.assertEqual(steps(proxy), ["POST"])
            del proxy.requests[:]
            with serve(self.dir / "others.redb"):
                found, stats = ask("hybrid", "k4")
                self.assertEqual((found, stats["key_bytes_up"]), ([records["k4"]], facts["key_bytes"]))
                self.assertEqual(steps(proxy), ["POST", "PUT", "POST"])

    def test_clients_with_their_own_keys_share_scans(self):
        self.share_scans(PROTOCOLS, *SMALL, keys=5)

    def test_tables_of_all_families_side_by_side(self):
        names = ("hybrid", "onion", "simple", "exppack-d")
        records = {name: values(100, 50, seed=seed) for seed, name in enumerate(names)}
        presets = {"onion": ["--preset", "INSECURE_RING_N256"], "simple": []}
        tables = [self.table(records[name], name, *presets.get(name, SMALL), name=name) for name in names]
        with self.serve(*tables) as (url, _):
            uploads = []
            for name in (*names, *names):
                found, stats = self.ask(url, "--table", name, "k1", "nobody", "k99")
                self.assertEqual(found, [records[name]["k1"], None, records[name]["k99"]])
                uploads.append(stats["key_bytes_up"] > 0)
            self.assertEqual(uploads, [True, True, False, False] + [False] * 4)


class PackedBadRequests(KeyedTest):
    def test_queries(self):
        records = values(200, 50)
        tables = [self.table(records, protocol, *SMALL, name=protocol) for protocol in PROTOCOLS]
        onion = self.table(records, "onion", "--preset", "INSECURE_RING_N256", name="onion")
        with self.serve(*tables, onion) as (url, process):
            (_, (_, theirs)) = self.capture(url, "--table", "onion", "k1")
            other_name = dict(wire.fields(dict(wire.fields(theirs))[4]))[4]
            self.ask(url, "--table", "hybrid", "k1")
            for number, protocol in enumerate(PROTOCOLS):
                with self.subTest(protocol), Proxy(url) as proxy:
                    self.ask(proxy.url, "--table", protocol, "k1", client=protocol)
                    path, body = proxy.sent("POST")[-1]
                    self.assertEqual(request(url + path, body, HEADERS)[0], 200)

                    def post(field, change, status, code):
                        changed = wire.changed(body, 4, lambda query: wire.changed(query, field, change))
                        self.refused(url, "POST", path, changed, status, code)

                    present = [field for field, _ in wire.fields(dict(wire.fields(body))[4])]
                    two = protocol in ("exppack-d", "double-pack")
                    self.assertEqual(present, [1, 2, 3, 4] if two else [1, 3, 4])
                    for field in present:
                        for change in (lambda part: b"", lambda part: part[:-1], lambda part: part + b"\0"):
                            post(field, change, 400, "invalid_request")
                    post(4, lambda id: bytes(32), 428, "key_not_found")
                    post(4, lambda id: other_name, 400, "key_preset")
                    post(3, lambda words: words[:-16] + b"\xff" * 16, 400, "invalid_request")
                    post(3, lambda words: words[:32] + b"\xff" * (len(words) - 32), 400, "invalid_request")
                    # Every word of a vector is one: answered, with what decrypts to noise.
                    ones = wire.changed(body, 4, lambda query: wire.changed(query, 1, lambda w: b"\xff" * len(w)))
                    self.assertEqual(request(url + path, ones, HEADERS)[0], 200)
                    elsewhere = f"/v1/tables/{PROTOCOLS[number - 1]}/query"
                    self.refused(url, "POST", elsewhere, body, 410, "epoch_gone")
                    rng = random.Random(3)
                    for _ in range(20):
                        damaged = bytearray(body)
                        damaged[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
                        status = request(url + path, bytes(damaged), HEADERS)[0]
                        self.assertIn(status, (200, 400, 410, 413, 415, 428))
                    self.assertEqual(self.ask(url, "--table", protocol, "k3")[0], [records["k3"]])
                    self.assertIsNone(process.poll())


class PackedBuilds(KeyedTest):
    def test_a_killed_build_goes_on_behind_the_layout(self):
        records = values(40, 4096)
        args = ["--value", "v", "--protocol", "hybrid", "--columns", "10"]
        out = self.killed_builds(self.jsonl(records), *args, during="lifted.bin", laid_out=True)
        with self.serve(out) as (url, _):
            self.assertEqual(self.ask(url, "--index", "39")[0], [records["k39"]])

    def test_a_corrupt_byte_in_each_file(self):
        for protocol in ("hybrid", "exppack-d"):
            table = self.table(values(40, 30), protocol, *SMALL, name=protocol)
            files = ["db.bin", "header.json", "lifted.bin"]
            if protocol == "exppack-d":
                files.insert(1, "db2.bin")
            self.assertEqual(sorted(path.name for path in table.iterdir()), files)
            self.corrupt_bytes(table)

    def test_choices(self):
        records = values(300, 40)
        choices = {
            "narrow": ["--columns", "8"],
            "narrowest": ["--columns", "1"],
            "wide": ["--columns", "250"],
            "fuse": ["--filter", "fuse3"],
            "band": ["--filter", "band64", "--fingerprint-bytes", "16"],
        }
        columns = {}
        for protocol in PROTOCOLS:
            tables = [self.table(records, protocol, *SMALL, *args, name=f"{protocol}-{name}")
                      for name, args in choices.items()]
            columns[protocol] = [self.facts(table)["columns"] for table in tables[:3]]
            with self.serve(*tables) as (url, _):
                for name in choices:
                    with self.subTest(name, protocol=protocol):
                        found, _ = self.ask(url, "--table", f"{protocol}-{name}", "k0", "nobody", "k31", "k299")
                        self.assertEqual(found, [records["k0"], None, records["k31"], records["k299"]])
        for narrow, narrowest, wide in columns.values():
            self.assertTrue(narrowest < narrow < 30 < 100 < wide, columns)

    def test_choices_that_cannot_be(self):
        source, out = self.jsonl(values(100, 300)), self.dir / "out"
        packing = ["exppack-s", "exppack-d", "double-pack", "hybrid"]
        for args, words in (
            (["--protocol", "simple", "--preset", "PACK_M31"], ["PACK_M31", *packing, "simple"]),
            (["--protocol", "onion", "--preset", "VIPIR_N4096_3X29"], ["VIPIR_N4096_3X29", *packing, "onion"]),
            (["--protocol", "hybrid", "--preset", "ONION_S"], ["ONION_S", "onion", "hybrid"]),
            (["--protocol", "exppack-d", "--preset", "LWE_N1280_STD3_2_PLAIN"], ["frodo, simple and double"]),
            (["--protocol", "double-pack", "--preset", "nonsense"], ["nonsense", "PACK_M31", "VIPIR_N4096_3X29"]),
            (["--protocol", "exppack-d"], ["exppack-d is for the shortest", "64"]),
            (["--protocol", "hybrid", "--columns", "0"], ["--columns"]),
            (["--protocol", "exppack"], ["unknown protocol", "auto", "frodo", "onion", *packing]),
            (["--protocol", "hybrid", "--max-value-size", MIB + 1], ["--max-value-size", str(MIB)]),
            (["--protocol", "hybrid", "--max-value-size", "299"], ["--max-value-size", "299", str(MIB)]),
        ):
            with self.subTest(args=args):
                line = self.fails("build", source, "--key", "k", "--out", out, *args)
                for word in words:
                    self.assertIn(word, line)
                self.assertFalse(out.exists())

    def test_auto(self):
        sizes = {
            "few": values(20, 40),
            "short": values(2000, 10),
            "long": values(700, 2000),
            # Pack columns would be longer than the table and half a GiB.
            "longest": values(4, 65536),
        }
        lwe = ["--preset", "LWE_N1280_STD3_2_PLAIN"]
        for name, args, protocol in (
            ("few", [], "frodo"),
            ("few", ["--columns", "7"], "simple"),
            ("short", [], "colpack"),
            ("long", [], "colpack"),
            ("long", ["--columns", "100"], "colpack"),
            ("longest", [], "frodo"),
            ("long", lwe, "frodo"),
            ("few", ["--preset", "PACK_M31"], "hybrid"),
            ("few", ["--preset", "COLPACK_N2048_Q52"], "colpack"),
        ):
            with self.subTest(name, args=args):
                table = self.table(sizes[name], "auto", *args, "--force")
                self.assertEqual(self.facts(table)["protocol"], protocol)

    def test_inspect_shows_what_a_table_costs(self):
        table = self.table(values(100, 52), "hybrid", "--columns", "30")
        facts = self.facts(table)
        self.assertEqual((facts["lwe_dimension"], facts["ring_degree"]), (1280, 4096))
        self.assertEqual(facts["word_bits"]["packed"], 18)
        self.assertIn(facts["word_bits"]["query"], range(16, 33))
        self.assertEqual((facts["lanes"], facts["planes"], facts["entries"], facts["folds"]), (68, 1, 1, 0))
        self.assertEqual(facts["rows"], facts["blocks"] * facts["slot_bytes"])
        files = {file["name"]: file["bytes"] for file in facts["files"]}
        self.assertEqual(files["lifted.bin"], facts["lifted_bytes"])
        self.assertEqual(facts["server_bytes"], facts["encoded_bytes"] + facts["lifted_bytes"])
        # One plaintext: two primes of 32 bits for every coefficient, and for every one of the LWE secret.
        self.assertEqual(facts["lifted_bytes"], 2 * 4 * 4096 * 1280)
        self.assertLess(facts["key_bytes"], 1.3 * MIB)
        text = self.hushdb("inspect", table).stdout
        self.assertIn("hybrid with PACK_M31", text)
        self.assertIn("40.00 MiB, kept by the server", text)
        self.assertIn("uploaded once by each client", text)
        self.assertIn("in all: database", text)


if __name__ == "__main__":
    unittest.main()
