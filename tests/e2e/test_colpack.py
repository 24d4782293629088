"""Column packing: nothing to download, nothing to upload, nothing kept on either side. The default."""

import random
import threading

import wire
from harness import request
from keyed import HEADERS, KeyedTest, values
from proxy import Proxy

PROTOCOLS = ("colpack", "colpack-s")
# A set with short keys, for tests of shapes and bytes: plaintexts of 256 bytes.
SMALL = ["--preset", "INSECURE_COLPACK_N256"]
MIB = 1 << 20


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
        tables = {"varied": values(80, 50, 0), "empty": values(5, 0), "one": {"only": "record"}}
        for protocol in PROTOCOLS:
            folders = [self.table(records, protocol, *SMALL, name=f"{protocol}-{name}")
                       for name, records in tables.items()]
            folders.append(self.table(tables["one"], protocol, *SMALL, name=f"{protocol}-index", by="index"))
            with self.serve(*folders) as (url, _):
                for name, records in tables.items():
                    with self.subTest(name, protocol=protocol):
                        found, _ = self.ask(url, "--table", f"{protocol}-{name}", *records, "absent")
                        self.assertEqual(found, [*records.values(), None])
                found, _ = self.ask(url, "--table", f"{protocol}-index", "--index", "0")
                self.assertEqual(found, ["record"])

    def test_every_level_of_the_machine(self):
        records = values(100, 50)
        for level in ("scalar", "avx2", "avx512", "avx512ifma"):
            with self.subTest(level):
                env = {**self.env, "HUSH_CPU": level}
                probe = self.hushdb("build", self.jsonl({"a": "b"}), "--key", "k", "--out", self.dir / level, env=env)
                if probe.returncode:
                    self.assertIn("HUSH_CPU", probe.stderr)
                    continue
                # Built at one level, served at another.
                tables = [self.table(records, protocol, *SMALL, "--columns", 10, name=f"{level}-{protocol}")
                          for protocol in PROTOCOLS]
                with self.serve(*tables, env=env) as (url, _):
                    for protocol in PROTOCOLS:
                        found, _ = self.ask(url, "--table", f"{level}-{protocol}", "k3", "nobody", client=level)
                        self.assertEqual(found, [records["k3"], None])


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
                # Nothing of one query comes back in another: no byte string of 16 that both have at the same place.
                queries = [dict(wire.fields(dict(wire.fields(body))[4])) for body in bodies]
                self.assertTrue(all(set(query) == {1, 3} for query in queries), "a vector and keys, and no name")
                for index, query in enumerate(queries):
                    for other in queries[:index]:
                        for field in (1, 3):
                            pairs = zip(query[field][::16], other[field][::16])
                            runs = [query[field][at:at + 16] == other[field][at:at + 16]
                                    for at, _ in enumerate(pairs)]
                            self.assertFalse(any(runs))

    def test_a_look_up_made_again_is_another_query(self):
        records, newer = values(200, 50), values(200, 50, seed=2)
        table = self.table(records, "colpack", *SMALL, name="table")
        with self.serve(table) as (url, _), Proxy(url) as proxy:
            self.assertEqual(self.ask(proxy.url, "--table", "table", "k1")[0], [records["k1"]])
        # The same folder, built anew: the client's descriptor is an older one.
        table = self.table(newer, "colpack", *SMALL, "--force", name="table")
        with self.serve(table) as (url, _), Proxy(url) as proxy:
            self.assertEqual(self.ask(proxy.url, "--table", "table", "k1")[0], [newer["k1"]])

    def test_clients_share_scans(self):
        records = values(100, 50)
        tables = [self.table(records, protocol, *SMALL, "--columns", 20, name=protocol) for protocol in PROTOCOLS]
        with self.serve(*tables) as (url, _):
            wrong = []

            def ask(number):
                for protocol in PROTOCOLS:
                    keys = [f"k{number * 20 + i}" for i in range(20)]
                    found, _ = self.ask(url, "--table", protocol, *keys, client=f"client{number}")
                    if found != [records[key] for key in keys]:
                        wrong.append((number, protocol))

            clients = [threading.Thread(target=ask, args=(number,)) for number in range(5)]
            for thread in clients:
                thread.start()
            for thread in clients:
                thread.join()
            self.assertEqual(wrong, [])
            self.assertIn(b"hush_keys 0\n", request(url + "/metrics")[2])

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
        self.assertIn("pack columns", text)
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
