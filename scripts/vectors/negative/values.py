"""Strict decoders of files that clients download, and of values (docs/reference/file-formats.md, Hint and slots to Sorted tables)."""

import ipaddress
import json
import re

from negative import check

MAGIC = bytes.fromhex("28b52ffd")
MAX_KEY = 4096
MAX_FENCES = 64 << 20


def number(octets: bytes, at: int) -> tuple[int, int]:
    """Reads a LEB128 of at most five bytes, as short as it can be."""
    value = 0
    for shift in range(0, 35, 7):
        check(at < len(octets), "the bytes end within a number")
        octet, at = octets[at], at + 1
        value |= (octet & 0x7F) << shift
        if octet < 0x80:
            check(octet > 0 or shift == 0, "a number that could be shorter")
            return value, at
    check(False, "a number of more than five bytes")
    raise AssertionError


def piece(octets: bytes, at: int, length: int) -> tuple[bytes, int]:
    check(length <= len(octets) - at, "the bytes end within a text")
    return octets[at : at + length], at + length


def added(octets: bytes, at: int, before: bytes) -> tuple[bytes, int]:
    """Reads a text by what it adds to the text before."""
    shared, at = number(octets, at)
    length, at = number(octets, at)
    rest, at = piece(octets, at, length)
    check(shared <= len(before), "more is shared than there is")
    check(not rest or before[shared : shared + 1] != rest[:1], "less is shared than could be")
    check(shared + length <= MAX_KEY, "a text longer than any key")
    return before[:shared] + rest, at


def leaf(octets: bytes) -> list[tuple[bytes, bytes]]:
    """Reads the rows of a leaf."""
    at, key, rows = 0, None, []
    while at < len(octets):
        own, at = added(octets, at, key or b"")
        check(key is None or own > key, "rows that are not in the order of their keys")
        length, at = number(octets, at)
        value, at = piece(octets, at, length)
        rows.append((own, value))
        key = own
    return rows


def fences(built: bytes, others: bytes, records: int) -> None:
    """Reads the fences of the leaves that were built, and of those that were added."""
    texts = [(fence, position) for position, (fence, _) in enumerate(leaf(built))]
    check(bool(texts) and texts[0][0] == b"", "the first fence is not empty")
    for fence, position in leaf(others):
        check(len(position) == 4, "a position of another length")
        texts.append((fence, int.from_bytes(position, "little")))
    check(len({fence for fence, _ in texts}) == len(texts), "two leaves with one fence")
    check(len(texts) <= records and all(position < records for _, position in texts), "more leaves than records")


def frame(octets: bytes, single: bool = False) -> tuple[int | None, bytes]:
    """Reads a frame of Zstandard whose blocks are raw or repeat one byte. Returns the length that its head states, and the content.
    `single`: it is a single segment that names neither a dictionary nor a checksum."""
    check(octets[:4] == MAGIC and len(octets) > 5, "no frame")
    head, at = octets[4], 5
    check(head & 0b1000 == 0, "a reserved bit")
    check(not single or head & 0b11_1111 == 0b10_0000, "no single segment, or one with a dictionary or a checksum")
    at += 0 if head & 0b10_0000 else 1
    at += (0, 1, 2, 4)[head & 3]
    width = {0: 1 if head & 0b10_0000 else 0, 1: 2, 2: 4, 3: 8}[head >> 6]
    stated, at = piece(octets, at, width)
    length = int.from_bytes(stated, "little") + (256 if width == 2 else 0) if width else None
    content, is_last = b"", False
    while not is_last:
        block, at = piece(octets, at, 3)
        block = int.from_bytes(block, "little")
        is_last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
        check(kind in (0, 1), "a block of another kind")
        check(size <= 128 << 10, "a block of more than 128 KiB")
        own, at = piece(octets, at, size if kind == 0 else 1)
        content += own if kind == 0 else own * size
        check(len(content) <= MAX_FENCES, "a frame of more than there can be")
    at += 4 if head & 0b100 else 0
    check(at == len(octets), "something behind the frame")
    check(length is None or length == len(content), "a content of another length than it says")
    return length, content


def hint(octets: bytes, length: int) -> bytes:
    """Reads a file that may be a frame: the slots of `download`, if their frame is shorter."""
    content = frame(octets)[1] if len(octets) < length else octets
    check(len(content) == length, "a hint of another length")
    return content


def compressed(octets: bytes, longest: int) -> bytes:
    """Reads a value as it is stored: a frame without its first four bytes."""
    length, content = frame(MAGIC + octets, single=True)
    check(length is not None and length <= longest, "a value longer than any")
    return content


def fields(octets: bytes, count: int) -> None:
    """Reads a value of several columns."""
    at = 0
    for _ in range(count):
        head, at = number(octets, at)
        content, at = piece(octets, at, head >> 2)
        check(head & 3 != 0 or not content, "a null of some bytes")
        try:
            if head & 3 in (1, 2):
                content.decode()
            if head & 3 == 1:
                json.loads(content, parse_constant=lambda word: check(False, word))
        except ValueError:
            check(False, "a field that is not text or not JSON")
    check(at == len(octets), "something behind the fields")


def is_date(text: str) -> bool:
    found = re.fullmatch(r"(-?)(\d{3,12})-(\d\d)-(\d\d)", text, re.ASCII)
    if not found:
        return False
    year, month, day = int(found[1] + found[2]), int(found[3]), int(found[4])
    days = (31, 28 + (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return 1 <= month <= 12 and 1 <= day <= days[month - 1]


def is_time(text: str, digits: int) -> bool:
    return bool(re.fullmatch(rf"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{{0,{digits}}}0*)?", text, re.ASCII))


def is_field(kind: str, text: str) -> bool:
    """Tells whether a text is a field of a type of a key column."""
    name, _, inside = kind.rstrip("]").partition("[")
    digits = {"s": 3, "ms": 3, "us": 6, "ns": 9}.get(inside.split(",")[0], 0)
    if name.startswith(("int", "uint")):
        return bool(re.fullmatch(r"[+-]?\d+", text, re.ASCII))
    if name.startswith("decimal"):
        precision, scale = map(int, inside.split(","))
        found = re.fullmatch(rf"-?0*(\d*?)(\.\d{{0,{scale}}}?0*)?", text, re.ASCII)
        return bool(found and re.match(r"-?\d", text) and len(found[1]) <= precision - scale)
    if name.startswith("timestamp"):
        text = text.removesuffix("Z") if "," in inside and text.endswith("Z") else text if "," not in inside else ""
        date, _, time = text.partition("T")
        return is_date(date) and is_time(time, digits)
    return {
        "bool": lambda: text in ("true", "false"),
        "float32": lambda: bool(re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|NaN|-?Infinity", text, re.ASCII | re.IGNORECASE)),
        "string": lambda: True,
        "null": lambda: text == "",
        "date32": lambda: is_date(text),
        "time64": lambda: is_time(text, digits),
        "uuid": lambda: bool(re.fullmatch(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", text, re.ASCII | re.IGNORECASE)),
    }[name]()


def key(octets: bytes, kinds: list[str]) -> None:
    """Reads a key of columns of these types, joined by the byte 0x1f."""
    binary = kinds in (["binary"], ["any"])
    parts = [octets] if binary or len(kinds) == 1 and kinds != ["string"] else octets.split(b"\x1f")
    check(len(parts) == len(kinds), "another number of columns", "bad_key")
    for part, kind in zip(parts, kinds, strict=True):
        if kind.startswith("fixed_size_binary"):
            check(len(part) == int(kind[18:-1]), "another length", "bad_key")
        elif kind not in ("any", "binary"):
            try:
                check(is_field(kind, part.decode()), f"no {kind}", "bad_key")
            except UnicodeDecodeError:
                check(False, "not UTF-8", "bad_key")
    check(len(octets) <= MAX_KEY, "a key longer than any", "key_too_long")


def sorted_key(octets: bytes, order: str) -> None:
    """Reads a key of a sorted table."""
    try:
        text = octets.decode().strip()
        if order == "number":
            check(bool(re.fullmatch(r"[+-]?\d+", text, re.ASCII)) and -(2**127) <= int(text) < 2**127, "no number", "bad_key")
        elif order == "ip":
            check("%" not in text, "an address with a zone", "bad_key")
            ipaddress.ip_address(text)
        elif order == "hex":
            check(bool(re.fullmatch(r"(0[xX])?([0-9a-fA-F]{2})*", text)), "no bytes in hexadecimal", "bad_key")
    except ValueError:
        check(False, "no key of this order", "bad_key")
