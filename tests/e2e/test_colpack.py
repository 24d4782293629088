"""Column packing: nothing to download, nothing to upload, nothing kept on either side. The default."""

import random

import wire
from harness import request
from keyed import HEADERS, KeyedTest, values
from proxy import Proxy

PROTOCOLS = ("colpack", "colpack-s")
# A set with short keys, for tests of shapes and bytes: plaintexts of 256 bytes.
SMALL = ["--preset", "INSECURE_COLPACK_N256"]
# The keys that travel with its queries and the bits of their 256 coefficients; the rows of the RGSW ciphertext in colpack only.
KEYS = (("rotation key", 46), ("conjugation key", 42), ("bottom row", 46), ("top row", 46))
MIB = 1 << 20


def parts(query):
    """What a query under the small set is made of: a vector, keys, and no name."""
    fields = dict(wire.fields(query))
    assert set(fields) == {1, 3}, "a vector and keys, and no name"
    named, at = {"vector": fields[1]}, 0
    for name, bits in KEYS:
        if at < len(fields[3]):
            named[name], at = fields[3][at:at + 256 * bits // 8], at + 256 * bits // 8
    assert at == len(fields[3]), "whole keys"
    return named


class ColumnLookups(KeyedTest):
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
                        self.assertEqual(facts["external_products"] > 0, protocol == "colpack")
        with self.serve(*tables) as (url, _):
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
                    self.assertEqual((stats["key_bytes_up"], stats["setup_bytes_up"]), (0, 0))

    def test_the_set_of_full_size(self):
        # Protocol, size of a slot, records, columns.
        cases = (("colpack", 60, 1000, None), ("colpack", 4096, 20, "10"), ("colpack-s", 3000, 9, "5"))
        tables, records = [], []
        for number, (protocol, slot, count, columns) in enumerate(cases):
            by = "key" if slot == 60 else "index"
            records.append(values(count, slot - 8 if by == "key" else slot))
            args = ["--columns", columns] if columns else []
            tables.append(self.table(records[-1], protocol, *args, name=str(number), by=by))
            facts = self.facts(tables[-1])
            self.assertEqual(facts["preset"], "COLPACK_N2048_Q52")
            self.assertGreaterEqual(facts["security_bits"], 128)
            self.assertLess(facts["failure_log2"], -40)
            self.assertGreaterEqual(facts["noise_sigmas"], 12)
            self.assertEqual((facts["hint_bytes"], facts["key_bytes"]), (0, 0))
        with self.serve(*tables) as (url, _):
            for number, (case, expected) in enumerate(zip(cases, records)):
                with self.subTest(case):
                    last = len(expected) - 1
                    keys = ["--index", str(last)] if case[1] != 60 else [f"k{last}", "absent"]
                    found, stats = self.ask(url, "--table", str(number), *keys)
                    self.assertEqual(found, [expected[f"k{last}"]] + [None] * (case[1] == 60))
                    # A query on the wire is its bytes, framed, and so is an answer.
                    facts = self.facts(tables[number])
                    self.assertTrue(facts["query_bytes"] <= stats["query_bytes"] <= facts["query_bytes"] + 200, stats)
                    self.assertTrue(facts["answer_bytes"] <= stats["answer_bytes"] <= facts["answer_bytes"] + 100)

    def test_lengths_that_vary_and_few_records(self):
        self.varied_and_few(PROTOCOLS, *SMALL)

    def test_every_level_of_the_machine(self):
        self.every_level(PROTOCOLS, *SMALL, "--columns", 10)


class ColumnPrivacy(KeyedTest):
    def test_answers_look_alike_on_the_wire(self):
        records = values(200, 50, 0)
        tables = [self.table(records, protocol, *SMALL, name=protocol) for protocol in PROTOCOLS]
        with self.serve(*tables) as (url, _), Proxy(url) as proxy:
            for protocol in PROTOCOLS:
                sizes, bodies = set(), []
                for key in ("k0", "k0", "k199", "k77", "absent", "", "x" * 4096):
                    del proxy.requests[:]
                    found, stats = self.ask(proxy.url, "--table", protocol, key)
                    self.assertEqual(found, [records.get(key)])
                    sent = [(method, path, len(body)) for method, path, body in proxy.requests]
                    self.assertEqual([method for method, *_ in sent if method != "GET"], ["POST"])
                    sizes.add((stats["queries"], stats["bytes_up"], stats["bytes_down"], *sent))
                    bodies.append(proxy.sent("POST")[-1][1])
                self.assertEqual(len(sizes), 1, sizes)
                for index, body in enumerate(bodies):
                    for other in bodies[:index]:
                        self.have_nothing_in_common(body, other)

    def test_a_look_up_made_again_is_another_query(self):
        records, newer, keys = values(200, 50), values(200, 50, seed=2), ("k1", "absent", "k199")
        for protocol in PROTOCOLS:
            tables = []
            for folder, content in (("old", records), ("new", newer)):
                (self.dir / f"{protocol}-{folder}").mkdir()
                name = f"{protocol}-{folder}/table"
                tables.append(self.table(content, protocol, *SMALL, "--columns", 20, name=name))
            epochs = [bytes.fromhex(self.facts(table)["epoch"]) for table in tables]
            with (self.subTest(protocol), self.serve(tables[0]) as (old, _), self.serve(tables[1]) as (new, _),
                  Proxy(old) as proxy):
                self.assertEqual(self.ask(proxy.url, *keys)[0], [records["k1"], None, records["k199"]])
                del proxy.requests[:]

                def replace(method, path):
                    if method == "POST":
                        proxy.target = new

                # The table is replaced between descriptor and query.
                proxy.before = replace
                self.assertEqual(self.ask(proxy.url, *keys)[0], [newer["k1"], None, newer["k199"]])
                (path, first), (_, again) = proxy.sent("POST")
                self.assertEqual([dict(wire.fields(body))[2] for body in (first, again)], epochs)
                self.refused(new, "POST", path, first, 410, "epoch_gone")
                self.have_nothing_in_common(first, again)

    def test_a_connection_that_breaks(self):
        records, keys = values(200, 50), ("k1", "k2", "absent")
        tables = [self.table(records, protocol, *SMALL, "--columns", 20, name=protocol) for protocol in PROTOCOLS]
        with self.serve(*tables) as (url, _):
            for protocol in PROTOCOLS:
                # Whether the server has seen the query or not, and whether it broke once or twice.
                for where, times in (("request", 1), ("answer", 1), ("answer", 2)):
                    with self.subTest(protocol=protocol, where=where, times=times), Proxy(url) as proxy:
                        def breaks(method, path):
                            return where if method == "POST" and len(proxy.sent("POST")) <= times else None

                        proxy.breaks = breaks
                        found, _ = self.ask(proxy.url, "--table", protocol, *keys)
                        self.assertEqual(found, [records["k1"], records["k2"], None])
                        bodies = [body for _, body in proxy.sent("POST")]
                        self.assertGreater(len(bodies), times)
                        # What is sent again is the same bytes, or a query under another secret.
                        for index, body in enumerate(bodies):
                            for other in bodies[:index]:
                                if body != other:
                                    self.have_nothing_in_common(body, other)

    def have_nothing_in_common(self, body, other):
        """All queries of two requests, pairwise, and those of each: no 16 bytes in the same place of the same part are equal."""
        queries = [parts(query) for body in (body, other) for number, query in wire.fields(body) if number == 4]
        self.assertEqual(len({tuple(query) for query in queries}), 1, "queries of one table have the same parts")
        for index, query in enumerate(queries):
            for earlier in queries[:index]:
                for name, part in query.items():
                    self.assertEqual(len(part), len(earlier[name]), name)
                    self.assertGreaterEqual(len(part), 16, name)
                    equal = [at for at in range(0, len(part) - 15, 16) if part[at:at + 16] == earlier[name][at:at + 16]]
                    self.assertEqual(equal, [], f"bytes of the {name} that come back")

    def test_clients_share_scans(self):
        self.share_scans(PROTOCOLS, *SMALL, "--columns", 20, keys=0)

    def test_queries_that_are_none(self):
        records = values(200, 50)
        tables = [self.table(records, protocol, *SMALL, "--columns", 10, name=protocol) for protocol in PROTOCOLS]
        with self.serve(*tables) as (url, process):
            for number, protocol in enumerate(PROTOCOLS):
                with self.subTest(protocol), Proxy(url) as proxy:
                    self.ask(proxy.url, "--table", protocol, "k1", client=protocol)
                    path, body = proxy.sent("POST")[-1]
                    self.assertEqual(request(url + path, body, HEADERS)[0], 200)

                    def post(field, change):
                        changed = wire.changed(body, 4, lambda query: wire.changed(query, field, change))
                        self.refused(url, "POST", path, changed, 400, "invalid_request")

                    for field in (1, 3):
                        for change in (lambda part: b"", lambda part: part[:-1], lambda part: part + b"\0"):
                            post(field, change)
                    post(3, lambda keys: keys[:-16] + b"\xff" * 16)
                    post(3, lambda keys: b"\xff" * len(keys))
                    # Keys that name nothing here are too much.
                    more = wire.changed(body, 4, lambda query: query + wire.message([(4, bytes(32))]))
                    self.refused(url, "POST", path, more, 400, "invalid_request")
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
                        self.assertIn(status, (200, 400, 410, 413, 415))
                    self.assertEqual(self.ask(url, "--table", protocol, "k3")[0], [records["k3"]])
                    self.assertIsNone(process.poll())


class ColumnBuilds(KeyedTest):
    def test_a_corrupt_byte_in_each_file(self):
        table = self.table(values(40, 30), "colpack", *SMALL)
        self.assertEqual(sorted(path.name for path in table.iterdir()),
                         ["chain.bin", "columns.bin", "db.bin", "header.json"])
        self.corrupt_bytes(table)

    def test_the_default_of_a_table_by_key(self):
        source = self.jsonl(values(2000, 60))
        result = self.hushdb("build", source, "--key", "k", "--value", "v", "--out", self.dir / "out")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.facts(self.dir / "out")["protocol"], "colpack")

    def test_inspect_shows_what_a_table_costs(self):
        table = self.table(values(2000, 52), "colpack", "--columns", "500")
        facts = self.facts(table)
        self.assertEqual((facts["lwe_dimension"], facts["ring_degree"]), (2048, 2048))
        self.assertEqual((facts["lanes"], facts["planes"], facts["entries"]), (34, 1, 1))
        files = {file["name"]: file["bytes"] for file in facts["files"]}
        self.assertEqual(files["columns.bin"], facts["pack_column_bytes"])
        self.assertEqual(facts["pack_column_bytes"], -(-facts["rows"] // 32) * 32 * 8192)
        self.assertEqual(facts["server_bytes"], sum(files.values()))
        text = self.hushdb("inspect", table).stdout
        self.assertIn("colpack with COLPACK_N2048_Q52", text)
        # Whole panels of 32 rows and tiles of 64 columns; two polynomials of two limbs.
        self.assertEqual((facts["rows"], facts["columns"]), (5 * 60, 406))
        self.assertEqual(files, {"db.bin": 320 * 448, "columns.bin": 320 * 8192, "chain.bin": 4 * 2048 * 4})
        self.assertIn("\n  server     2.67 MiB in all: database 140.00 KiB, pack columns 2.50 MiB, "
                      "digits and masks 32.00 KiB\n", text)
        self.assertNotIn("uploaded", text)
        self.assertNotIn("downloaded", text)

    def test_bad_choices(self):
        source, out = self.jsonl(values(3000, 300)), self.dir / "out"
        for args, words in (
            (["--protocol", "colpack", "--preset", "PACK_M31"], ["PACK_M31", "hybrid", "colpack"]),
            (["--protocol", "hybrid", "--preset", "COLPACK_N2048_Q52"], ["COLPACK_N2048_Q52", "colpack", "hybrid"]),
            (["--preset", "COLPACK"], ["COLPACK", "COLPACK_N2048_Q52"]),
            (["--protocol", "colpack", "--columns", "0"], ["--columns"]),
            ([*SMALL, "--columns", "3"], ["entries", "512", "columns"]),
        ):
            with self.subTest(args):
                line = self.fails("build", source, "--key", "k", "--out", out, *args)
                for word in words:
                    self.assertIn(word, line)
                self.assertFalse(out.exists())
