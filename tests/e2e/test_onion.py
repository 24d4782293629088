"""Tests of the protocol onion: no downloads, short queries, and keys that each client uploads once."""

import random
import unittest

import wire
from harness import free_port, request
from keyed import HEADERS, KeyedTest, values
from proxy import Proxy

# A parameter set with short keys, for tests of bytes. The same code checks the other sets.
SMALL = ["--preset", "INSECURE_RING_N256"]
MIB = 1 << 20


class OnionTest(KeyedTest):
    def onion(self, records, *args, **kwargs):
        """Builds a table of records and returns its folder."""
        return self.table(records, "onion", *args, **kwargs)


class OnionLookups(OnionTest):
    def test_records_of_every_size(self):
        # Bytes of a slot, including a fingerprint of 8 bytes: preset, plaintexts of a record, records in a plaintext.
        cases = {
            "one": (9, 300, "ONION_S", 1, 227),
            "lanes": (208, 300, "ONION_S", 1, 9),
            "two-of-s": (4096, 30, "ONION_S", 2, 1),
            "one-of-m31": (11_000, 30, "ONION_M31", 1, 1),
            "two-of-m31": (22 << 10, 30, "ONION_M31", 2, 1),
            "four": (40 << 10, 12, "ONION_M31", 4, 1),
            "five": (52 << 10, 12, "ONION_M31", 5, 1),
            "six": (60 << 10, 12, "ONION_M31", 6, 1),
        }
        tables, records = [], {}
        for name, (slot, count, preset, planes, lanes) in cases.items():
            for by, size in (("key", slot - 8), ("index", slot)):
                with self.subTest(name, by=by):
                    records[name, by] = values(count, size)
                    tables.append(self.onion(records[name, by], name=f"{name}-{by}", by=by))
                    facts = self.facts(tables[-1])
                    self.assertEqual((facts["slot_bytes"], facts["preset"]), (slot, preset))
                    self.assertEqual((facts["planes"], facts["lanes"]), (planes, lanes))
        with self.serve(*tables) as (url, _):
            uploads = []
            for (name, by), expected in records.items():
                with self.subTest(name, by=by):
                    uploads.append(self.ask_some(url, f"{name}-{by}", expected, by)["key_bytes_up"])
            # Each of the two parameter sets has one upload, at its first table.
            self.assertEqual([bool(bytes) for bytes in uploads], [i in (0, 6) for i in range(16)])

    def test_lengths_that_vary_and_few_records(self):
        self.varied_and_few({"onion": []}, varied=values(80, 300, 0), long=values(12, 65536, 0))

    def test_choices(self):
        records = values(60, 200)
        choices = {
            "m31": ["--preset", "ONION_M31"],
            "narrow": ["--columns", "8"],
            "narrowest": ["--columns", "1"],
            "wide": ["--columns", "512"],
            "fuse": ["--filter", "fuse3"],
            "fuse-narrow": ["--filter", "fuse4", "--columns", "20"],
            "band": ["--filter", "band64", "--fingerprint-bytes", "16"],
        }
        tables = [self.onion(records, *args, name=name) for name, args in choices.items()]
        # Many entries are folded, each of one or several plaintexts.
        deep = {size: values(60, size) for size in (11000, 20000)}
        tables += [self.onion(deep[size], "--columns", "4", name=f"deep{size}", by="index") for size in deep]
        facts = {table.name: self.facts(table) for table in tables}
        self.assertEqual(facts["m31"]["preset"], "ONION_M31")
        self.assertEqual([facts[f"deep{size}"]["folds"] for size in deep], [4, 4])
        self.assertEqual([facts[f"deep{size}"]["planes"] for size in deep], [1, 2])
        with self.serve(*tables) as (url, _):
            for name in choices:
                with self.subTest(name):
                    found, _ = self.ask(url, "--table", name, "k0", "nobody", "k31", "k59")
                    self.assertEqual(found, [records["k0"], None, records["k31"], records["k59"]])
            for size, expected in deep.items():
                with self.subTest(size):
                    found, _ = self.ask(url, "--table", f"deep{size}", "--index", "59", "0", "30")
                    self.assertEqual(found, [expected[f"k{i}"] for i in (59, 0, 30)])

    def test_a_preset_names_the_protocol(self):
        source = self.jsonl(values(20, 50))
        table = self.build(source, "--key", "k", "--preset", "ONION_S")
        self.assertEqual(self.facts(table)["protocol"], "onion")

    def test_answers_look_alike_on_the_wire(self):
        self.look_alike({"onion": []}, values(200, 90, 0), first="onion")

    def test_sizes_are_as_promised(self):
        # Large tables have 256 columns.
        wide = ["--columns", "256"]
        small = self.facts(self.onion(values(257, 4096), *wide, name="small", by="index"))
        large = self.facts(self.onion(values(10, 22528), "--columns", "1", name="large", by="index"))
        for facts, preset, keys, overhead in ((small, "ONION_S", 0.82, 2.5), (large, "ONION_M31", 2.1, 1.85)):
            self.assertEqual(facts["preset"], preset)
            self.assertLessEqual(facts["key_bytes"], keys * MIB)
            self.assertLessEqual(facts["query_bytes"], 3 << 10)
            self.assertLessEqual(facts["answer_bytes"], overhead * facts["max_value_bytes"])
            self.assertEqual(facts["hint_bytes"], 0)
            self.assertGreaterEqual(facts["security_bits"], 128)
            self.assertLess(facts["failure_log2"], -64)

    def test_every_level_of_the_machine(self):
        short, long = values(40, 200), values(12, 20000)
        levels = []
        for level in ("portable", "avx2", "avx512", "avx512ifma", "amx"):
            env = {**self.env, "HUSH_CPU": level}
            probe = self.hushdb("build", self.jsonl({"a": "1"}), "--out", self.dir / f"probe-{level}", env=env)
            if "this machine has no" in probe.stderr:
                continue
            levels.append(level)
            with self.subTest(level):
                tables = []
                for name, records in (("short", short), ("long", long)):
                    source, table = self.jsonl(records, f"{name}.jsonl"), self.dir / f"{name}-{level}"
                    args = ["--key", "k", "--protocol", "onion", "--out", table, "--columns", "20"]
                    self.assertEqual(self.hushdb("build", source, *args, env=env).returncode, 0)
                    tables.append(table)
                with self.serve(*tables, env=env) as (url, _):
                    for table, records in zip(tables, (short, long)):
                        found, _ = self.ask(url, "--table", table.name, "k0", "none", "k11")
                        self.assertEqual(found, [records["k0"], None, records["k11"]])
        self.assertIn("portable", levels)


class OnionKeys(OnionTest):
    def test_keys_are_uploaded_once(self):
        records = values(50, 100)
        table = self.onion(records)
        facts = self.facts(table)
        keys, port = self.dir / "keys.redb", free_port()
        serve = lambda file: self.serve(table, args=["--keys", file], listen=f"127.0.0.1:{port}")
        with serve(keys) as (url, _):
            found, stats = self.ask(url, "k1")
            self.assertEqual(found, [records["k1"]])
            self.assertEqual(stats["key_bytes_up"], facts["key_bytes"])
            self.assertEqual((stats["protocol"], stats["setup_bytes_up"]), ("onion", 0))
            # A query on the wire has its bytes, the name of the keys and the framing. An answer has its bytes and the framing.
            self.assertTrue(facts["query_bytes"] <= stats["query_bytes"] <= facts["query_bytes"] + 200, stats)
            self.assertTrue(facts["answer_bytes"] <= stats["answer_bytes"] <= facts["answer_bytes"] + 100, stats)
            found, stats = self.ask(url, "k2", "absent")
            self.assertEqual((found, stats["key_bytes_up"], stats["queries"]), ([records["k2"], None], 0, 2))
            # Another client has other keys. A client without a cache has new keys every time.
            self.assertEqual(self.ask(url, "k3", client="other")[1]["key_bytes_up"], facts["key_bytes"])
            self.assertEqual(self.ask(url, "k3", "--no-cache")[1]["key_bytes_up"], facts["key_bytes"])
            self.assertEqual(self.ask(url, "k3", "--no-cache")[1]["key_bytes_up"], facts["key_bytes"])
            result = self.hushdb("get", url, "k1", "--stats")
            self.assertEqual((result.returncode, result.stdout), (0, records["k1"]))
            self.assertIn("keys      0 B up, the server has them", result.stderr)
            self.assertIn("same client", result.stderr)
        with serve(keys) as (url, _):
            self.assertEqual(self.ask(url, "k4")[1]["key_bytes_up"], 0, "the file outlives the server")
        keys.unlink()
        for file in (keys, self.dir / "others.redb"):
            with serve(file) as (url, _):
                found, stats = self.ask(url, "k5")
                self.assertEqual((found, stats["key_bytes_up"]), ([records["k5"]], facts["key_bytes"]))
                self.assertEqual(self.ask(url, "k5")[1]["key_bytes_up"], 0)

    def test_where_keys_are_kept(self):
        table = self.onion(values(10, 20))
        with self.serve(table) as (url, _):
            self.ask(url, "k1")
            (kept,) = (self.dir / "state").rglob("*.redb")
            self.assertEqual(kept.stat().st_mode & 0o777, 0o600)
            # A second server of the same user needs its own file.
            line = self.fails("serve", table, "--listen", "127.0.0.1:0")
            self.assertIn("another server uses it", line)
            self.assertIn("--keys", line)
        for seed in (self.dir / "cache").rglob("*.seed"):
            self.assertEqual(seed.stat().st_mode & 0o777, 0o600)

    def test_a_full_store_lets_the_oldest_keys_go(self):
        records = values(10, 20)
        table = self.onion(records)
        bytes = self.facts(table)["key_bytes"]
        with self.serve(table, args=["--max-key-bytes", bytes + 4096]) as (url, _):
            for client in ("first", "second", "first"):
                found, stats = self.ask(url, "k1", client=client)
                self.assertEqual((found, stats["key_bytes_up"]), ([records["k1"]], bytes))
            self.assertEqual(self.ask(url, "k1", client="first")[1]["key_bytes_up"], 0)
        with self.serve(table, args=["--max-key-bytes", 1000, "--keys", self.dir / "none.redb"]) as (url, _):
            self.assertIn("1000 bytes of keys", self.fails("get", url, "k1"))

    def test_keys_that_go_between_two_requests(self):
        records = values(70, 40)
        table = self.onion(records)
        with (self.serve(table, args=["--keys", self.dir / "1.redb"]) as (first, _),
              self.serve(table, args=["--keys", self.dir / "2.redb"]) as (second, _), Proxy(first) as proxy):
            def switch(method, path):
                if len(proxy.sent("POST")) > 1:
                    proxy.target = second

            proxy.before = switch
            found, _ = self.ask(proxy.url, *records)
            self.assertEqual(found, list(records.values()))
            (path, body), *others = proxy.sent("PUT")
            self.assertEqual(others, [(path, body)])

    def test_keys_serve_so_many_look_ups(self):
        records = values(70, 40)
        with self.serve(self.onion(records)) as (url, _), Proxy(url) as proxy:
            steps = lambda: [method for method, *_ in proxy.requests if method != "GET"]
            limit = ("--lookups-per-key", 3)
            for key in ("k0", "k1", "absent", "k3"):
                found, stats = self.ask(proxy.url, key, *limit)
                self.assertEqual((found, stats["queries"]), ([records.get(key)], 1))
            self.assertEqual(steps(), ["PUT", "POST", "POST", "POST", "PUT", "POST"], "of all processes together")
            del proxy.requests[:]
            self.assertEqual(self.ask(proxy.url, *records, *limit)[0], list(records.values()))
            self.assertEqual(steps(), ["PUT", "POST"] * 24, "in one call, too, and no request is longer")
            self.assertEqual(len({body for _, body in proxy.sent("PUT")}), 24)
        self.assertIn("0 is not in 1..=", self.fails("get", url, "k0", "--lookups-per-key", 0))

    def test_clients_share_scans(self):
        self.share_scans({"onion": []}, values(200, 100), keys=5)

    def test_tables_of_several_protocols_side_by_side(self):
        records = {name: values(100, 60, seed=seed) for seed, name in enumerate(("a", "b", "lwe"))}
        tables = [self.onion(records[name], name=name) for name in ("a", "b")]
        source = self.jsonl(records["lwe"])
        tables.append(self.build(source, "--key", "k", "--protocol", "simple", name="lwe"))
        with self.serve(*tables) as (url, _):
            uploads = []
            for name in ("a", "lwe", "b", "lwe", "a"):
                found, stats = self.ask(url, "--table", name, "k1", "nobody", "k99")
                self.assertEqual(found, [records[name]["k1"], None, records[name]["k99"]])
                uploads.append(stats["key_bytes_up"] > 0)
            self.assertEqual(uploads, [True, False, False, False, False])

    def test_a_new_epoch_needs_no_new_keys(self):
        tables, records = [], []
        for seed, protocol in enumerate(("onion", "onion", "simple")):
            records.append(values(30, 80, seed=seed))
            source = self.jsonl(records[-1])
            (self.dir / str(seed)).mkdir()
            args = ["--key", "k", "--protocol", protocol]
            tables.append(self.build(source, *args, name=f"{seed}/table"))
        servers = [self.serve(table, args=["--keys", self.dir / f"{i}.redb"]) for i, table in enumerate(tables)]
        with servers[0] as (first, _), servers[1] as (second, _), servers[2] as (third, _), Proxy(first) as proxy:
            self.ask(proxy.url, "k1")
            # The table changes between descriptor and query, and the new server does not have the client's keys.
            for old, new, number in ((first, second, 1), (second, third, 2), (third, second, 1)):
                proxy.target, uploads = old, len(proxy.sent("PUT"))

                def switch(method, path, new=new):
                    if method == "POST":
                        proxy.target = new

                proxy.before = switch
                found, _ = self.ask(proxy.url, "k1", "nobody", "k29")
                self.assertEqual(found, [records[number]["k1"], None, records[number]["k29"]])
                self.assertEqual(len(proxy.sent("PUT")) - uploads, int(old == first))
            bodies = {body for _, body in proxy.sent("PUT")}
            self.assertEqual(len(bodies), 1)


class OnionBadRequests(OnionTest):
    def test_uploads(self):
        records = values(20, 50)
        table, other = self.onion(records, *SMALL), self.onion(records, name="other")
        with self.serve(other, args=["--keys", self.dir / "other.redb"]) as (url, _):
            (other_path, other_body), _ = self.capture(url, "k1")
        keys = self.dir / "keys.redb"
        with self.serve(table, args=["--keys", keys]) as (url, _):
            self.assertIn("INSECURE_RING_N256", self.fails("get", url, "k1"))
            (path, body), _ = self.capture(url, "k1")
            self.assertEqual(path, f"/v1/keys/{wire.blake3(body)}")
        keys.unlink()
        with self.serve(table, args=["--keys", keys]) as (url, process):
            def put(body, status, code, path=None):
                path = path or f"/v1/keys/{wire.blake3(body)}"
                return self.refused(url, "PUT", path, body, status, code)

            rng = random.Random(5)
            put(b"", 415, "unsupported_version")
            put(b"not protobuf", 400, "invalid_request")
            for size in (1, 100, 5000):
                status = request(f"{url}/v1/keys/{'ab' * 32}", rng.randbytes(size), HEADERS, method="PUT")[0]
                self.assertEqual(status, 400)
            put(bytes(len(body) + 1), 413, "too_large", path)
            put(body[:-1] + b"\0", 400, "key_mismatch", path)
            put(body, 400, "key_mismatch", f"/v1/keys/{'0' * 64}")
            put(body, 400, "invalid_request", "/v1/keys/name")
            self.assertEqual(self.ask(url, "k2")[0], [records["k2"]], "others are answered")
            # Uploads are refused with a coefficient above its modulus, another length, a longer seed, another version, or another set.
            put(body[:-64] + b"\xff" * 64, 400, "invalid_request")
            put(wire.changed(body, 4, lambda words: words[:-8]), 400, "invalid_request")
            put(wire.changed(body, 3, lambda seed: seed[:-1]), 400, "invalid_request")
            put(wire.changed(body, 1, lambda version: 2), 415, "unsupported_version")
            self.assertIn("INSECURE_RING_N256", put(wire.changed(body, 2, lambda name: b"ONION"), 400, "key_preset"))
            put(other_body, 413, "too_large", other_path)
            for sent in (0, 1, 1000, len(body) - 1):
                self.assertIn(wire.send_raw(url, "PUT", path, body[:sent], len(body)), (400, None))
            self.assertEqual(request(url + path, method="HEAD")[0], 404)
            # The server keeps only the keys of the client that asked in between.
            self.assertIn(b"hush_keys 1\n", request(url + "/metrics")[2])
            self.assertEqual(request(url + path, body, HEADERS, method="PUT")[0], 201)
            self.assertEqual(request(url + path, body, HEADERS, method="PUT")[0], 204)
            self.assertEqual(self.ask(url, "k3")[0], [records["k3"]])
            self.assertIsNone(process.poll())

    def test_keys_of_another_set(self):
        small, other = self.onion(values(20, 50), *SMALL, name="small"), self.onion(values(20, 50), name="other")
        with self.serve(small, other) as (url, _):
            (_, keys), (path, query) = self.capture(url, "--table", "small", "k1")
            # The server now has both keys: a query for one table that names the other table's keys is refused.
            (_, _), (_, theirs) = self.capture(url, "--table", "other", "k1")
            name = dict(wire.fields(dict(wire.fields(theirs))[4]))[4]
            change = lambda query: wire.changed(query, 4, lambda _: name)
            self.refused(url, "POST", path, wire.changed(query, 4, change), 400, "key_preset")
            self.assertEqual(request(url + path, query, HEADERS)[0], 200)

    def test_queries(self):
        records = values(20, 50)
        lwe = self.build(self.jsonl(records), "--key", "k", "--protocol", "simple", name="lwe")
        with self.serve(self.onion(records), lwe) as (url, process):
            _, (path, body) = self.capture(url, "--table", "table", "k1")
            self.assertEqual(request(url + path, body, HEADERS)[0], 200)

            def post(change, status, code):
                self.refused(url, "POST", path, wire.changed(body, 4, change), status, code)

            self.bad_queries(url, path, body, (3, 4))
            post(lambda query: wire.changed(query, 3, lambda words: words[:32]), 400, "invalid_request")
            post(lambda query: wire.message([(1, b"\0" * 100)]), 400, "invalid_request")
            self.assertEqual(self.ask(url, "--table", "table", "k2")[0], [records["k2"]], "others are answered")
            # A request with two queries is refused if the second is wrong.
            wrong = wire.changed(dict(wire.fields(body))[4], 3, lambda words: words[:-16] + b"\xff" * 16)
            self.refused(url, "POST", path, body + wire.message([(4, wrong)]), 400, "invalid_request")
            self.refused(url, "POST", "/v1/tables/lwe/query", body, 410, "epoch_gone")
            self.assertEqual(self.ask(url, "--table", "table", "k3")[0], [records["k3"]])
            self.assertEqual(self.ask(url, "--table", "lwe", "k3")[0], [records["k3"]])
            self.assertIsNone(process.poll())


class OnionBuilds(OnionTest):
    def test_a_killed_build_leaves_nothing(self):
        # Each record has two plaintexts, the second with one byte.
        records = {f"k{i}": f"{i:<11265}" for i in range(1000)}
        out = self.killed_builds(self.jsonl(records), "--value", "v", "--protocol", "onion", during="db.bin")
        with self.serve(out) as (url, _):
            self.assertEqual(self.ask(url, "--index", "999")[0], [records["k999"]])

    def test_a_corrupt_byte_in_each_file(self):
        table = self.onion(values(40, 200), "--columns", "5")
        self.assertEqual(sorted(path.name for path in table.iterdir()), ["db.bin", "header.json"])
        self.corrupt_bytes(table)

    def test_choices_that_cannot_be(self):
        source, out = self.jsonl(values(5000, 10)), self.dir / "out"
        for args, words in (
            (["--protocol", "simple", "--preset", "ONION_M31"], ["ONION_M31", "onion", "simple"]),
            (["--protocol", "frodo", "--preset", "ONION_S"], ["ONION_S", "onion", "frodo"]),
            (["--protocol", "onion", "--preset", "LWE_N1280_STD3_2_PLAIN"], ["LWE_N1280_STD3_2_PLAIN", "simple"]),
            (["--protocol", "onion", "--preset", "nonsense"], ["nonsense", "ONION_S"]),
            (["--preset", "nonsense"], ["nonsense", "ONION_S"]),
            (["--protocol", "onion", "--columns", "5000"], ["--columns", "1024"]),
            (["--protocol", "onion", "--columns", "1000"], ["fewer columns"]),
            (["--protocol", "onion", "--columns", "0"], ["--columns"]),
            (["--protocol", "onions"], ["onions", "onion"]),
        ):
            with self.subTest(args=args):
                line = self.fails("build", source, "--key", "k", "--out", out, *args)
                for word in words:
                    self.assertIn(word, line)
                self.assertFalse(out.exists())
        long = self.jsonl({"a": "x" * 65537}, "long.jsonl")
        self.assertIn("65536", self.fails("build", long, "--protocol", "onion", "--out", out))


if __name__ == "__main__":
    unittest.main()
