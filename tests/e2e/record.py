"""Records the answers of a server in recorded.json: `python3 tests/e2e/record.py`. Bodies are unchanged. Only headers that clients read
are kept."""

import json
import pathlib

from harness import BINARY, HushTest, request

FILE = pathlib.Path(__file__).with_name("recorded.json")
HEADERS = ("content-type", "etag", "retry-after", "www-authenticate")
# For every recording: its description, and the clients' outcomes: the words of `hushdb get`, and the kind and the code in Python, Kotlin
# and JavaScript.
OUTCOMES = {
    "no token": ("the server asks for a token", "give one with HUSHDB_TOKEN or --token", "NotAllowed", "unauthorized"),
    "another table's token": ("the token is for another table", "the server has no tables", "NoSuchTable", "no_tables"),
    "several tables": ("none was named", "choose one with --table", "NoSuchTable", "choose_table"),
    "no query": ("the query is none for the server", "the server refused the request", "Other", "invalid_request"),
    "a page": ("it is no HushDB", "does not answer like a hushdb server", "Other", "not_hushdb"),
    "elsewhere": ("it sends clients elsewhere", "the server says that it has moved to https://new.example: ", "Other", "moved"),
    "a proxy": ("a proxy lets no one in", "a proxy in front of", "ConnectionFailed", "proxy"),
}


def reply(status, headers, body):
    return {"status": status, "headers": {name: headers[name] for name in HEADERS if name in headers}, "body": body.decode()}


class Recorder(HushTest):
    def runTest(self):
        table = self.build(self.csv([("alice", "Alice"), ("bob", "Bob")]), "--key", "key", "--protocol", "colpack", name="people")
        other = self.build(self.csv([("a", "1")]), "--key", "key", "--protocol", "frodo", name="other")
        tokens = self.dir / "tokens.json"
        token = self.hushdb("token", "create", "--tokens", tokens, "--name", "x", "--table", "nothing").stdout.split()[0]
        recorded = {}
        with self.serve(table, args=("--tokens", tokens)) as (url, _):
            recorded["no token"] = {"/v1/tables": reply(*request(url + "/v1/tables"))}
            own = {"Authorization": f"Bearer {token}"}
            recorded["another table's token"] = {"/v1/tables": reply(*request(url + "/v1/tables", headers=own))}
        with self.serve(table, other) as (url, _):
            recorded["several tables"] = {"/v1/tables": reply(*request(url + "/v1/tables"))}
        with self.serve(table) as (url, _):
            paths = ["/v1/tables", "/v1/tables/people"]
            recorded["no query"] = {path: reply(*request(url + path)) for path in paths}
            query = "/v1/tables/people/query"
            refused = request(url + query, b"x", {"Content-Type": "application/x-protobuf"})
            recorded["no query"][query] = reply(*refused)
        recorded["a page"] = {"/v1/tables": {"status": 200, "headers": {"content-type": "text/html"}, "body": "<html>It works!</html>"}}
        recorded["elsewhere"] = {"/v1/tables": {"status": 301, "headers": {"location": "https://new.example/v1/tables"}, "body": ""}}
        recorded["a proxy"] = {"/v1/tables": {"status": 403, "headers": {"content-type": "text/html"}, "body": "<html>No.</html>"}}
        clients = ("get", "kind", "code")
        vectors = [{"name": name, "what": what, "replies": recorded[name], **dict(zip(clients, said, strict=True))}
                   for name, (what, *said) in OUTCOMES.items()]
        FILE.write_text(json.dumps(vectors, indent=1) + "\n")


if __name__ == "__main__":
    test = Recorder()
    test.setUp()
    try:
        test.runTest()
    finally:
        test.doCleanups()
