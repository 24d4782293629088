"""A strict decoder of descriptors (docs/reference/file-formats.md, Descriptor)."""

import json
import re

import blake3

import parameters
from negative import check, ed25519

MAX_BYTES = 64 << 20
MAX_VALUE = 16 << 20
MAX_COLUMNS = 1 << 26
ZEROS = "0" * 64
CONTEXT = b"hushdb v2 2026 table signature  "
SETS = {
    "simple": {"LWE_N1280_STD3_2_RING256", "LWE_N1280_STD3_2_PLAIN"},
    "colpack": {"COLPACK_N2048_Q52"},
    "onion": {"ONION_M31", "ONION_S"},
    "download": {"DOWNLOAD"},
}
PLAIN = re.compile(
    r"bool|u?int(8|16|32|64)|float(16|32|64)|(large_)?(string|binary)|(string|binary)_view|date(32|64)|time32\[m?s\]|time64\[[un]s\]|uuid|null|any"
    r"|timestamp\[([mun]?s)(,[!-~]{0,64})?\]"
)
NESTED = {"list": 1, "large_list": 1, "fixed_size_list": 2, "struct": 1, "map": 2, "dictionary": 2}


def number(bits: int):
    return lambda value: check(type(value) is int and 0 <= value < 1 << bits, "a number out of range")


def octets(length: int | None = None):
    def judge(value):
        check(isinstance(value, str) and re.fullmatch(r"([0-9a-f]{2})*", value) is not None, "no bytes in hexadecimal")
        check(length is None or len(value) == 2 * length, "another number of bytes")

    return judge


def one_of(*allowed):
    return lambda value: check(type(value) is str and value in allowed, "a word that is not known")


def name(value):
    check(type(value) is str and re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}", value) is not None, "no name")


def listed(length: int, own):
    def judge(value):
        check(type(value) is list and len(value) == length, "a list of another length")
        [own(part) for part in value]

    return judge


def members(**known):
    """Judges an object with these members, in this order; one whose name ends with `_` may be left out."""

    def judge(value):
        check(type(value) is dict, "no object")
        wanted = [member.removesuffix("_") for member in known if not member.endswith("_") or member[:-1] in value]
        check(list(value) == wanted, "other members, or in another order")
        for member, own in known.items():
            if member.removesuffix("_") in value:
                own(value[member.removesuffix("_")])

    return judge


def columns(value) -> int:
    """Judges a list of columns, and returns how many there are with those within."""
    check(type(value) is list, "no list of columns")
    return sum(1 + column(own, 16) for own in value)


def column(value, depth: int) -> int:
    check(type(value) is list and len(value) == 2 and type(value[0]) is str, "no column")
    return of_type(value[1], depth)


def of_type(value, depth: int) -> int:
    if type(value) is str:
        check(PLAIN.fullmatch(value) is not None or is_sized(value), "a type that is not known")
        return 0
    check(type(value) is dict and len(value) == 1 and set(value) <= NESTED.keys() and depth > 0, "a type that is not known, or nested too deeply")
    [(kind, inside)] = value.items()
    if kind == "struct":
        check(type(inside) is list, "no members")
        return sum(1 + column(own, depth - 1) for own in inside)
    parts = inside if NESTED[kind] == 2 else [inside]
    check(type(parts) is list and len(parts) == NESTED[kind], "a type of other parts")
    if kind == "fixed_size_list":
        number(32)(parts[0])
        check(parts[0] <= 1 << 24, "too many elements")
        parts = parts[1:]
    if kind == "dictionary":
        check(type(parts[0]) is str and re.fullmatch(r"u?int(8|16|32|64)", parts[0]) is not None, "a dictionary is numbered by integers")
        return of_type(parts[1], depth - 1)
    return sum(1 + column(own, depth - 1) for own in parts)


def is_sized(value: str) -> bool:
    """Tells whether a type is one whose name states a length or digits."""
    if found := re.fullmatch(r"fixed_size_binary\[(\d{1,9})\]", value):
        return int(found[1]) <= 1 << 24
    found = re.fullmatch(r"decimal(32|64|128|256)\[(\d{1,3}),(-?\d{1,3})\]", value)
    return bool(found) and 1 <= int(found[2]) <= {"32": 9, "64": 18, "128": 38, "256": 76}[found[1]] and abs(int(found[3])) <= int(found[2])


def normalize(value):
    check(type(value) is list and value == [step for step in ("trim", "lower", "nfc") if step in value] and value, "other steps")


def lookup(value):
    check(type(value) is dict and value.get("by") in ("index", "key", "position"), "no way to look up")
    layer = {"filter": one_of("band64", "band128", "band256", "fuse3", "fuse4"), "seed": octets(32)}
    lists = {"thresholds": octets(), "block_seeds": octets()}
    members(by=one_of(value["by"]), **(layer | lists if value["by"] != "index" else {}))(value)


def in_range(value):
    if value != "network":
        members(to=lambda text: check(type(text) is str, "no name of a column"))(value)


BLOB = members(blake3=octets(32), bytes=number(64))
FENCES = members(blob=BLOB, length=number(64))
SLOT = members(fingerprint_bytes=number(8), length_bytes=number(8), max_value_bytes=number(32), head_bytes_=number(32))
SEGMENT = members(
    role=one_of("tier", "delta"),
    records=number(64),
    **dict.fromkeys(("columns", "blocks", "entries", "slot_bytes"), number(64)),
    lanes=members(seeds=octets(), thresholds=octets()),
    hint_=BLOB,
    whitening_=octets(32),
    database=octets(32),
)
DESCRIPTOR = members(
    version=number(32),
    epoch=octets(32),
    protocol=one_of(*SETS),
    preset=lambda value: check(type(value) is str, "no name of a set"),
    records=number(64),
    columns=number(64),
    blocks=number(64),
    word_bits_=listed(3, number(32)),
    form_=one_of("symbols"),
    slot=SLOT,
    schema_=members(key=columns, value=columns, normalize_=normalize),
    compression_=members(codec=one_of("zstd"), dictionary=BLOB, max_value_bytes=number(32)),
    lookup=lookup,
    sorted_=members(
        order=one_of("bytes", "number", "ip", "hex"), range_=in_range, rows=number(64), overlap=number(64), fences=FENCES, added_=FENCES
    ),
    hint_=BLOB,
    whitening_=octets(32),
    database=octets(32),
    segments_=lambda value: check(type(value) is list and len(value) > 0, "no segments") or [SEGMENT(own) for own in value],
    signature_=members(publisher=octets(32), name=name, serial=number(64), time=number(64), signature=octets(64)),
)


def written(value: dict) -> str:
    """Returns the only text of a descriptor."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def epoch_of(described: dict) -> str:
    text = written({name: value for name, value in described.items() if name != "signature"} | {"epoch": ZEROS})
    return blake3.blake3(text.encode(), derive_key_context="hushdb v2 2026 epoch").hexdigest()


def message_of(epoch: str, signature: dict) -> bytes:
    numbers = b"".join(signature[part].to_bytes(8, "little") for part in ("serial", "time"))
    return CONTEXT + bytes.fromhex(epoch) + numbers + signature["name"].encode()


def read(text: bytes) -> dict:
    """Returns the descriptor of a text. Raises `Refused` unless the documents allow it."""
    check(len(text) <= MAX_BYTES, "a descriptor of more than 64 MiB")
    try:
        described = json.loads(text.decode())
        is_canonical = written(described) == text.decode()
    except (ValueError, RecursionError):
        check(False, "no JSON in UTF-8")
    check(type(described) is dict and described.get("version") == 3, "another version")
    check(is_canonical, "another text than descriptors have")
    DESCRIPTOR(described)
    check(described["epoch"] == epoch_of(described), "the epoch is not the hash of the rest")
    if signature := described.get("signature"):
        parts = (bytes.fromhex(signature["publisher"]), message_of(described["epoch"], signature), bytes.fromhex(signature["signature"]))
        check(ed25519.verify(*parts), "the publisher has not signed it")
    check_slots(described)
    check_lookup(described)
    check_protocol(described)
    if compression := described.get("compression"):
        check(compression["dictionary"]["bytes"] <= 1 << 20 and compression["max_value_bytes"] <= MAX_VALUE, "a compression out of range")
    return described


def slot_bytes(slot: dict) -> int:
    return max(1, slot["fingerprint_bytes"] + slot["length_bytes"] + slot.get("head_bytes", slot["max_value_bytes"]))


def check_slots(described: dict) -> None:
    slot, segments = described["slot"], described.get("segments", [])
    longest = slot["max_value_bytes"]
    check(slot["fingerprint_bytes"] <= 16 and slot["length_bytes"] <= 4 and longest <= MAX_VALUE, "slots out of range")
    roles = [segment["role"] for segment in segments]
    check(roles == sorted(roles, reverse=True) and len(roles) < 32, "tiers behind changes, or too many segments")
    check(bool(segments) == ("head_bytes" in slot), "a head of values without segments, or segments without")
    head = slot.get("head_bytes", longest)
    tiers = [segment["slot_bytes"] for segment in segments if segment["role"] == "tier"]
    check(head + sum(tiers) == longest, "the tiers are not as long as the longest value")
    if changes := [segment["slot_bytes"] for segment in segments if segment["role"] == "delta"]:
        length = next(count for count in (1, 2, 3, 4) if longest + 1 < 256**count)
        check(changes[0] > 8 + length and sum(changes) - 8 - length == longest, "the changes are not as long as the longest value")


def check_lookup(described: dict) -> None:
    own, slot, blocks = described["lookup"], described["slot"], described["blocks"]
    segments, ordered = described.get("segments", []), described.get("sorted")
    if own["by"] == "index":
        check(slot["fingerprint_bytes"] == 0 and not segments, "a table by index with fingerprints or segments")
        check(0 < described["records"] <= described["columns"] * blocks, "records that do not fit")
    else:
        check([len(own[part]) for part in ("thresholds", "block_seeds")] == [2 * blocks] * 2, "lists of another length than the blocks")
        check(own["by"] != "key" or slot["fingerprint_bytes"] > 0, "a table by key without fingerprints")
        check(own["by"] != "position" or bool(segments) and described["records"] > 0, "a position where there are no segments")
    for segment in segments:
        check(own["filter"] in ("band64", "band128"), "a filter that is not wrapped")
        check(min(segment["columns"], described["columns"]) >= 2 * int(own["filter"][4:]), "fewer columns than the band")
        check(len(segment["lanes"]["thresholds"]) == 2 * segment["blocks"], "another number of thresholds")
        check(len(segment["lanes"]["seeds"]) == 2 * segment["entries"], "another number of seeds")
    if schema := described.get("schema"):
        check(bool(schema["key"]) == (own["by"] == "key" or ordered is not None), "columns of keys, if and only if there are keys")
        check(columns(schema["key"]) + columns(schema["value"]) <= 1 << 16, "too many columns")
        check(all(kind == "string" for _, kind in schema["key"]) or "normalize" not in schema, "text alone has a normal form")
    if ordered:
        check(own["by"] != "key" and schema is not None and len(schema["key"]) == 1, "a sorted table by key, or of several columns")
        check(ordered.get("range") != "network" or ordered["order"] == "ip", "networks in another order")
        for file in (ordered["fences"], ordered.get("added")):
            check(file is None or max(file["length"], file["blob"]["bytes"]) <= MAX_BYTES, "fences longer than there are")


def check_protocol(described: dict) -> None:
    protocol, widths = described["protocol"], described.get("word_bits")
    check(described["preset"] in SETS[protocol], "a set of another protocol")
    check((widths is not None) == (protocol in ("simple", "colpack")), "widths of words, if and only if there are words")
    check(widths is None or all(1 <= width <= 32 for width in widths), "words of no bits, or of more than 32")
    check("form" not in described, "a form of tables of tfhe")
    parts = [described | {"slot_bytes": slot_bytes(described["slot"])}, *described.get("segments", [])]
    for part in parts:
        check(0 < part["columns"] <= MAX_COLUMNS and part["blocks"] > 0 and part["slot_bytes"] > 0, "a shape of nothing, or out of range")
        check(described["columns"] % part["columns"] == 0, "columns that do not divide those of the base")
        check(protocol != "simple" or part is parts[0] or part["entries"] == 1, "entries that there are not")
        size = part["columns"] * part["blocks"] * part["slot_bytes"]
        exact = part["blocks"] * part["slot_bytes"] * parameters.LWE["LWE_N1280_STD3_2_RING256"].n * widths[1] // 8 if protocol == "simple" else size
        stated = part.get("hint", {}).get("bytes")
        has_hint = protocol in ("simple", "download")
        check((stated is not None) == has_hint, "a hint, if and only if the protocol has one")
        check(not has_hint or (stated == exact if protocol == "simple" else 0 < stated <= exact), "a hint of another length")
        check(("whitening" in part) == (protocol == "onion"), "whitening, if and only if over rings")
