"""Checks docs/reference/openapi.json: it has the endpoints of the server, and its references exist."""

import json
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).parents[2]
DOCUMENT = json.loads((ROOT / "docs/reference/openapi.json").read_text())
ROUTES = ROOT / "crates/hush-server/src/routes/mod.rs"
METHODS = ("get", "head", "post", "put", "patch", "delete")


def routes():
    """Returns every path of the server's routers, with its methods. The relay's path and the files of the page are not endpoints."""
    called = re.compile(rf"\b({'|'.join(METHODS)})\(")
    text = ROUTES.read_text()
    found = {}
    for place in text.split(".route(")[1:]:
        path = re.match(r'\s*"([^"]+)"', place)
        if path and path[1] not in ("/", "/page/{*path}"):
            found[path[1]] = set(called.findall(re.split(r";|\n}", place)[0]))
    found["/.well-known/ohttp-gateway"] = set(called.findall(re.search(r"let own = get\(gateway[^;]*", text)[0]))
    return found


def references(value):
    if isinstance(value, dict):
        yield from ([value["$ref"]] if "$ref" in value else [])
        value = list(value.values())
    if isinstance(value, list):
        for member in value:
            yield from references(member)


class OpenApi(unittest.TestCase):
    def test_the_endpoints_are_those_of_the_server(self):
        documented = {path: {name for name in item if name in METHODS} for path, item in DOCUMENT["paths"].items()}
        self.assertEqual(documented, routes())

    def test_what_is_referred_to_is_there(self):
        for reference in references(DOCUMENT):
            place = DOCUMENT
            for name in reference.removeprefix("#/").split("/"):
                place = place[name]

    def test_parameters_are_those_of_the_paths(self):
        for path, item in DOCUMENT["paths"].items():
            for name, operation in item.items():
                given = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "path"}
                self.assertEqual(given, set(re.findall(r"{(\w+)}", path)), (name, path))
