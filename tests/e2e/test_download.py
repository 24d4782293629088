"""Tests of `download`: clients have the whole table, and a look-up sends nothing."""

import json
import unittest

from harness import HushTest, request
from proxy import Proxy


class Download(HushTest):
    def setUp(self):
        super().setUp()
        self.rows = {f"k{i}": f"value {i}" + "!" * (i % 90) for i in range(500)}

    def facts(self, table):
        return json.loads(self.hushdb("inspect", table, "--json").stdout)

    def found(self, url, *args):
        _, answers = self.get(url, *args)
        return [answer["value"] for answer in answers]

    def test_nothing_of_a_look_up_is_sent(self):
        source = self.csv(self.rows.items())
        by_key = self.build(source, "--key", "key", "--protocol", "download", name="keyed")
        by_index = self.build(source, "--value", "value", "--protocol", "download", name="listed")
        tiers = self.build(source, "--key", "key", "--protocol", "download", "--tiers", "20,100", name="tiers")
        for table in (by_key, by_index, tiers):
            facts = self.facts(table)
            self.assertEqual((facts["protocol"], facts["query_bytes"], facts["answer_bytes"]), ("download", 0, 0))
            self.assertEqual(facts["server_bytes"], 0)
            # The hint replaces the slots: the snapshot has no other data.
            names = [file["name"] for file in facts["files"]]
            self.assertEqual(names, ["hint.bin", *(f"{number}.hint.bin" for number in range(1, 9))][: len(facts["segments"])])
            self.assertEqual(facts["hint_bytes"], sum(file["bytes"] for file in facts["files"]))
            self.assertIn("nothing of a look-up is sent", self.hushdb("inspect", table).stdout)
        self.assertLess(self.facts(by_index)["hint_bytes"], self.facts(by_index)["encoded_bytes"])
        with self.serve(by_key, by_index, tiers) as (url, _), Proxy(url) as proxy:
            for name in ("keyed", "tiers"):
                self.assertEqual(self.found(proxy.url, "--table", name, "k7", "nobody", "k499"), [self.rows["k7"], None, self.rows["k499"]])
            self.assertEqual(self.found(proxy.url, "--table", "listed", "--index", "0", "499"), [self.rows["k0"], self.rows["k499"]])
            self.assertEqual({method for method, *_ in proxy.requests}, {"GET"})
            # All later look-ups are answered from the cache.
            proxy.requests.clear()
            asked = []
            for keys in (["k1"], ["nobody"], list(self.rows)):
                self.get(proxy.url, "--table", "keyed", *keys)
                asked.append([(method, path) for method, path, _ in proxy.requests])
                proxy.requests.clear()
            self.assertTrue(asked[0] == asked[1] == asked[2], asked)
            self.assertFalse(any("/blobs/" in path for _, path in asked[0]))
            said = self.hushdb("get", url, "--table", "keyed", "k1", "--stats").stderr
            self.assertIn("asked for table 'keyed', neither what was looked up in it nor how often", said)
            self.assertIn("the hint came from the cache", said)
            line = self.fails("get", url, "--table", "keyed", "k1", "--no-cache", "--max-hint", "1000")
            self.assertIn("hint", line)
            # A hint is named by its hash: a client that has it need not revalidate it.
            descriptor = json.loads(request(f"{url}/v1/tables/keyed")[2])
            _, headers, blob = request(f"{url}/v1/blobs/{descriptor['hint']['blake3']}")
            self.assertIn("immutable", headers["Cache-Control"])
            self.assertEqual((headers["ETag"], len(blob)), (f'"{descriptor["hint"]["blake3"]}"', descriptor["hint"]["bytes"]))

    def test_changes_are_downloaded_alone(self):
        table = self.build(self.csv(self.rows.items()), "--key", "key", "--protocol", "download", "--updatable", "--changes", "50")
        base = json.loads((table / "header.json").read_text())["body"]["descriptor"]["hint"]
        changes = self.csv([("k7", "another"), ("new", "one")], name="changes.csv")
        deleted = self.dir / "gone.txt"
        deleted.write_text("k8")
        with self.serve(table, args=["--watch"]) as (url, _), Proxy(url) as proxy:
            self.assertEqual(self.found(proxy.url, "k7", "k8", "new"), [self.rows["k7"], self.rows["k8"], None])
            result = self.hushdb("apply", table, changes, "--key", "key", "--delete", deleted)
            self.assertEqual(result.returncode, 0, result.stderr)
            proxy.requests.clear()
            expected = ["another", None, "one", self.rows["k9"]]
            self.wait_for("the changes", lambda: self.found(proxy.url, "k7", "k8", "new", "k9") == expected)
            fetched = {path for _, path, _ in proxy.requests if "/blobs/" in path}
            self.assertTrue(fetched)
            self.assertNotIn(f"/v1/blobs/{base['blake3']}", fetched)

    def test_small_tables_are_downloaded_by_default(self):
        one = self.build(self.csv([("a", "x" * 60_000)]), "--key", "key", name="one")
        facts = self.facts(one)
        self.assertEqual(facts["protocol"], "download")
        self.assertLess(facts["hint_bytes"], 10_000, "compressed")
        small = self.build(self.csv(self.rows.items()), "--key", "key", "--max-setup", "1", name="small")
        self.assertEqual(self.facts(small)["hint_bytes"], 0)


if __name__ == "__main__":
    unittest.main()
