"""The judge of each format: a decoder that takes an input and its context, and raises `Refused` if it is not allowed."""

import json
import re
import urllib.parse

import blake3

import parameters
import rlwe
from negative import Refused, check, described, values, wire
from negative.described import slot_bytes

# docs/reference/http-api.md, Problems.
STATUS = {
    400: "invalid_request key_mismatch key_preset ohttp_key ohttp_date",
    401: "unauthorized",
    403: "forbidden",
    404: "unknown_table not_found",
    409: "refused ohttp_replay",
    410: "epoch_gone",
    413: "too_large",
    415: "unsupported_media_type unsupported_version",
    428: "key_not_found",
    429: "throttled",
    500: "internal",
    503: "part_unavailable device_lost table_failed warming overloaded",
}
BY_STATUS = {401: "unauthorized", 403: "forbidden", 429: "throttled", 503: "overloaded"}


def document(octets: bytes):
    """Reads JSON (RFC 8259): without NaN, and without a member that is there twice."""

    def once(pairs):
        check(len(dict(pairs)) == len(pairs), "a member that is there twice", "not_hushdb")
        return dict(pairs)

    try:
        found = json.loads(octets.decode(), object_pairs_hook=once, parse_constant=lambda _: check(False, "no JSON", "not_hushdb"))
        json.dumps(found, ensure_ascii=False).encode()  # fails where half a pair of surrogates is escaped
        return found
    except (ValueError, RecursionError):
        check(False, "no JSON in UTF-8", "not_hushdb")


def tables(octets: bytes, _: dict) -> None:
    found = document(octets)
    check(type(found) is dict and type(found.get("tables")) is list, "no list of tables", "not_hushdb")
    for table in found["tables"]:
        check(type(table) is dict and type(table.get("name")) is str and type(table.get("state")) is str, "no table", "not_hushdb")
        check(re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}", table["name"]) is not None, "no name of a table", "not_hushdb")
        check(type(table.get("protocol")) in (str, type(None)), "no protocol", "not_hushdb")
        records = table.get("records")
        check(records is None or type(records) is int and 0 <= records < 2**64, "no number of records", "not_hushdb")


def descriptor(octets: bytes, _: dict) -> None:
    described.read(octets)


def problem(octets: bytes, context: dict) -> str:
    """Returns the code of a refusal. `Refused` has it if there is no problem document that can be read."""
    status = context["status"]
    lost = BY_STATUS.get(status) if status in (429, 503) else "proxy" if status in (401, 403, 413, 502) else "not_hushdb"
    try:
        found = document(octets)
    except Exception:
        found = None
    is_problem = type(found) is dict and type(found.get("code")) is str and type(found.get("detail")) is str
    check(is_problem, "no problem document", lost)
    code = found["code"] if found["code"] in STATUS.get(status, "").split() else BY_STATUS.get(status, "refused")
    check(code == found["code"], "a code that is not known with this status", code)
    if code == "epoch_gone" and found.get("descriptor") is not None:
        described.read(described.written(found["descriptor"]).encode())
    return code


def query_request(octets: bytes, context: dict) -> None:
    wire.request(octets, context)


def query(octets: bytes, context: dict) -> None:
    if context["field"] == "first":
        wire.packed(octets, context["columns"], context["bits"])
    elif context["preset"] in parameters.COLUMN:
        wire.column_keys(octets, parameters.COLUMN[context["preset"]], context["folds"] > 0)
    else:
        wire.ring_query(octets, parameters.RING[context["preset"]], context["selectors"], context["folds"])


def evaluation_keys(octets: bytes, context: dict) -> None:
    wire.evaluation_keys(octets, parameters.PACK[context["preset"]].ring)


def query_response(octets: bytes, context: dict) -> None:
    table = described.read(context["descriptor"])
    try:
        answers = wire.response(octets, table["epoch"], context["queries"])
    except Refused as refused:
        raise Refused(str(refused)) from None
    for answer in answers:
        if table["protocol"] == "simple":
            wire.packed(answer, table["blocks"] * slot_bytes(table["slot"]), table["word_bits"][2])
        else:
            ring = parameters.COLUMN[table["preset"]].ring
            planes = -(-slot_bytes(table["slot"]) // ring.degree)
            check(len(answer) == rlwe.answer_bytes(ring, planes, 1, table["word_bits"][1:]), "an answer of another length")


def file(octets: bytes, context: dict) -> None:
    """Judges a file to download: the one that the context does not have. Then looks a record up in a table of `download`."""
    table, blobs = described.read(context["descriptor"]), context["blobs"]
    ordered, compression = table.get("sorted"), table.get("compression")

    def fetched(blob: dict) -> bytes:
        content = blobs.get(blob["blake3"], octets)
        is_whole = len(content) == blob["bytes"] and blake3.blake3(content).hexdigest() == blob["blake3"]
        check(is_whole, "another file than the descriptor names", "hint_mismatch")
        return content

    if ordered:
        contents = [fetched(own["blob"]) for own in (ordered["fences"], ordered.get("added")) if own]
        texts = [values.frame(content)[1] for content in contents]
        lengths = [own["length"] for own in (ordered["fences"], ordered.get("added")) if own]
        check([len(text) for text in texts] == lengths, "fences of another length")
        values.fences(*(texts + [b""])[:2], table["records"])
    if compression:
        fetched(compression["dictionary"])
    slot = table["slot"]
    size = slot_bytes(slot)
    value = values.hint(fetched(table["hint"]), table["columns"] * table["blocks"] * size)[:size]
    if slot["length_bytes"]:
        length = int.from_bytes(value[: slot["length_bytes"]], "little")
        value = value[slot["length_bytes"] :][:length] if length <= slot["max_value_bytes"] else None
    if value is None:
        return
    if compression:
        value = values.compressed(value, compression["max_value_bytes"])
    if ordered:
        values.leaf(value)
    elif len(columns := table.get("schema", {}).get("value", [])) > 1:
        values.fields(value, len(columns))


def key(octets: bytes, context: dict) -> None:
    table = described.read(context["descriptor"])
    kinds = [kind for _, kind in table["schema"]["key"]]
    if (ordered := table.get("sorted")) and ordered["order"] != "bytes":
        values.sorted_key(octets, ordered["order"])
    else:
        values.key(octets, kinds)


def url(octets: bytes, _: dict) -> None:
    text = octets.decode()
    try:
        parts = urllib.parse.urlsplit(text)
        port = parts.port
    except ValueError:
        check(False, "no URL", "url")
    check(text.isascii() and not re.search(r'[\x00-\x20\x7f"<>\\^`{|}]', text), "no URL", "url")
    check(parts.scheme in ("http", "https") and "://" in text and bool(parts.hostname), "no http or https, or no host", "url")
    check("?" not in text and "#" not in text, "a query or a fragment", "url")
    check(port is None or 0 < port, "no port", "url")


def ohttp_keys(octets: bytes, _: dict) -> None:
    """Reads key configurations (RFC 9458, section 3). A point of small order is refused as RFC 9180, section 7.1.4, has it."""
    kind, suite, usable = b"\0\x20", b"\0\1\0\3", []
    while octets:
        length = int.from_bytes(octets[:2], "big")
        config, octets = octets[2 : 2 + length], octets[2 + length :]
        check(len(config) == length and len(octets) != 1, "a configuration that is cut", "relay")
        public, ciphers = config[3:35], config[37:]
        is_whole = config[1:3] == kind and len(ciphers) % 4 == 0 and int.from_bytes(config[35:37], "big") == len(ciphers)
        if is_whole and suite in [ciphers[at : at + 4] for at in range(0, len(ciphers), 4)]:
            usable.append(public)
    check(bool(usable), "no key that can be used", "relay")
    check(int.from_bytes(usable[0], "little") % 2**255 not in (0, 1, 2**255 - 20), "a point of small order", "relay")


JUDGES = {
    "ohttp_keys": ohttp_keys,
    "tables": tables,
    "descriptor": descriptor,
    "problem": problem,
    "query_request": query_request,
    "query": query,
    "evaluation_keys": evaluation_keys,
    "query_response": query_response,
    "files": file,
    "values": file,
    "key": key,
    "url": url,
}
