"""Tests of the page for browsers: its URL, who gets it, and the plan of a table. clients/page/test has the tests of its content."""

import json
import pathlib

from harness import HushTest, free_port, request

REFERENCE = pathlib.Path(__file__).parents[2] / "crates/hush-build/src/planner/reference_machine.json"
RECORDS, SIZE = 3000, 40


class Page(HushTest):
    def table(self, *args, name="people"):
        rows = [(f"k{number}", f"{number:0{SIZE}}") for number in range(RECORDS)]
        return self.build(self.csv(rows), "--key", "key", "--value", "value", *args, name=name)

    def test_where_it_is(self):
        people = self.table()
        for listen, args, is_there in (
            ("127.0.0.1:0", [], True),
            ("127.0.0.1:0", ["--page", "off"], False),
            ("127.0.0.1:0", ["--page", "--listen-health", f"127.0.0.1:{free_port()}"], True),
            ("0.0.0.0:0", ["--open"], False),
            ("0.0.0.0:0", ["--open", "--page"], True),
        ):
            with self.subTest(listen=listen, args=args):
                health = f"http://{args[2]}" if "--listen-health" in args else None
                log = self.dir / "serve.log"
                with self.serve(people, listen=listen, args=args, health=health, log=log) as (url, _):
                    expected = 200 if is_there else 404
                    for path in ("/", "/page/main.js", "/page/client/wasm/hush_bg.wasm", "/v1/tables/people/plan"):
                        self.assertEqual(request(url + path)[0], expected, path)
                    self.assertEqual(request(url + "/v1/tables")[0], 200)
                self.assertEqual("a page for browsers at http://" in log.read_text(), is_there)

    def test_its_files(self):
        with self.serve(self.table()) as (url, _):
            status, headers, text = request(url + "/")
            self.assertEqual((status, headers["content-type"]), (200, "text/html; charset=utf-8"))
            policy = dict(rule.strip().split(" ", 1) for rule in headers["content-security-policy"].split(";"))
            self.assertEqual(policy["default-src"], "'none'")
            self.assertNotIn("unsafe-inline", str(policy))
            self.assertNotIn("http", str(policy))
            # The page loads nothing from other servers, and has no inline scripts or styles, which the policy forbids.
            self.assertNotIn(b"//", text)
            for inline in (b"<style", b" style=", b" onclick=", b"<script>"):
                self.assertNotIn(inline, text)
            status, again, body = request(url + "/", headers={"If-None-Match": headers["etag"]})
            self.assertEqual((status, body, again["etag"]), (304, b"", headers["etag"]))
            self.assertEqual(request(url + "/page/client/wasm/hush_bg.wasm")[1]["content-type"], "application/wasm")
            for path in ("/page/", "/page/nothing.js", "/page/..%2f..%2fCargo.toml", "/page/%2e%2e/Cargo.toml", "/page/%ff"):
                self.assertEqual(request(url + path)[0], 404, path)
            self.assertEqual(request(url + "/", b"x")[0], 405)

    def test_before_a_token(self):
        tokens = self.dir / "tokens.json"
        token = self.hushdb("token", "create", "--tokens", tokens, "--name", "a", "--table", "people").stdout.strip()
        tables = self.table(), self.table(name="cities")
        with self.serve(*tables, args=["--tokens", tokens]) as (url, _):
            own = {"Authorization": f"Bearer {token}"}
            self.assertEqual(request(url + "/")[0], 200)
            self.assertEqual(request(url + "/page/main.js")[0], 200)
            for path, with_token in (("/v1/tables/people/plan", 200), ("/v1/tables/cities/plan", 403), ("/pages", 404)):
                self.assertEqual(request(url + path)[0], 401, path)
                self.assertEqual(request(url + path, headers=own)[0], with_token, path)

    def test_what_else_a_table_could_be(self):
        """Checks that the page plots the planner's list for such records, on the machine of the profile."""
        machine = ["--machine", REFERENCE, "--json"]
        described = self.hushdb("plan", "--records", RECORDS, "--size", SIZE, "--key", *machine)
        expected = [json.loads(line) for line in described.stdout.splitlines()]
        self.assertGreater(len(expected), 1)
        people = self.table()
        with self.serve(people) as (url, _):
            plan = json.loads(request(url + "/v1/tables/people/plan")[2])
            options = [offer.pop("options") for offer in plan["offers"]]
            self.assertEqual(plan["offers"], expected)
            self.assertFalse(plan["machine"]["is_this"])
            self.assertEqual(request(url + "/v1/tables/nothing/plan")[0], 404)
            facts = json.loads(request(url + "/v1/tables/people")[2])
        own = plan["table"]
        self.assertEqual((own["protocol"], own["preset"]), (facts["protocol"], facts["preset"]))
        self.assertEqual(own["geometry"]["columns"], facts["columns"])
        # The served table is in the list, and its options build it.
        self.assertIn(own["options"], options)

    def test_tiers_are_planned_for(self):
        """Checks that the page equals the planner's list for the records, if values are as long as their tiers."""
        rows = [{"k": f"k{number}", "v": "x" * (2000 if number % 50 == 0 else 30)} for number in range(4000)]
        source = self.dir / "long.jsonl"
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
        columns = ["--key", "k", "--value", "v"]
        listed = self.hushdb("plan", source, *columns, "--machine", REFERENCE, "--json")
        expected = [json.loads(line) for line in listed.stdout.splitlines()]
        people = self.build(source, *columns, "--tiers", "30,2000")
        with self.serve(people) as (url, _):
            plan = json.loads(request(url + "/v1/tables/table/plan")[2])
        self.assertEqual(plan["table"]["tiers"], [30, 2000])
        self.assertEqual([{key: value for key, value in offer.items() if key != "options"} for offer in plan["offers"]], expected)
