"""Tests of protocols with packed answers: no downloads, and keys that each client uploads once, or no keys at all."""

import json
import unittest
from typing import NamedTuple

import wire
from harness import free_port, request
from keyed import HEADERS, KeyedTest, values
from proxy import Proxy

MIB = 1 << 20


class Protocol(NamedTuple):
    """The differences between protocols in the tests that all of them run."""

    small: str  # an insecure preset with short keys, for tests of shapes and bytes: plaintexts of 256 bytes
    full: str  # the default preset of its tables
    plaintext: int  # bytes of a plaintext under that preset
    keyed: bool  # whether clients upload evaluation keys
    fields: tuple  # the fields of a query: first, second, packed, name of the keys
    files: tuple  # the files of a snapshot, sorted
    fold_fact: str  # the name of the number of folds in the output of inspect
    folds: bool = False  # whether the protocol folds the entries of a table
    longest: int = 65536  # the longest slot of the tests here, in bytes


PACK = Protocol(
    small="INSECURE_PACK_N256",
    full="PACK_M31",
    plaintext=4096,
    keyed=True,
    fields=(1, 3, 4),
    files=("db.bin", "header.json", "lifted.bin"),
    fold_fact="folds",
)
COLPACK = Protocol(
    small="INSECURE_COLPACK_N256",
    full="COLPACK_N2048_Q52",
    plaintext=2048,
    keyed=False,
    fields=(1, 3),
    files=("chain.bin", "columns.bin", "db.bin", "header.json"),
    fold_fact="external_products",
)
PROTOCOLS = {
    "colpack": COLPACK._replace(folds=True),
    "colpack-s": COLPACK._replace(files=("chain.bin", "columns.bin", "db.bin", "header.json", "hint.bin")),
    "exppack-s": PACK,
    "exppack-d": PACK._replace(fields=(1, 2, 3, 4), longest=64,
                               files=("db.bin", "db2.bin", "header.json", "lifted.bin")),
    "double-pack": PACK._replace(fields=(1, 2, 3, 4)),
    "hybrid": PACK._replace(folds=True),
}
KEYED = [name for name, protocol in PROTOCOLS.items() if protocol.keyed]
KEYLESS = [name for name, protocol in PROTOCOLS.items() if not protocol.keyed]
# The keys in a query of KEYLESS, with the bits of their 256 coefficients. The rows form an RGSW ciphertext, and exist if entries are
# folded.
QUERY_KEYS = (("rotation key", 46), ("conjugation key", 42), ("bottom row", 46), ("top row", 46))


def small(protocols, *args):
    """Returns the build arguments of the protocols, with their small presets."""
    return {name: ["--preset", PROTOCOLS[name].small, *args] for name in protocols}


def parts(query):
    """Returns the vector and the keys of a query of KEYLESS under the small preset, and checks that it names no keys."""
    fields = dict(wire.fields(query))
    assert set(fields) == {1, 3}, "a vector and keys, and no name"
    named, at = {"vector": fields[1]}, 0
    for name, bits in QUERY_KEYS:
        if at < len(fields[3]):
            named[name], at = fields[3][at:at + 256 * bits // 8], at + 256 * bits // 8
    assert at == len(fields[3]), "whole keys"
    return named


class PackedTest(KeyedTest):
    def have_nothing_in_common(self, body, other):
        """Checks that no two queries of two requests have 16 equal bytes at the same place of a part."""
        queries = [parts(query) for body in (body, other) for number, query in wire.fields(body) if number == 4]
        self.assertEqual(len({tuple(query) for query in queries}), 1, "queries of one table have the same parts")
        for index, query in enumerate(queries):
            for earlier in queries[:index]:
                for name, part in query.items():
                    self.assertEqual(len(part), len(earlier[name]), name)
                    self.assertGreaterEqual(len(part), 16, name)
                    equal = [at for at in range(0, len(part) - 15, 16) if part[at:at + 16] == earlier[name][at:at + 16]]
                    self.assertEqual(equal, [], f"bytes of the {name} that come back")


class Lookups(PackedTest):
    def test_records_of_every_size(self):
        # Bytes of a slot, including a fingerprint of 8 bytes: lanes and planes, records.
        cases = {
            "lanes": (9, 28, 1, 900),
            "lane": (64, 4, 1, 130),
            "plane": (256, 1, 1, 60),
            "planes": (400, 1, 2, 60),
            "page": (4096, 1, 16, 40),
        }
        tables, records, keyed = [], {}, []
        for protocol, args in small(PROTOCOLS, "--columns", 10).items():
            known = PROTOCOLS[protocol]
            for name, (slot, lanes, planes, count) in cases.items():
                if slot > known.longest:
                    continue
                for by, size in (("key", slot - 8), ("index", slot)):
                    with self.subTest(name, protocol=protocol, by=by):
                        label = f"{protocol}-{name}-{by}"
                        records[label] = values(count, size)
                        tables.append(self.table(records[label], protocol, *args, name=label, by=by))
                        facts = self.facts(tables[-1])
                        self.assertEqual((facts["protocol"], facts["slot_bytes"]), (protocol, slot))
                        self.assertEqual((facts["lanes"], facts["planes"]), (lanes, planes))
                        self.assertGreater(facts["entries"], 2)
                        self.assertEqual(facts[known.fold_fact] > 0, known.folds)
                        keyed.append(known.keyed)
        with self.serve(*tables) as (url, _):
            uploads = []
            for label, expected in records.items():
                with self.subTest(label):
                    stats = self.ask_some(url, label, expected, by=label.split("-")[-1])
                    self.assertEqual(stats["setup_bytes_up"], 0)
                    uploads.append(stats["key_bytes_up"] > 0)
            # All protocols share one preset, so there is one upload, at the first table that needs keys.
            first = keyed.index(True)
            self.assertEqual(uploads, [number == first for number in range(len(tables))])

    def test_presets_of_full_size(self):
        # Each case: protocol, bytes of a slot, records, columns, preset.
        cases = (
            ("exppack-s", 60, 100, None, None),
            ("exppack-d", 3, 100, None, None),
            ("double-pack", 60, 500, "7", None),
            ("double-pack", 2000, 20, "10", "VIPIR_N4096_3X29"),
            ("hybrid", 60, 100, None, None),
            ("hybrid", 4096, 20, "10", None),
            ("hybrid", 5000, 10, None, None),
            ("hybrid", 60, 100, None, "VIPIR_N4096_3X29"),
            ("colpack", 60, 1000, None, None),
            ("colpack", 4096, 20, "10", None),
            ("colpack-s", 3000, 9, "5", None),
        )
        tables, records = [], []
        for number, (protocol, slot, count, columns, preset) in enumerate(cases):
            known = PROTOCOLS[protocol]
            by = "key" if slot in (60, 5000) else "index"
            records.append(values(count, slot - 8 if by == "key" else slot))
            args = [*(["--columns", columns] if columns else []), *(["--preset", preset] if preset else [])]
            tables.append(self.table(records[-1], protocol, *args, name=str(number), by=by))
            with self.subTest(cases[number]):
                facts = self.facts(tables[-1])
                self.assertEqual(facts["preset"], preset or known.full)
                self.assertEqual(facts["planes"], -(-slot // known.plaintext))
                self.assertGreaterEqual(facts["security_bits"], 128)
                self.assertLess(facts["failure_log2"], -64)
                self.assertGreaterEqual(facts["noise_sigmas"], 12)
                masks = 2048 * 18 // 8 * facts["planes"] * facts["entries"] if protocol == "colpack-s" else 0
                self.assertEqual((facts["hint_bytes"], facts["key_bytes"] > 0), (masks, known.keyed))
        with self.serve(*tables) as (url, _):
            for number, (case, expected) in enumerate(zip(cases, records)):
                with self.subTest(case):
                    # Only a few look-ups: each takes seconds in a debug build.
                    last = len(expected) - 1
                    by_index = case[1] not in (60, 5000)
                    keys = ["--index", str(last)] if by_index else [f"k{last}", "absent"]
                    found, stats = self.ask(url, "--table", str(number), *keys)
                    self.assertEqual(found, [expected[f"k{last}"]] + [None] * (not by_index))
                    facts = self.facts(tables[number])
                    # Queries and answers on the wire have their bytes and some framing.
                    self.assertTrue(facts["query_bytes"] <= stats["query_bytes"] <= facts["query_bytes"] + 200, stats)
                    self.assertTrue(facts["answer_bytes"] <= stats["answer_bytes"] <= facts["answer_bytes"] + 100)
                    self.assertEqual(stats["setup_bytes_up"], 0)
                    self.assertLess(stats["setup_bytes_down"], 20_000 + facts["hint_bytes"])

    def test_a_mebibyte(self):
        expected = {"long": "x" * MIB, "short": "y", "empty": "", "other": "z" * (MIB - 1)}
        plain = ["--preset", "INSECURE_PLAIN"]
        choices = {**small(["hybrid"]), "onion": [], "simple": [*plain, "--columns", 3], "frodo": plain}
        limit = ["--max-value-size", MIB, "--max-tiers", 1]
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
        self.assertIn(f"raise --max-value-size, up to {16 * MIB}", line)

    def test_lengths_that_vary_and_few_records(self):
        self.varied_and_few(small(PROTOCOLS), varied=values(80, 50, 0))

    def test_answers_look_alike_on_the_wire(self):
        records = values(200, 50, 0)
        self.look_alike(small(KEYED), records, first="hybrid")
        for bodies in self.look_alike(small(KEYLESS), records).values():
            for index, body in enumerate(bodies):
                for other in bodies[:index]:
                    self.have_nothing_in_common(body, other)

    def test_every_level_of_the_machine(self):
        self.every_level(small(PROTOCOLS, "--columns", 10))

    def test_clients_share_scans(self):
        records = values(100, 50)
        self.share_scans(small(KEYED, "--columns", 20), records, keys=5)
        self.share_scans(small(KEYLESS, "--columns", 20), records, keys=0)

    def test_tables_of_all_families_side_by_side(self):
        choices = {**small(["hybrid"]), "onion": ["--preset", "INSECURE_RING_N256"], "simple": [],
                   **small(["exppack-d", "colpack"])}
        records = {name: values(100, 50, seed=seed) for seed, name in enumerate(choices)}
        tables = [self.table(records[name], name, *args, name=name) for name, args in choices.items()]
        with self.serve(*tables) as (url, _):
            uploads = []
            for name in (*choices, *choices):
                found, stats = self.ask(url, "--table", name, "k1", "nobody", "k99")
                self.assertEqual(found, [records[name]["k1"], None, records[name]["k99"]])
                uploads.append(stats["key_bytes_up"] > 0)
            self.assertEqual(uploads, [True, True, False, False, False] + [False] * 5)


class EvaluationKeys(PackedTest):
    def test_keys_are_uploaded_once(self):
        records = values(50, 50)
        choices = small(["hybrid", "double-pack"])
        tables = [self.table(records, protocol, *args, name=protocol) for protocol, args in choices.items()]
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
                # New keys are uploaded first, and the query is sent once.
                self.assertEqual((steps(proxy), stats["queries"]), (["PUT", "POST"], 1))
                found, stats = ask("double-pack", "k2")
                self.assertEqual((found, stats["key_bytes_up"]), ([records["k2"]], 0))
                self.assertEqual(steps(proxy), ["PUT", "POST", "POST"])
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
                # The server has lost the keys: it asks for them with 428, and the query is sent again.
                self.assertEqual(steps(proxy), ["POST", "PUT", "POST"])


class QueriesWithoutKeys(PackedTest):
    def test_a_look_up_made_again_is_another_query(self):
        records, newer, keys = values(200, 50), values(200, 50, seed=2), ("k1", "absent", "k199")
        for protocol, args in small(KEYLESS, "--columns", 20).items():
            tables = []
            for folder, content in (("old", records), ("new", newer)):
                (self.dir / f"{protocol}-{folder}").mkdir()
                tables.append(self.table(content, protocol, *args, name=f"{protocol}-{folder}/table"))
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
        choices = small(KEYLESS, "--columns", 20)
        tables = [self.table(records, protocol, *args, name=protocol) for protocol, args in choices.items()]
        with self.serve(*tables) as (url, _):
            for protocol in KEYLESS:
                # The connection breaks before or after the server sees the query, once or twice.
                for where, times in (("request", 1), ("answer", 1), ("answer", 2)):
                    with self.subTest(protocol=protocol, where=where, times=times), Proxy(url) as proxy:
                        def breaks(method, path):
                            return where if method == "POST" and len(proxy.sent("POST")) <= times else None

                        proxy.breaks = breaks
                        found, _ = self.ask(proxy.url, "--table", protocol, *keys)
                        self.assertEqual(found, [records["k1"], records["k2"], None])
                        bodies = [body for _, body in proxy.sent("POST")]
                        self.assertGreater(len(bodies), times)
                        # A retry sends the same bytes, or a query under another secret.
                        for index, body in enumerate(bodies):
                            for other in bodies[:index]:
                                if body != other:
                                    self.have_nothing_in_common(body, other)


class BadRequests(PackedTest):
    def test_queries(self):
        records = values(200, 50)
        choices = {**small(PROTOCOLS, "--columns", 10), "onion": ["--preset", "INSECURE_RING_N256"]}
        tables = [self.table(records, protocol, *args, name=protocol) for protocol, args in choices.items()]
        with self.serve(*tables) as (url, process):
            (_, (_, theirs)) = self.capture(url, "--table", "onion", "k1")
            other_name = dict(wire.fields(dict(wire.fields(theirs))[4]))[4]
            for protocol, known in PROTOCOLS.items():
                with self.subTest(protocol), Proxy(url) as proxy:
                    self.ask(proxy.url, "--table", protocol, "k1", client=protocol)
                    path, body = proxy.sent("POST")[-1]
                    self.assertEqual(request(url + path, body, HEADERS)[0], 200)
                    query = dict(wire.fields(body))[4]
                    self.assertEqual([field for field, _ in wire.fields(query)], list(known.fields))
                    self.bad_queries(url, path, body, known.fields)
                    if known.keyed:
                        other = wire.changed(body, 4, lambda query: wire.changed(query, 4, lambda id: other_name))
                        self.refused(url, "POST", path, other, 400, "key_preset")
                    else:
                        # A query that names keys is refused by a protocol without keys.
                        more = wire.changed(body, 4, lambda query: query + wire.message([(4, bytes(32))]))
                        self.refused(url, "POST", path, more, 400, "invalid_request")
                    # Every word is valid in a vector: the query is answered, and decrypts to noise. Bits after the last word are invalid.
                    descriptor = json.loads(request(f"{url}/v1/tables/{protocol}")[2])
                    used = descriptor["columns"] * descriptor["word_bits"][0]
                    length = (used + 7) // 8
                    for bits, status in ((used, 200), (8 * length, 200 if used % 8 == 0 else 400)):
                        ones = lambda _: ((1 << bits) - 1).to_bytes(length, "little")
                        asked = wire.changed(body, 4, lambda query: wire.changed(query, 1, ones))
                        self.assertEqual(request(url + path, asked, HEADERS)[0], status)
                    for elsewhere in choices:
                        if elsewhere != protocol:
                            self.refused(url, "POST", f"/v1/tables/{elsewhere}/query", body, 410, "epoch_gone")
                    self.assertEqual(self.ask(url, "--table", protocol, "k3")[0], [records["k3"]])
                    self.assertIsNone(process.poll())


class Builds(PackedTest):
    def test_a_killed_build_goes_on_behind_the_layout(self):
        records = values(40, 4096)
        args = ["--value", "v", "--protocol", "hybrid", "--columns", "10"]
        out = self.killed_builds(self.jsonl(records), *args, during="lifted.bin", laid_out=True)
        with self.serve(out) as (url, _):
            self.assertEqual(self.ask(url, "--index", "39")[0], [records["k39"]])

    def test_a_corrupt_byte_in_each_file(self):
        for protocol, args in small(PROTOCOLS).items():
            with self.subTest(protocol):
                table = self.table(values(40, 30), protocol, *args, name=protocol)
                self.assertEqual(sorted(path.name for path in table.iterdir()), list(PROTOCOLS[protocol].files))
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
        for protocol, preset in small(PROTOCOLS).items():
            tables = [self.table(records, protocol, *preset, *args, name=f"{protocol}-{name}")
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
        source, out = self.jsonl(values(3000, 300)), self.dir / "out"
        for args, words in (
            (["--protocol", "simple", "--preset", "PACK_M31"], ["PACK_M31", *KEYED, "simple"]),
            (["--protocol", "onion", "--preset", "VIPIR_N4096_3X29"], ["VIPIR_N4096_3X29", *KEYED, "onion"]),
            (["--protocol", "hybrid", "--preset", "ONION_S"], ["ONION_S", "onion", "hybrid"]),
            (["--protocol", "exppack-d", "--preset", "LWE_N1280_STD3_2_PLAIN"], ["frodo, simple and double"]),
            (["--protocol", "double-pack", "--preset", "nonsense"], ["nonsense", "PACK_M31", "VIPIR_N4096_3X29"]),
            (["--protocol", "exppack-d"], ["exppack-d is for the shortest", "64"]),
            (["--protocol", "hybrid", "--columns", "0"], ["--columns"]),
            (["--protocol", "exppack"], ["unknown protocol", "auto", "frodo", "onion", *KEYED]),
            (["--protocol", "hybrid", "--max-value-size", 16 * MIB + 1], ["--max-value-size", str(16 * MIB)]),
            (["--protocol", "hybrid", "--max-value-size", "299"], ["--max-value-size", "299", str(16 * MIB)]),
            (["--protocol", "colpack", "--preset", "PACK_M31"], ["PACK_M31", "hybrid", "colpack"]),
            (["--protocol", "hybrid", "--preset", "COLPACK_N2048_Q52"], ["COLPACK_N2048_Q52", "colpack", "hybrid"]),
            (["--preset", "COLPACK"], ["COLPACK", "COLPACK_N2048_Q52"]),
            (["--protocol", "colpack", "--columns", "0"], ["--columns"]),
            (["--protocol", "colpack", "--preset", COLPACK.small, "--columns", "3"], ["entries", "512", "columns"]),
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
            "longest": values(4, 65536),
        }
        lwe = ["--preset", "LWE_N1280_STD3_2_PLAIN"]
        for name, args, protocol in (
            ("few", [], "download"),
            ("few", ["--columns", "7"], "download"),
            ("few", ["--columns", "7", "--max-setup", "1"], "colpack"),
            ("short", [], "download"),
            ("long", [], "colpack"),
            ("long", ["--columns", "100", "--max-setup", "1"], "colpack"),
            ("longest", [], "download"),
            ("long", lwe, "frodo"),
            ("few", ["--preset", "PACK_M31"], "exppack-s"),
            ("few", ["--preset", "COLPACK_N2048_Q52"], "colpack"),
        ):
            with self.subTest(name, args=args):
                table = self.table(sizes[name], "auto", *args, "--force")
                self.assertEqual(self.facts(table)["protocol"], protocol)

    def test_the_default_of_a_table_by_key(self):
        table = self.build(self.jsonl(values(2000, 60)), "--key", "k", "--value", "v")
        self.assertEqual(self.facts(table)["protocol"], "download")
        # If records differ in length, the planner also considers tiers.
        table = self.build(self.jsonl({f"k{i}": "v" * (40 + 4 * (i % 500)) for i in range(20_000)}), "--key", "k", name="longer")
        self.assertEqual(self.facts(table)["protocol"], "colpack-s")


class Inspection(PackedTest):
    def inspect(self, protocol, records, columns, known):
        """Inspects a table with the full preset. Returns its facts, the bytes of its files, and the text."""
        table = self.table(values(records, 52), protocol, "--columns", columns)
        facts = self.facts(table)
        self.assertEqual({name: facts[name] for name in known}, known)
        text = self.hushdb("inspect", table).stdout
        self.assertIn(f"{protocol} with {PROTOCOLS[protocol].full}", text)
        return facts, {file["name"]: file["bytes"] for file in facts["files"]}, text

    def test_what_a_table_costs_with_evaluation_keys(self):
        known = {"lwe_dimension": 1280, "ring_degree": 4096, "lanes": 68, "planes": 1, "entries": 1, "folds": 0}
        facts, files, text = self.inspect("hybrid", 100, "30", known)
        self.assertEqual(facts["word_bits"]["packed"], 18)
        self.assertIn(facts["word_bits"]["query"], range(16, 33))
        self.assertEqual(facts["rows"], facts["blocks"] * facts["slot_bytes"])
        self.assertEqual(files["lifted.bin"], facts["lifted_bytes"])
        self.assertEqual(facts["server_bytes"], facts["encoded_bytes"] + facts["lifted_bytes"] + facts["ready_key_bytes"])
        self.assertGreater(facts["ready_key_bytes"], facts["key_bytes"])
        # A plaintext has two primes of 32 bits for each of 4096 coefficients and each of 1280 entries of the LWE secret.
        self.assertEqual(facts["lifted_bytes"], 2 * 4 * 4096 * 1280)
        self.assertLess(facts["key_bytes"], 1.3 * MIB)
        self.assertIn("40.00 MiB, kept by the server", text)
        self.assertIn("uploaded once by each client", text)
        self.assertIn("in all: database", text)

    def test_what_a_table_costs_without(self):
        known = {"lwe_dimension": 2048, "ring_degree": 2048, "lanes": 34, "planes": 1, "entries": 1,
                 "rows": 5 * 60, "columns": 406}
        facts, files, text = self.inspect("colpack", 2000, "500", known)
        self.assertEqual(files["columns.bin"], facts["pack_column_bytes"])
        self.assertEqual(facts["pack_column_bytes"], -(-facts["rows"] // 32) * 32 * 8192)
        self.assertEqual(facts["server_bytes"], sum(files.values()))
        # Files have whole panels of 32 rows and tiles of 64 columns. The chain has two polynomials of two limbs.
        self.assertEqual(files, {"db.bin": 320 * 448, "columns.bin": 320 * 8192, "chain.bin": 4 * 2048 * 4})
        self.assertIn("\n  server     2.67 MiB in all: database 140.00 KiB, pack columns 2.50 MiB, "
                      "digits and masks 32.00 KiB\n", text)
        self.assertNotIn("uploaded", text)
        self.assertNotIn("downloaded", text)


if __name__ == "__main__":
    unittest.main()
