"""Tests of the protocol tfhe: queries of one or two hundred bytes, tables as symbols or in evaluation form."""

from keyed import KeyedTest, values

MIB = 1 << 20


class TfheTest(KeyedTest):
    def tfhe(self, records, *args, **kwargs):
        """Builds a table of records and returns its folder."""
        return self.table(records, "tfhe", *args, **kwargs)

    def test_records_of_every_size(self):
        # Bytes of a slot, including a fingerprint of 8 bytes: preset, plaintexts of a record, records in a plaintext.
        cases = {
            "short": (40, 700, "TFHE_COMPACT", 1, 16),
            "quarter": (256, 300, "TFHE_COMPACT", 1, 4),
            "half": (500, 200, "TFHE_COMPACT", 1, 2),
            "one": (1024, 60, "TFHE_COMPACT", 1, 1),
            "two": (2048, 40, "TFHE_COMPACT", 2, 1),
            "long": (2100, 40, "TFHE_FAST", 1, 2),
            "several": (20_000, 12, "TFHE_FAST", 3, 1),
        }
        tables, records = [], {}
        for name, (slot, count, preset, planes, lanes) in cases.items():
            for by, size in (("key", slot - 8), ("index", slot)):
                with self.subTest(name, by=by):
                    records[name, by] = values(count, size)
                    form = ["--form", "symbols"] if by == "key" else []
                    tables.append(self.tfhe(records[name, by], *form, name=f"{name}-{by}", by=by))
                    facts = self.facts(tables[-1])
                    self.assertEqual((facts["slot_bytes"], facts["preset"]), (slot, preset))
                    self.assertEqual((facts["planes"], facts["lanes"], 1 << facts["rotations"]), (planes, lanes, lanes))
        with self.serve(*tables) as (url, _):
            for (name, by), expected in records.items():
                with self.subTest(name, by=by):
                    self.ask_some(url, f"{name}-{by}", expected, by)

    def test_lengths_that_vary_and_few_records(self):
        self.varied_and_few({"tfhe": []}, varied=values(80, 300, 0), long=values(12, 20_000, 0))

    def test_choices(self):
        records = values(60, 200)
        choices = {
            "tiny": ["--preset", "TFHE_TINY"],
            "tiny-symbols": ["--preset", "TFHE_TINY", "--form", "symbols"],
            "fast": ["--preset", "TFHE_FAST", "--form", "symbols"],
            "narrow": ["--columns", "8"],
            "narrowest": ["--columns", "1", "--form", "evaluation"],
            "fuse": ["--filter", "fuse3"],
        }
        tables = [self.tfhe(records, *args, name=name) for name, args in choices.items()]
        with self.serve(*tables) as (url, _):
            for name in choices:
                with self.subTest(name):
                    found, _ = self.ask(url, "--table", name, "k0", "nobody", "k31", "k59")
                    self.assertEqual(found, [records["k0"], None, records["k31"], records["k59"]])

    def test_a_preset_names_the_protocol(self):
        table = self.build(self.jsonl(values(20, 50)), "--key", "k", "--preset", "TFHE_COMPACT")
        self.assertEqual(self.facts(table)["protocol"], "tfhe")

    def test_answers_look_alike_on_the_wire(self):
        self.look_alike({"tfhe": []}, values(200, 90, 0), first="tfhe")

    def test_sizes_are_as_promised(self):
        records = values(3000, 256)
        small = self.facts(self.tfhe(records, name="small", by="index"))
        # 32 columns, 3000 / 32 = 94 blocks in 24 entries of 4: 5 folds and 2 rotations of two words of 24 bits.
        self.assertEqual(small["query_bytes"] - 32, 16 + 32 * 16 // 8 + 7 * 2 * 24 // 8)
        self.assertEqual((small["answer_bytes"], small["hint_bytes"]), (2048, 0))
        self.assertLessEqual(small["key_bytes"], 0.7 * MIB)
        self.assertGreaterEqual(small["security_bits"], 128)
        self.assertLess(small["failure_log2"], -64)
        symbols = self.facts(self.tfhe(records, "--form", "symbols", name="symbols", by="index"))
        self.assertEqual(symbols["server_bytes"] - symbols["ready_key_bytes"], 24 * 32 * 1024)
        self.assertEqual(small["server_bytes"] - small["ready_key_bytes"], 32 * 32 * 8192)

    def test_changes_and_tiers(self):
        records = {**values(4000, 100, 0), **{f"long{i}": value for i, value in enumerate(values(20, 1500).values())}}
        table = self.tfhe(records, "--updatable", "--changes", "50", "--form", "symbols", "--tiers", "100,1500")
        self.assertGreater(len(self.facts(table)["segments"]), 2)
        changes = self.jsonl({"k3": "other", "k9": "x" * 1400, "new": "here"}, "changes.jsonl")
        asked = ("k3", "k9", "new", "k0", "k1", "k200", "long7", "absent")
        result = self.hushdb("apply", table, changes, "--key", "k")
        self.assertEqual(result.returncode, 0, result.stderr)
        with self.serve(table) as (url, _):
            found, _ = self.ask(url, *asked)
        expected = ["other", "x" * 1400, "here", *(records[key] for key in asked[3:-1]), None]
        self.assertEqual(found, expected)
        result = self.hushdb("compact", table)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.facts(table)["protocol"], "tfhe")
        with self.serve(table) as (url, _):
            found, _ = self.ask(url, *asked)
        self.assertEqual(found, expected)

    def test_tables_of_more_entries_than_are_folded_at_once(self):
        records = values(9000, 100)
        args = ["--preset", "INSECURE_TFHE_N256", "--columns", "4", "--form", "symbols"]
        table = self.tfhe(records, *args, by="index")
        self.assertGreater(self.facts(table)["entries"], 2048)
        with self.serve(table) as (url, _):
            asked = [0, 3, 2048 * 4 - 1, 2048 * 4, 8999]
            found, _ = self.ask(url, "--index", *map(str, asked))
            self.assertEqual(found, [records[f"k{i}"] for i in asked])

    def test_the_papers_query(self):
        records = values(60, 120)
        by_index = self.table(records, "tfhe-privks", name="index", by="index")
        by_key = self.table(records, "tfhe-privks", "--preset", "INSECURE_PRIVKS_N256", name="key")
        facts = self.facts(by_index)
        # The table has one column, and 60 blocks in 30 entries of two lanes: 5 folds and a rotation with two words of 3 bytes each, and the selector.
        self.assertEqual((facts["columns"], facts["query_bytes"] - 32), (1, 16 + (1 + 2 * 6) * 3))
        self.assertGreater(facts["key_bytes"], 20 * MIB)
        with self.serve(by_index, by_key) as (url, _):
            found, _ = self.ask(url, "--table", "index", "--index", "59", "0", "30")
            self.assertEqual(found, [records[f"k{i}"] for i in (59, 0, 30)])
            found, _ = self.ask(url, "--table", "key", "k5", "absent", "k59")
            self.assertEqual(found, [records["k5"], None, records["k59"]])

    def test_the_papers_set_decodes_where_nothing_is_folded(self):
        records, name = values(32, 150), "PPIR_N1024_SEC110"
        choice = ["--value", "v", "--protocol", "tfhe-privks", "--preset", name]
        self.assertIn("more where it folds", self.fails("build", self.jsonl(records), *choice, "--out", self.dir / "folds"))
        table = self.table(records, "tfhe-privks", "--preset", name, "--columns", "32", by="index")
        with self.serve(table) as (url, _):
            self.assertIn(f"{name}, which gives 110 bits", self.fails("get", url, "--index", "7"))
            found, _ = self.ask(url, "--index", "7", "31")
            self.assertEqual(found, [records["k7"], records["k31"]])

    def test_bad_choices_say_what_to_do(self):
        source = self.jsonl(values(20, 50))
        for args, parts in (
            (["--protocol", "simple", "--form", "symbols"], ["simple", "symbols"]),
            (["--protocol", "tfhe", "--form", "nibbles"], ["nibbles", "evaluation or symbols"]),
            (["--protocol", "tfhe", "--preset", "ONION_S"], ["ONION_S", "onion"]),
            (["--protocol", "tfhe", "--columns", "0"], ["--columns"]),
        ):
            with self.subTest(args):
                line = self.fails("build", source, "--key", "k", *args, "--out", self.dir / "out")
                for part in parts:
                    self.assertIn(part, line)
