"""Tests of rights: every endpoint, every kind of token, and tables inside and outside of a token's scope. Also tests that no request
reaches files outside of the server's folders."""

import contextlib
import hashlib
import http.client
import json
import pathlib
import re
import urllib.parse

import wire
from harness import free_port, request
from keyed import values
from remote import Web
from test_admin import AdminTest

DOCS = pathlib.Path(__file__).parents[2] / "docs/reference"
# Texts that name a path, but no child of a folder.
NO_NAMES = ("", ".", "..", "../tables", ".x", "a/b", "/a", "a\\b", "a b", "a\nb", "a\x1b", "a" * 65, "\u00e4")


def matrix():
    """Returns the table of rights in the documentation: endpoint, subject, and the answer for each token."""
    section = (DOCS / "http-api.md").read_text().split("## Rights\n")[1].split("\n## ")[0]
    rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")]
    head, _, *rows = rows
    return head[2:], [(row[0].split(" "), row[1], row[2:]) for row in rows]


class RightsTest(AdminTest):
    def setUp(self):
        super().setUp()
        self.tokens_file, self.gateway = self.dir / "tokens.json", self.dir / "gateway.json"
        made = self.hushdb("gateway-key", "rotate", "--keys", self.gateway)
        self.assertEqual(made.returncode, 0, made.stderr)
        scopes = {
            "query": ["--scope", "query"], "query of people": ["--scope", "query", "--table", "people"],
            "admin": ["--scope", "admin"], "admin of people": ["--scope", "admin", "--table", "people"],
        }
        self.tokens = {name: self.created(name, *args) for name, args in scopes.items()}
        self.root = {"HUSHDB_TOKEN": self.tokens["admin"]}

    def created(self, name, *args):
        result = self.hushdb("token", "create", "--tokens", self.tokens_file, "--name", name, *args)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.strip()

    @contextlib.contextmanager
    def two_tables(self):
        """Yields a server with the tables people and cities."""
        source = self.jsonl(values(50, 30))
        with self.server(args=["--tokens", self.tokens_file, "--gateway-keys", self.gateway]) as (url, _):
            for table in ("people", "cities"):
                self.admin("build", table, source, "--key", "k", "--value", "v", "--protocol", "frodo", env=self.root)
            yield url

    def as_token(self, token, url, body=None, method=None, **headers):
        """Sends a request with a token, and returns the status and JSON of the answer. `token` is a name in `tokens`."""
        if token in self.tokens:
            headers["Authorization"] = f"Bearer {self.tokens[token]}"
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        body = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
        status, _, text = request(url, body, headers, method=method)
        with contextlib.suppress(ValueError):
            return status, json.loads(text) if text else None
        return status, None

    def on_admin(self, token, path, *args, **kwargs):
        return self.as_token(token, self.admin_url + path, *args, **kwargs)

    def uploaded(self, token):
        status, upload = self.on_admin(token, "/v1/admin/uploads", {"name": "a.csv"})
        self.assertEqual(status, 201, upload)
        return upload["id"]


class Rights(RightsTest):
    def blob(self, url, table):
        text = json.dumps(self.as_token("query", f"{url}/v1/tables/{table}")[1])
        return re.search(r'"blake3": "([0-9a-f]{64})"', text)[1]

    def answered(self, url, token, method, path, of):
        """Sends a request to an endpoint about `of`, and returns the answer in the words of the documentation's table."""
        tasks = {task["request"]["table"]: task["id"] for task in self.on_admin("admin", "/v1/admin/tasks")[1]["tasks"]}
        if "/uploads/{id}" in path:
            other = "admin of people" if token == "admin" else "admin"
            maker = token if of == "own" and token.startswith("admin") else other
            path = path.replace("{id}", self.uploaded(maker))
        if "{hash}" in path:
            path = path.replace("{hash}", self.blob(url, of) if of else "00" * 32)
        path = path.replace("{table}", of).replace("{id}", str(tasks.get(of)))
        body, headers = None, {}
        if method in ("PUT", "PATCH", "POST"):
            body, headers = b"x", {"Content_Type": "application/x-protobuf", "Upload_Offset": "0"}
        if method == "POST" and path.endswith("/tasks"):
            body = {"kind": "load", "table": of}
        elif method == "POST" and path.endswith("/uploads"):
            body = {"name": "a.csv"}
        elif method == "POST" and path.endswith("-gateway"):
            headers = {"Content_Type": "message/ohttp-req"}
        base = self.admin_url if path.startswith("/v1/admin") else url
        status, answer = self.as_token(token, base + path, body, method, **headers)
        names = set()
        for member in ("tables", "tasks"):
            for entry in (answer or {}).get(member, []):
                names.add(entry["name"] if member == "tables" else entry["request"]["table"])
        return " ".join([str(status), *sorted(names)])

    def test_every_endpoint_asks_for_a_right(self):
        tokens, rows = matrix()
        self.assertEqual(tokens, ["none", *self.tokens])
        endpoints = {(method.upper(), path) for path, item in json.loads((DOCS / "openapi.json").read_text())["paths"].items()
                     for method in item if method in ("get", "head", "post", "put", "patch", "delete")}
        self.assertEqual({tuple(endpoint) for endpoint, *_ in rows}, endpoints, "every endpoint has its rights, and none else")
        with self.two_tables() as url:
            for (method, path), of, expected in rows:
                for token, cell in zip(tokens, expected):
                    with self.subTest(endpoint=f"{method} {path}", of=of, token=token):
                        self.assertEqual(self.answered(url, token, method, path, of), cell)

    def test_no_task_is_about_another_table(self):
        with self.two_tables():
            before = len(self.on_admin("admin", "/v1/admin/tasks")[1]["tasks"])
            own, foreign = self.uploaded("admin of people"), self.uploaded("admin")
            for table in ("cities", "nowhere"):
                for task in (
                    {"kind": "build", "input": {"upload": own}, "options": {"key": "k"}},
                    {"kind": "apply", "input": {"upload": own}}, {"kind": "changes", "input": {"upload": own}}, {"kind": "compact"},
                    {"kind": "load"},
                    {"kind": "load", "url": "https://hush.example/people"}, {"kind": "unload"}, {"kind": "delete"},
                ):
                    status, problem = self.on_admin("admin of people", "/v1/admin/tasks", {**task, "table": table})
                    # The answer does not reveal whether the table exists.
                    self.assertEqual((status, problem["detail"]), (403, "the token is for other tables"), task)
            # A task must not read another token's upload.
            for task in ({"kind": "build", "input": {"upload": foreign}, "options": {"key": "k"}},
                         {"kind": "apply", "delete": {"upload": foreign}}):
                status, problem = self.on_admin("admin of people", "/v1/admin/tasks", {**task, "table": "people"})
                self.assertEqual((status, problem["detail"]), (404, "there is no upload of this name"))
            self.assertEqual(len(self.on_admin("admin", "/v1/admin/tasks")[1]["tasks"]), before)
            # A list reaches all tasks that a token may see, however many others are between.
            for _ in range(3):
                self.on_admin("admin", "/v1/admin/tasks", {"kind": "load", "table": "cities"})
            listed = self.on_admin("admin of people", "/v1/admin/tasks?limit=1")[1]["tasks"]
            self.assertEqual([task["request"]["table"] for task in listed], ["people"])
            # A task within the token's scope succeeds, also by the command.
            env = {"HUSHDB_TOKEN": self.tokens["admin of people"]}
            source = self.jsonl(values(9, 9), "more.jsonl")
            self.admin("build", "people", source, "--key", "k", "--value", "v", "--protocol", "frodo", env=env)
            said = self.admin("build", "cities", source, "--key", "k", code=2, env=env).stderr
            self.assertIn("error: the token is for other tables\n", said)
            left = {path.name for path in (self.data / "uploads").iterdir()}
            self.assertEqual(left, {own, foreign}, "a task that is refused leaves no upload")
            # A part of another token's upload is refused before its body is read.
            port = int(self.admin_url.rsplit(":", 1)[1])
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.putrequest("PATCH", f"/v1/admin/uploads/{foreign}")
            token = self.tokens["admin of people"]
            for name, value in (("Authorization", f"Bearer {token}"), ("Upload-Offset", "0"), ("Content-Length", "1000000")):
                connection.putheader(name, value)
            connection.endheaders()
            self.assertEqual(connection.getresponse().status, 404)
            connection.close()
            self.assertEqual(self.admin("tables", env=env).stdout.splitlines()[0], "people")


class Names(RightsTest):
    def files(self, folder):
        """Returns all files of a folder, except those that change by themselves: tasks, caches, and the keys of clients."""
        own = {"tasks", "cache", "state"}
        found = sorted(path for path in folder.rglob("*") if own.isdisjoint(path.relative_to(folder).parts))
        return {str(path): path.is_file() and hashlib.sha256(path.read_bytes()).digest() for path in found}

    def test_no_name_leads_out_of_its_folder(self):
        with self.two_tables():
            before = self.files(self.dir)
            input = {"url": "https://hush.example/a.csv"}
            for name in NO_NAMES:
                with self.subTest(name):
                    for task in (
                        {"kind": "build", "input": input, "options": {"key": "k"}}, {"kind": "apply", "input": input},
                        {"kind": "changes", "input": input}, {"kind": "compact"}, {"kind": "load"},
                        {"kind": "load", "url": "https://hush.example/people"},
                        {"kind": "unload"}, {"kind": "delete"}, {"kind": "delete", "epoch": "00"},
                    ):
                        status, problem = self.on_admin("admin", "/v1/admin/tasks", {**task, "table": name})
                        self.assertEqual(status, 400, task)
                        self.assertIn("is not a name: a name is 1 to 64 of a-z A-Z 0-9 . _ - ", problem["detail"])
                    status, problem = self.on_admin("admin", "/v1/admin/uploads", {"name": name})
                    self.assertEqual(status, 400)
                    task = {"kind": "build", "table": "t", "input": {"upload": name}, "options": {"key": "k"}}
                    self.assertEqual(self.on_admin("admin", "/v1/admin/tasks", task)[0], 400)
                    quoted = urllib.parse.quote(name, safe="")
                    for method, path in (
                        ("POST", f"/v1/admin/tables/{quoted}/reload"), ("POST", f"/v1/admin/tables/{quoted}/compact"),
                        ("POST", f"/v1/admin/tables/{quoted}/changes"),
                        ("GET", f"/v1/admin/tasks/{quoted}"), ("POST", f"/v1/admin/tasks/{quoted}/cancel"),
                        ("PATCH", f"/v1/admin/uploads/{quoted}"), ("DELETE", f"/v1/admin/uploads/{quoted}"),
                    ):
                        body = b"" if method != "GET" else None
                        status, _ = self.on_admin("admin", path, body, method, Upload_Offset="0")
                        # An empty name makes the path of a list.
                        self.assertIn(status, (404, 405) if name == "" else (404,), path)
                    if "\n" not in name:
                        said = self.admin("delete", "--", name, code=2, env=self.root).stderr
                        self.assertIn("is not a name", said)
            self.assertEqual(self.on_admin("admin", "/v1/admin/uploads", [])[0], 400)
            self.assertEqual(self.files(self.dir), before)

    def test_settings_have_names(self):
        table = self.table(values(9, 9), "frodo")
        config, listen = self.dir / "hushdb.toml", ["--listen", "127.0.0.1:0"]
        before = self.files(self.dir)
        for name in ("..", "a/b", ".x", "a" * 65):
            with self.subTest(name):
                self.assertIn("is not a name", self.fails("serve", table, *listen, "--name", name))
                environment = {**self.env, "HUSHDB_NAME": name}
                self.assertIn("is not a name", self.fails("serve", table, *listen, env=environment))
                config.write_text(f"name = {json.dumps([name])}\ntables = {json.dumps([str(table)])}\n")
                self.assertIn("is not a name", self.fails("serve", "--config", config, *listen))
                self.assertIn("is not a name", self.fails("config", "check", config))
                config.unlink()
                refused = self.hushdb("token", "create", "--tokens", self.tokens_file, "--name", "a", "--table", name)
                self.assertIn("is not a name", refused.stderr)
        # A folder's name becomes the table's name, if it is valid.
        (self.dir / ".hidden").symlink_to(table)
        line = self.fails("serve", self.dir / ".hidden", *listen)
        self.assertIn('".hidden" is not a name', line)
        self.assertIn("--name", line)
        (self.dir / ".hidden").unlink()
        self.assertEqual(self.files(self.dir), before)

    def test_a_fetched_table_names_files_of_its_own(self):
        table = self.table(values(9, 9), "frodo")
        header = json.loads((table / "header.json").read_text())
        file = header["body"]["files"][0]["name"]
        place, cache = self.dir / "place", self.dir / "place" / "copies"
        cache.mkdir(parents=True)
        (place / "victim").write_text("as it was")
        others = header["body"]["files"][1]["name"]
        for name in ("../victim", "..", "/etc/passwd", ".x", "a/b", "a\\b", "header.json", others, "", "a" * 65):
            with self.subTest(name):
                body = json.loads(json.dumps(header["body"]))
                body["files"][0]["name"] = name
                text = json.dumps(body)
                sealed = f'{{"blake3": "{wire.blake3(text.encode())}", "body": {text}}}'
                files = {f"/people/{path.name}": path.read_bytes() for path in table.iterdir()}
                files.update({"/people/header.json": sealed.encode(), "/victim": files[f"/people/{file}"]})
                before = self.files(place)
                with Web(files) as web:
                    url = f"http://127.0.0.1:{web.port}/people"
                    line = self.fails("serve", url, "--cache", cache, "--listen", "127.0.0.1:0")
                    self.assertIn("header.json is damaged", line)
                    self.assertEqual([path for path in web.asked if not path.endswith("header.json")], [])
                self.assertEqual(self.files(place), before)
                # Nor does a folder.
                (table / "header.json").write_text(sealed)
                self.assertIn("header.json is damaged", self.fails("inspect", table))
