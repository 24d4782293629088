"""Cases of files that clients download, of values, and of keys. The table is one of `download`, so that the value is the file."""

import json
import re

from negative.bases import download, keys, table
from negative.cases import Cases, Piece, hash_of, hexa, of, runs
from negative.described import written
from negative.values import MAGIC


def raw(content: bytes, is_last: bool = True) -> bytes:
    return (len(content) << 3 | is_last).to_bytes(3, "little") + content


def repeated(octet: bytes, times: int, is_last: bool = True) -> bytes:
    return (times << 3 | 2 | is_last).to_bytes(3, "little") + octet


def frame(content: bytes) -> bytes:
    """Returns a frame of one segment, without its first four bytes."""
    return bytes([0x20, len(content)]) + raw(content)


def row(shared: int, rest: bytes, value: bytes = b"") -> bytes:
    return bytes([shared, len(rest)]) + rest + bytes([len(value)]) + value


class Downloads:
    """Cases whose descriptors differ in some members alone. Those are named in the texts of the file, and replaced by their values."""

    def __init__(self, name: str, bases: dict[str, dict]):
        self.bases = {base: opened(described) for base, described in bases.items()}
        self.cases = Cases(name, {base: re.sub('"(=[A-Z ]+)"', r"\1", written(described)) for base, described in self.bases.items()}, "bad_answer")

    def changed(self, base: str, described: dict) -> Piece:
        """Returns a descriptor as replacements in a text."""
        pairs = zip(leaves(self.bases[base]), leaves(described), strict=True)
        return of(base, *(part for old, new in pairs if old != new for part in (old.strip('"'), new.strip('"') if old[1] != "=" else new)))


def opened(described: dict) -> dict:
    """Returns a descriptor with names in place of its lengths and hashes. Names of numbers begin with `=`."""
    out = json.loads(json.dumps(described)) | {"epoch": "EPOCH", "hint": {"blake3": "HINT", "bytes": "=HINT"}}
    if described["records"] == 1:
        out["slot"]["max_value_bytes"] = "=LONGEST"
    else:
        out |= {"records": "=RECORDS", "columns": "=COLUMNS"}
        for name, file in (("FENCES", "fences"), ("ADDED", "added")):
            if file in out.get("sorted", {}):
                out["sorted"][file] = {"blob": {"blake3": name, "bytes": f"={name}"}, "length": f"={name} TEXT"}
    return out


def leaves(value) -> list[str]:
    """Returns the parts of a descriptor that are neither objects nor lists, as they are written."""
    if isinstance(value, dict):
        return [part for own in value.values() for part in leaves(own)]
    return [] if isinstance(value, list) else [json.dumps(value)]


def values() -> Cases:
    schema = {"key": [], "value": [["a", "any"], ["b", "any"], ["c", "any"]]}
    ordered = {"order": "bytes", "rows": 1, "overlap": 0, "fences": {"blob": file_of(FIRST), "length": 3}}
    text = {"key": [["k", "string"]], "value": [["v", "string"]]}
    compression = {"codec": "zstd", "dictionary": {"blake3": hash_of(DICTIONARY), "bytes": len(DICTIONARY)}, "max_value_bytes": 100}
    kinds = {"fields": {"schema": schema}, "leaf": {"schema": text, "sorted": ordered}, "compressed": {"compression": compression}}
    own = Downloads("values", {kind: download(bytes(77), **more) for kind, more in kinds.items()})
    own.cases.share(FIRST, DICTIONARY)

    def add(verdict, kind, name, reason, value):
        described = download(value, **kinds[kind])
        more = {"key": "b"} if kind == "leaf" else {}
        own.cases.add(verdict, f"{kind}: {name}", reason, tuple(runs(value)), descriptor=[own.changed(kind, described)], **more)

    add_fields(lambda *case: add(*case[:1], "fields", *case[1:]))
    add_leaves(lambda *case: add(*case[:1], "leaf", *case[1:]))
    add_compressed(lambda *case: add(*case[:1], "compressed", *case[1:]))
    return own.cases


def add_fields(add) -> None:
    null, text = b"\0", lambda content, kind=2: bytes([len(content) << 2 | kind]) + content
    rest = null + null
    for name, first in (("null", null), ("no text", text(b"")), ("text", text(b"abc")), ("bytes that are not UTF-8", text(b"\xff\xfe", 3)), ("no bytes", text(b"", 3))):
        add("valid", name, "plain", first + rest)
    for word in (b"true", b"-0", b"1e400", b"[1,{}]", b'{"a":null}', b"123456789012345678901234567890"):
        add("valid", f"the JSON {word.decode()}", "plain", text(word, 1) + rest)
    add("valid", "text of 16 bytes, whose head has one byte", "boundary", text(b"x" * 16) + rest)
    add("valid", "text of 32 bytes, whose head has two", "boundary", b"\x82\1" + b"x" * 32 + rest)
    add("invalid", "two fields of three", "count", null + null)
    add("invalid", "four fields of three", "trailing", null + rest + null)
    add("invalid", "a null of one byte", "length", b"\4x" + rest)
    add("invalid", "a length of one byte more", "length", b"\x0eabc")
    add("invalid", "a length of 2^32", "length", b"\x82\x80\x80\x80\x40" + rest)
    add("invalid", "a head that ends in its midst", "truncated", null + null + b"\x82")
    add("invalid", "a head of six bytes", "number", b"\x82\x80\x80\x80\x80\0" + rest)
    add("invalid", "a head that could be shorter", "form", b"\x8e\0abc" + rest)
    add("invalid", "a null whose head could be shorter", "form", b"\x80\0" + rest)
    for content in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"):
        add("invalid", f"text of the bytes {content.hex()}", "text", text(content) + rest)
    for word in (b"", b"NaN", b"01", b"1 2", b"[1", b"{a:1}", b"nul", b"'a'", b"\xff", b'"\xff"', b"[" * 60 + b"1]"):
        head = len(word) << 2 | 1
        add("invalid", f"the JSON of the bytes {word.hex()[:24]}", "syntax", bytes([head] if head < 128 else [head & 127 | 128, head >> 7]) + word + rest)


def add_leaves(add) -> None:
    """The key that is looked up is `b`. All rows are read, whatever it is."""
    add("valid", "one row", "plain", row(0, b"b", b"1"))
    add("valid", "three rows", "plain", row(0, b"a") + row(1, b"b", b"2") + row(0, b"b", b"1"))
    add("valid", "an empty key", "boundary", row(0, b"", b"1") + row(0, b"b"))
    add("valid", "a value of 128 bytes", "boundary", b"\0\1b" + b"\x80\1" + b"v" * 128)
    add("valid", "a key of 4,096 bytes", "boundary", b"\0\x80\x20" + b"b" * 4096 + b"\0")
    add("invalid", "a key of 4,097 bytes", "length", b"\0\x81\x20" + b"b" * 4097 + b"\0")
    add("invalid", "a key of 4,097 bytes of which some are shared", "length", b"\0\x80\x20" + b"b" * 4096 + b"\0" + b"\x80\x20\1b\0")
    add("invalid", "a byte alone", "truncated", b"\0")
    add("invalid", "one byte short", "truncated", row(0, b"b", b"12")[:-1])
    add("invalid", "one byte long", "trailing", row(0, b"b", b"1") + b"\0")
    add("invalid", "a number that ends in its midst", "truncated", b"\0\1b\x80")
    add("invalid", "rows in another order", "order", row(0, b"c") + row(0, b"b"))
    add("invalid", "a row that is there twice", "duplicate", row(0, b"b") + row(1, b""))
    add("invalid", "a key before its beginning", "order", row(0, b"bb") + row(1, b""))
    add("invalid", "more is shared than there is", "length", row(0, b"b") + row(2, b"x"))
    add("invalid", "a first row that shares", "length", row(1, b"b"))
    add("invalid", "less is shared than could be", "form", row(0, b"ba") + row(0, b"bb"))
    add("invalid", "a number that could be shorter", "form", b"\0\x81\0b\0")
    add("invalid", "a number of six bytes", "number", b"\0\x81\x80\x80\x80\x80\0b\0")
    add("invalid", "a length of 2^35 - 1", "length", b"\0\1b\xff\xff\xff\xff\x7f")
    add("invalid", "a key of 2^35 - 1 bytes", "length", b"\0\xff\xff\xff\xff\x7fb\0")


def add_compressed(add) -> None:
    """Values have at most 100 bytes. Blocks are raw, or repeat one byte."""
    add("valid", "a raw block", "plain", frame(b"abc"))
    add("valid", "no content", "boundary", frame(b""))
    add("valid", "100 bytes", "boundary", b"\x20\x64" + repeated(b"x", 100))
    add("valid", "two blocks", "plain", b"\x20\4" + raw(b"ab", False) + raw(b"cd"))
    add("valid", "an empty block at the end", "boundary", b"\x20\2" + raw(b"ab", False) + raw(b""))
    add("valid", "a length of four bytes", "form", b"\xa0\3\0\0\0" + raw(b"abc"))
    add("valid", "a length of eight bytes", "form", b"\xe0\3" + bytes(7) + raw(b"abc"))
    add("invalid", "101 bytes", "length", b"\x20\x65" + repeated(b"x", 101))
    add("invalid", "a length of two bytes, which is 256 or more", "length", b"\x60\0\0" + repeated(b"x", 100) + repeated(b"x", 156))
    add("invalid", "a length of 2^64 - 1", "length", b"\xe0" + b"\xff" * 8 + raw(b"abc"))
    add("invalid", "more than it says", "length", b"\x20\2" + raw(b"abc"))
    add("invalid", "less than it says", "length", b"\x20\4" + raw(b"abc"))
    add("invalid", "a thousand times more than it says", "length", b"\x20\4" + repeated(b"x", 100_000, False) + repeated(b"x", 4))
    add("invalid", "one byte", "truncated", b"\x20")
    add("invalid", "a head alone", "truncated", b"\x20\3")
    add("invalid", "one byte short", "truncated", frame(b"abc")[:-1])
    add("invalid", "one byte long", "trailing", frame(b"abc") + b"\0")
    add("invalid", "two frames", "trailing", frame(b"abc") + MAGIC + frame(b"abc"))
    add("invalid", "no last block", "truncated", b"\x20\3" + raw(b"abc", False))
    add("invalid", "with its first four bytes", "form", MAGIC + frame(b"abc"))
    add("invalid", "several segments", "form", b"\0\x50" + raw(b"abc"))
    add("invalid", "a checksum", "form", b"\x24\3" + raw(b"abc") + bytes(4))
    add("invalid", "the number of a dictionary", "form", b"\x21\1\3" + raw(b"abc"))
    add("invalid", "a reserved bit", "form", b"\x28\3" + raw(b"abc"))
    add("invalid", "a block of a kind that there is not", "type", b"\x20\3" + (3 << 3 | 7).to_bytes(3, "little") + b"abc")
    add("invalid", "a block that is longer than the frame", "length", b"\x20\3" + (99 << 3 | 1).to_bytes(3, "little") + b"abc")


FIRST = MAGIC + frame(b"\0\0\0")  # the fences of one leaf
# A dictionary of RFC 8878, section 5: its tables, and the beginning of its content.
DICTIONARY = bytes.fromhex(
    "37a430eccdf4ac622e10a8dce8303333333333333333333333414287fa8c94712365dc48dade5b4ab9535346cad88e04b92741ee49a011e301000000"
    "7aca42791d000004000080190800000365841e0000000000000000000000000000ba1300000c00000000000000005430c81b00000000000000000000"
    "00000000000100000004000000080000006c652032612070726976617465206c6f6f6b2d7570206f66207265636f726420333120696e207461626c65"
    "2033612070726976617465206c6f6f6b2d7570206f66207265636f726420333220696e207461626c652034612070726976617465206c6f6f6b2d7570"
    "206f66207265636f726420333320696e207461626c652035612070726976617465206c6f6f6b2d7570206f66207265636f726420333420696e207461"
    "626c652036612070726976617465206c6f6f6b2d7570206f66207265636f726420333520696e207461626c652030612070726976617465206c6f6f6b"
    "2d7570206f66207265636f726420333620696e207461626c652031612070726976617465206c6f6f6b2d7570206f66207265636f726420333720696e"
    "207461626c652032612070726976617465206c6f6f6b2d7570206f66207265636f726420333820696e207461626c652033612070726976617465206c"
)


def file_of(content: bytes) -> dict:
    return {"blake3": hash_of(content), "bytes": len(content)}


def files() -> Cases:
    """Hints that are frames, and fences."""
    text = {"key": [["k", "string"]], "value": [["v", "string"]]}
    slots, leaf = bytes(40), row(0, b"b", b"1")

    def hinted(content):
        return table("download", "DOWNLOAD", 4, 4, 1, (0, 0, 10), {"by": "index"}, hint=file_of(content))

    def fenced(records, file, length, added=None):
        ordered = {"order": "bytes", "rows": 1, "overlap": 0, "fences": {"blob": file_of(file), "length": length}}
        ordered |= {"added": {"blob": file_of(added[0]), "length": added[1]}} if added else {}
        slots = leaf * records
        return table("download", "DOWNLOAD", records, records, 1, (0, 0, len(leaf)), {"by": "index"}, schema=text, sorted=ordered, hint=file_of(slots))

    other = MAGIC + frame(row(0, b"base", bytes(4)))
    own = Downloads("files", {"hint": hinted(slots), "fences": fenced(2, FIRST, 3), "added": fenced(3, FIRST, 3, (other, 11))})

    def add(verdict, name, reason, base, described, content, blobs=(), code=None, key=None):
        context = {"descriptor": [own.changed(base, described)]} | ({"key": key} if key else {})
        own.cases.share(*blobs)
        own.cases.add(verdict, f"{base}: {name}", reason, tuple(runs(content)), code=code, **context)

    add_hints(lambda verdict, name, reason, content, **more: add(verdict, name, reason, "hint", hinted(more.get("named", content)), content, code=more.get("code")), slots)

    def add_fence(verdict, name, reason, content, length=None, records=2):
        file = MAGIC + frame(content)
        described = fenced(records, file, len(content) if length is None else length)
        add(verdict, name, reason, "fences", described, file, [leaf * records], key="b")

    def add_added(verdict, name, reason, content, built=b"\0\0\0", records=3):
        file, first = MAGIC + frame(content), MAGIC + frame(built)
        add(verdict, name, reason, "added", fenced(records, first, len(built), (file, len(content))), file, [first, leaf * records], key="b")

    add_fences(add_fence, add_added)
    return own.cases


def add_hints(add, slots: bytes) -> None:
    add("valid", "as it is", "plain", slots)
    add("valid", "a frame that repeats a byte", "plain", MAGIC + b"\x20\x28" + repeated(b"\0", 40))
    add("valid", "a frame that does not say its length", "form", MAGIC + b"\0\x50" + repeated(b"\0", 40))
    add("valid", "a frame of several blocks", "plain", MAGIC + b"\x20\x28" + repeated(b"\0", 39, False) + raw(b"\1"))
    add("valid", "slots that begin like a frame", "boundary", MAGIC + bytes(36))
    add("invalid", "slots that are cut", "length", slots[:-1])
    add("invalid", "one byte", "truncated", b"\0")
    add("invalid", "a frame one byte short", "truncated", (MAGIC + b"\x20\x28" + repeated(b"\0", 40))[:-1])
    add("invalid", "a frame one byte long", "trailing", MAGIC + b"\x20\x28" + repeated(b"\0", 40) + b"\0")
    add("invalid", "two frames", "trailing", 2 * (MAGIC + b"\x20\x14" + repeated(b"\0", 20)))
    add("invalid", "a frame of a byte less", "length", MAGIC + b"\x20\x27" + repeated(b"\0", 39))
    add("invalid", "a frame of a byte more", "length", MAGIC + b"\x20\x29" + repeated(b"\0", 41))
    add("invalid", "a frame of a mebibyte", "length", MAGIC + b"\xa0\0\0\x10\0" + 8 * repeated(b"\0", 1 << 17, False) + repeated(b"\0", 0))
    add("invalid", "a frame that says 2^64 - 1 bytes", "length", MAGIC + b"\xe0" + b"\xff" * 8 + repeated(b"\0", 40))
    add("invalid", "a frame of another magic number", "form", b"\x28\xb5\x2f\xfe\x20\x28" + repeated(b"\0", 40))
    add("invalid", "a file of another hash", "checksum", slots[:-1] + b"\1", named=slots, code="hint_mismatch")
    add("invalid", "a file that is longer", "length", slots + b"\0", named=slots, code="hint_mismatch")
    add("invalid", "a file that is shorter", "length", slots[:-1], named=slots, code="hint_mismatch")
    add("invalid", "no file", "missing", b"", named=slots, code="hint_mismatch")


def add_fences(add, add_added) -> None:
    first, place = row(0, b""), lambda position: position.to_bytes(4, "little")
    add("valid", "one leaf", "plain", first)
    add("valid", "as many leaves as records", "boundary", first + row(0, b"b"))
    add("valid", "leaves that share", "plain", first + row(0, b"ba") + row(1, b"b"), records=3)
    add("invalid", "no leaf", "missing", b"")
    add("invalid", "more leaves than records", "count", first + row(0, b"b") + row(0, b"c"))
    add("invalid", "a first fence that is not empty", "contradiction", row(0, b"a"))
    add("invalid", "fences in another order", "order", first + row(0, b"c") + row(0, b"b"), records=3)
    add("invalid", "a fence that is there twice", "duplicate", first + row(0, b"b") + row(1, b""), records=3)
    add("invalid", "one byte short", "truncated", (first + row(0, b"b"))[:-1])
    add("invalid", "one byte long", "trailing", first + b"\0")
    add("invalid", "less is shared than could be", "form", first + row(0, b"ba") + row(0, b"bb"), records=3)
    add("invalid", "a length of a byte more than the frame has", "length", first, length=4)
    add("invalid", "a length of a byte less than the frame has", "length", first, length=2)
    add("invalid", "a length of 64 MiB", "length", first, length=64 << 20)
    add_added("valid", "a leaf that was added", "plain", row(0, b"b", place(1)))
    add_added("valid", "the last position", "boundary", row(0, b"b", place(2)))
    add_added("valid", "no leaf that was added", "boundary", b"")
    add_added("invalid", "a position behind the last", "range", row(0, b"b", place(3)))
    add_added("invalid", "the largest position", "range", row(0, b"b", place(2**32 - 1)))
    add_added("invalid", "a position of three bytes", "length", row(0, b"b", place(1)[:3]))
    add_added("invalid", "a position of five bytes", "length", row(0, b"b", place(1) + b"\0"))
    add_added("invalid", "no position", "missing", row(0, b"b"))
    add_added("invalid", "a fence that was built, too", "duplicate", row(0, b"", place(1)))
    add_added("invalid", "more leaves than records", "count", row(0, b"b", place(1)) + row(0, b"c", place(2)) + row(0, b"d", place(1)))


def key() -> Cases:
    """Keys are looked up in a table of `download`, so that nothing of them is sent."""
    slot = bytes(9)

    def keyed(*kinds):
        schema = {"key": [[f"k{index}", kind] for index, kind in enumerate(kinds)], "value": [["v", "string"]]}
        return table("download", "DOWNLOAD", 1, 1, 1, (8, 0, 1), keys(1), schema=schema, hint=file_of(slot))

    def ordered(order):
        own = {"order": order, "rows": 1, "overlap": 0, "fences": {"blob": file_of(FIRST), "length": 3}}
        schema = {"key": [["k", "string"]], "value": [["v", "string"]]}
        return download(row(0, b"b", b"1"), schema=schema, sorted=own)

    groups = key_groups()
    orders = {"number": NUMBERS, "ip": ADDRESSES, "hex": DIGITS}
    texts = {" ".join(kinds): written(keyed(*kinds)) for kinds in groups} | {order: written(ordered(order)) for order in orders}
    own = Cases("key", texts, "bad_key")
    own.share(slot, FIRST, row(0, b"b", b"1"))
    for name, (good, bad) in ({" ".join(kinds): lists for kinds, lists in groups.items()} | orders).items():
        context = {"descriptor": [of(name)]}
        for text in good:
            own.valid(f"{name}: {shown(text)}", "plain", *runs(text), **context)
        for text in bad:
            code = "key_too_long" if len(text) > 4096 else "bad_key"
            own.invalid(f"{name}: {shown(text)}", "length" if len(text) > 4096 else "type", *runs(text), code=code, **context)
    return own


def shown(text: bytes) -> str:
    return f"{len(text)} bytes" if len(text) > 100 else repr(text)[2:-1]


NUMBERS = ([b"0", b"-1", b"+5", b" 7 ", str(2**127 - 1).encode(), str(-(2**127)).encode()], [b"", b"1.0", b"1e3", b"0x10", b"1_000", str(2**127).encode(), str(-(2**127) - 1).encode(), b"\xff"])
ADDRESSES = ([b"192.0.2.1", b"::1", b"::ffff:192.0.2.1", b"2001:DB8::1"], [b"", b"192.0.2", b"192.0.2.256", b"192.0.2.01", b"192.0.2.1/24", b"::1::", b"1:2:3:4:5:6:7", b"fe80::1%eth0", b"[::1]"])
DIGITS = ([b"", b"00ff", b"0x00FF"], [b"0", b"0xg0", b"00 ff", b"x00", b"\xff\xff"])


def key_groups() -> dict[tuple[str, ...], tuple[list[bytes], list[bytes]]]:
    """Returns keys, and texts that are not keys, by the types of the columns."""
    return {
        ("string",): ([b"", b"a", "\u00e9".encode(), b"x" * 4096], [b"\xff", b"\xed\xa0\x80", b"a\x1fb", b"x" * 4097]),
        ("string", "int8"): ([b"a\x1f1", b"\x1f-128", b"a\x1f300"], [b"a", b"a\x1f", b"a\x1f1\x1f2", b"a\x1fone", b"\xff\x1f1"]),
        ("bool",): ([b"true", b"false"], [b"", b"True", b"1", b"true "]),
        ("int8",): ([b"127", b"-128", b"+07", b"128"], [b"", b"1.0", b"1e2", b" 1", b"0x1", b"-", "\u0661".encode()]),
        ("uint64",): ([b"18446744073709551615", b"-1", b"18446744073709551616"], [b"", b"1,000", b"NaN"]),
        ("float32",): ([b"0.10", b"-1e-7", b"NaN", b"-Infinity", b"5."], [b"", b"one", b"0x1p3", b"1,5", b"--1"]),
        ("decimal128[5,2]",): ([b"1.5", b"-123.45", b"00123", b"1.500"], [b"", b".5", b"1.505", b"1234", b"+1", b"1e2"]),
        ("binary",): ([b"", b"\xff\x1f\0"], []),
        ("fixed_size_binary[2]",): ([b"\xff\x1f"], [b"", b"a", b"abc"]),
        ("date32",): ([b"2024-02-29", b"-0044-03-15", b"2000-02-29"], [b"", b"2023-02-29", b"1900-02-29", b"2024-13-01", b"2024-1-1", b"29.2.2024"]),
        ("time64[us]",): ([b"12:00:00", b"23:59:59.999999", b"12:00:00.25"], [b"", b"24:00:00", b"12:60:00", b"12:00:60", b"12:00", b"12:00:00.0000001"]),
        ("timestamp[ms,UTC]",): ([b"2024-02-29T12:00:00Z", b"2024-02-29T12:00:00.250Z"], [b"2024-02-29T12:00:00", b"2024-02-29 12:00:00Z", b"2024-02-30T12:00:00Z", b"2024-02-29T12:00:00+01:00"]),
        ("uuid",): ([b"00112233-4455-6677-8899-AABBCCDDEEFF"], [b"", b"00112233445566778899aabbccddeeff", b"{00112233-4455-6677-8899-aabbccddeeff}", b"g0112233-4455-6677-8899-aabbccddeeff"]),
    }


def cases() -> list[Cases]:
    return [files(), values(), key()]
