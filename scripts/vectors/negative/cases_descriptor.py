"""Cases of descriptors."""

import json

from negative.bases import PUBLIC, SEED, keys, seal, sealed, signed, tables
from negative.cases import Cases, hexa, of, texts_of
from negative.described import CONTEXT, written
from negative import ed25519


class Descriptors:
    def __init__(self):
        self.cases, self.texts = Cases("descriptor", tables(), "bad_answer"), tables()

    def add(self, verdict: str, name: str, reason: str, table: str, *changes: str) -> None:
        self.cases.add(verdict, f"{table}: {name}", reason, (of(table, *changes),))

    def valid(self, name: str, reason: str, table: str, *changes: str) -> None:
        """A change after which the text is sealed again."""
        self.add("valid", name, reason, table, *changes, *self.epoch(table, changes))

    def invalid(self, name: str, reason: str, table: str, *changes: str) -> None:
        self.add("invalid", name, reason, table, *changes, *self.epoch(table, changes))

    def damaged(self, name: str, reason: str, table: str, *changes: str) -> None:
        """A change after which the text is not sealed again."""
        self.add("invalid", name, reason, table, *changes)

    def epoch(self, table: str, changes: tuple[str, ...]) -> tuple[str, ...]:
        """Returns the replacement of the epoch by that of the changed text."""
        text = self.texts[table]
        for old, new in zip(changes[::2], changes[1::2], strict=True):
            assert old in text, (table, old)
            text = text.replace(old, new, 1)
        return sealed(table)["epoch"], seal(json.loads(text))["epoch"]


def add_texts(own: Descriptors) -> None:
    """Adds what is wrong with the text, whatever it says."""
    epoch, text = sealed("colpack")["epoch"], own.texts["colpack"]
    for table in own.texts:
        own.add("valid", "as it is", "plain", table)
    own.cases.invalid("nothing", "missing")
    own.cases.invalid("null", "type", "null")
    own.cases.invalid("a list", "type", "[", of("colpack"), "]")
    own.cases.invalid("an empty object", "missing", "{}")
    own.cases.invalid("a version alone", "missing", '{"version":3}')
    own.cases.invalid("a web page", "syntax", "<html>")
    own.cases.invalid("one byte short", "truncated", of("colpack", '33"}', '33"'))
    own.cases.invalid("one byte long", "trailing", of("colpack"), "}")
    own.cases.invalid("a zero behind it", "trailing", of("colpack"), hexa(b"\0"))
    own.cases.invalid("a mark of the order of bytes", "text", hexa(b"\xef\xbb\xbf"), of("colpack"))
    own.cases.invalid("a byte that is not UTF-8 behind it", "text", of("colpack"), hexa(b"\xff"))
    own.cases.invalid("lists in lists", "nesting", '{"version":3,"a":', texts_of("[", 10_000), texts_of("]", 10_000), "}")
    own.cases.invalid("objects in objects", "nesting", texts_of('{"version":', 10_000), "3", texts_of("}", 10_000))
    own.damaged("white space behind it", "form", "colpack", '33"}', '33"} ')
    own.damaged("a line between members", "form", "colpack", ',"preset"', ',\n"preset"')
    own.damaged("a letter that is escaped", "form", "colpack", '"colpack"', '"c\\u006flpack"')
    own.damaged("an epoch in capitals", "form", "colpack", epoch, epoch.upper())
    own.damaged("two members in another order", "order", "colpack", '"columns":2,"blocks":3', '"blocks":3,"columns":2')
    own.invalid("two members in another order, hashed so", "order", "colpack", '"columns":2,"blocks":3', '"blocks":3,"columns":2')
    own.damaged("a member that is not known", "unknown", "colpack", '"slot":', '"new":1,"slot":')
    own.invalid("a member that is not known, hashed so", "unknown", "colpack", '"slot":', '"new":1,"slot":')
    own.invalid("a member of the slot that is not known", "unknown", "colpack", '"max_value_bytes":5', '"max_value_bytes":5,"new":1')
    own.invalid("a member of the look-up that is not known", "unknown", "colpack", '{"by":"index"}', '{"by":"index","seed":"00"}')
    own.damaged("a member that is there twice", "duplicate", "colpack", '"columns":2', '"columns":2,"columns":2')
    own.damaged("a version that is there twice", "duplicate", "colpack", '"version":3', '"version":3,"version":3')
    own.damaged("an optional member that is null", "form", "colpack", '"database"', '"hint":null,"database"')
    own.invalid("an optional member that is null, hashed so", "form", "colpack", '"database"', '"hint":null,"database"')
    own.invalid("an optional list that is empty, hashed so", "form", "colpack", '33"}', '33","segments":[]}')
    for member in ("epoch", "protocol", "slot", "lookup", "database"):
        value = json.dumps(json.loads(text)[member], separators=(",", ":"))
        own.damaged(f"no {member}", "missing", "colpack", f'"{member}":{value}' + ("," if member != "database" else ""), "")
    for version in ("0", "2", "4", "-3", "3.0", "3e0", '"3"', "null", "18446744073709551616"):
        own.damaged(f"version {version}", "version", "colpack", '"version":3', f'"version":{version}')
    own.damaged("another epoch", "checksum", "colpack", epoch, "00" * 32)
    own.damaged("an epoch of 31 bytes", "length", "colpack", epoch, epoch[:-2])
    own.damaged("an epoch of 63 digits", "length", "colpack", epoch, epoch[:-1])
    own.damaged("an epoch of other letters", "text", "colpack", epoch, "g" + epoch[1:])
    own.damaged("the epoch of another table", "epoch", "colpack", epoch, sealed("onion")["epoch"])
    own.damaged("another number of records", "checksum", "colpack", '"records":6', '"records":5')


def add_numbers(own: Descriptors) -> None:
    for word in ("-1", "1.5", "6.0", "6e0", "1e400", "-0", "06", "+6", "NaN", "Infinity", '"6"', "null", "true", "18446744073709551616"):
        own.damaged(f"{word} records", "number", "colpack", '"records":6', f'"records":{word}')
    own.invalid("no records", "range", "colpack", '"records":6', '"records":0')
    own.invalid("one record more than slots", "range", "colpack", '"records":6', '"records":7')
    own.valid("one record less than slots", "boundary", "colpack", '"records":6', '"records":5')
    own.invalid("2^64 - 1 records", "range", "colpack", '"records":6', f'"records":{2**64 - 1}')
    for columns in (0, (1 << 26) + 1, 2**63, 2**64 - 1):
        own.invalid(f"{columns} columns", "range", "colpack", '"columns":2', f'"columns":{columns}')
    own.invalid("no blocks", "range", "colpack", '"blocks":3', '"blocks":0')
    own.invalid("2^64 - 1 blocks", "range", "keyed", '"blocks":2', f'"blocks":{2**64 - 1}')
    for widths, reason in (("[0,18,12]", "range"), ("[33,18,12]", "range"), ("[32,18]", "count"), ("[32,18,12,1]", "count"), ("[]", "count"), ("32", "type")):
        own.invalid(f"widths {widths}", reason, "colpack", "[32,18,12]", widths)
    own.invalid("widths of 2^32", "range", "colpack", "[32,18,12]", "[4294967296,18,12]")
    own.damaged("a width of 12.0", "number", "colpack", "18,12]", "18,12.0]")
    own.invalid("no widths", "missing", "colpack", '"word_bits":[32,18,12],', "")
    own.invalid("widths where there are no words", "contradiction", "onion", '"slot"', '"word_bits":[32,18,12],"slot"')
    own.invalid("a form that is not known", "unknown", "colpack", '"slot"', '"form":"polynomials","slot"')
    own.invalid("the form of another protocol", "contradiction", "colpack", '"slot"', '"form":"symbols","slot"')
    own.invalid("a protocol that is not known", "unknown", "colpack", '"colpack"', '"colpack2"')
    own.invalid("a protocol in capitals", "unknown", "colpack", '"colpack"', '"Colpack"')
    own.invalid("a set that is not known", "unknown", "colpack", "COLPACK_N2048_Q52", "COLPACK_N2048_Q53")
    own.invalid("a set of another protocol", "contradiction", "colpack", "COLPACK_N2048_Q52", "ONION_M31")
    own.invalid("no name of a set", "missing", "colpack", "COLPACK_N2048_Q52", "")


def add_slots(own: Descriptors) -> None:
    own.invalid("fingerprints in a table by index", "contradiction", "local", '"fingerprint_bytes":0', '"fingerprint_bytes":8')
    own.invalid("no fingerprints in a table by key", "contradiction", "keyed", '"fingerprint_bytes":8', '"fingerprint_bytes":0')
    own.valid("fingerprints of 16 bytes", "boundary", "keyed", '"fingerprint_bytes":8', '"fingerprint_bytes":16', '"bytes":296960', f'"bytes":{74 * 5120}')
    own.invalid("fingerprints of 17 bytes", "range", "keyed", '"fingerprint_bytes":8', '"fingerprint_bytes":17', '"bytes":296960', f'"bytes":{76 * 5120}')
    own.invalid("fingerprints of 256 bytes", "range", "keyed", '"fingerprint_bytes":8', '"fingerprint_bytes":256')
    own.valid("lengths of 4 bytes", "boundary", "keyed", '"length_bytes":1', '"length_bytes":4', '"bytes":296960', f'"bytes":{64 * 5120}')
    own.invalid("lengths of 5 bytes", "range", "keyed", '"length_bytes":1', '"length_bytes":5', '"bytes":296960', f'"bytes":{66 * 5120}')
    most = 16 << 20
    own.valid("values of 16 MiB", "boundary", "local", '"max_value_bytes":5', f'"max_value_bytes":{most}')
    own.invalid("values of a byte more than 16 MiB", "range", "local", '"max_value_bytes":5', f'"max_value_bytes":{most + 1}')
    own.invalid("values of 2^32 bytes", "range", "local", '"max_value_bytes":5', f'"max_value_bytes":{2**32}')
    own.invalid("a head without segments", "contradiction", "local", '"max_value_bytes":5', '"max_value_bytes":5,"head_bytes":5')
    own.invalid("a hint that is not there", "missing", "local", '"hint":{"blake3":"' + "22" * 32 + '","bytes":5},', "")
    own.invalid("a hint of no bytes", "length", "local", '"bytes":5', '"bytes":0')
    own.valid("a hint that is compressed", "boundary", "local", '"bytes":5', '"bytes":4')
    own.invalid("a hint of a byte more", "length", "local", '"bytes":5', '"bytes":6')
    own.invalid("a hint of a byte less", "length", "keyed", '"bytes":296960', '"bytes":296959')
    own.invalid("a hint of 2^64 - 1 bytes", "length", "keyed", '"bytes":296960', f'"bytes":{2**64 - 1}')
    blob = '"hint":{"blake3":"' + "22" * 32 + '","bytes":5},'
    own.invalid("a hint that the protocol does not have", "contradiction", "colpack", '"database"', blob + '"database"')
    own.invalid("whitening that the protocol does not have", "contradiction", "colpack", '"database"', f'"whitening":"{"55" * 32}","database"')
    own.invalid("no whitening", "missing", "onion", f'"whitening":"{"55" * 32}",', "")
    own.invalid("whitening of 31 bytes", "length", "onion", "55" * 32, "55" * 31)
    own.invalid("a database of 33 bytes", "length", "colpack", "33" * 32, "33" * 33)


def add_lookups(own: Descriptors) -> None:
    lookup = written(keys(2))
    own.invalid("a way to look up that is not known", "unknown", "colpack", '"by":"index"', '"by":"name"')
    own.invalid("a position where there are no segments", "contradiction", "keyed", '"by":"key"', '"by":"position"')
    own.invalid("a look-up by key without its members", "missing", "keyed", lookup, '{"by":"key"}')
    own.invalid("a filter that is not known", "unknown", "keyed", "band64", "band32")
    own.valid("another filter", "plain", "keyed", "band64", "fuse3")
    own.invalid("a seed of 31 bytes", "length", "keyed", "11" * 32, "11" * 31)
    for part in ("thresholds", "block_seeds"):
        own.invalid(f"one of {part} too few", "count", "keyed", f'"{part}":"0000"', f'"{part}":"00"')
        own.invalid(f"one of {part} too many", "count", "keyed", f'"{part}":"0000"', f'"{part}":"000000"')
        own.damaged(f"half a byte of {part}", "length", "keyed", f'"{part}":"0000"', f'"{part}":"000"')
    own.invalid("no tier", "missing", "tiered", '"segments":[', '"segments":[', '{"role":"tier"', '{"role":"delta"')
    own.invalid("a role that is not known", "unknown", "tiered", '"tier"', '"index"')
    own.invalid("tiers that end before the longest value", "length", "tiered", '"head_bytes":5', '"head_bytes":4', '"bytes":71680', '"bytes":66560')
    own.invalid("changes that end before the longest value", "length", "tiered", '"slot_bytes":20', '"slot_bytes":19')
    own.invalid("a segment of no slots", "range", "tiered", '"slot_bytes":6', '"slot_bytes":0')
    own.invalid("a segment of no entries", "range", "tiered", '"entries":1', '"entries":0')
    own.invalid("a segment of no blocks", "range", "tiered", '"blocks":1,"entries"', '"blocks":0,"entries"')
    own.invalid("a segment of columns that do not divide", "contradiction", "tiered", '"columns":256,"blocks":1,"entries"', '"columns":200,"blocks":1,"entries"')
    own.invalid("a segment of two thresholds for a block", "count", "tiered", '"thresholds":"00"},"hint"', '"thresholds":"0000"},"hint"')
    own.invalid("a segment of two seeds for an entry", "count", "tiered", '"seeds":"00"', '"seeds":"0000"')
    own.invalid("a filter that is not wrapped", "contradiction", "tiered", "band64", "band256")
    own.invalid("segments in a table by index", "contradiction", "placed", written(keys(1, "position")), '{"by":"index"}')


def add_schemas(own: Descriptors) -> None:
    key, value = '"key":[["k","string"]]', '["w","int64"]'
    for kind in ('"timestamp[ns,Europe/Berlin]"', '"decimal256[76,-76]"', '"fixed_size_binary[16777216]"', '{"dictionary":["uint8","large_string"]}'):
        own.valid(f"the type {kind}", "boundary", "keyed", '"int64"', kind)
    for kind in ('"int128"', '"Int64"', '"decimal256[77,0]"', '"decimal32[0,0]"', '"fixed_size_binary[16777217]"', '"time32[ns]"', '"timestamp[s"', '""'):
        own.invalid(f"the type {kind}", "unknown", "keyed", '"int64"', kind)
    nest = lambda depth: '{"list":["e",' * depth + '"bool"' + "]}" * depth
    own.valid("types that are nested 16 deep", "boundary", "keyed", '"int64"', nest(16))
    own.invalid("types that are nested 17 deep", "nesting", "keyed", '"int64"', nest(17))
    own.invalid("types that are nested 60 deep", "nesting", "keyed", '"int64"', nest(60))
    own.invalid("a dictionary that is numbered by text", "type", "keyed", '"int64"', '{"dictionary":["string","string"]}')
    own.valid("lists of 2^24 elements", "boundary", "keyed", '"int64"', '{"fixed_size_list":[16777216,["e","bool"]]}')
    own.invalid("lists of 2^24 + 1 elements", "range", "keyed", '"int64"', '{"fixed_size_list":[16777217,["e","bool"]]}')
    own.invalid("a type of two kinds", "type", "keyed", '"int64"', '{"list":["e","bool"],"map":[["a","bool"],["b","bool"]]}')
    own.valid("a struct of no members", "boundary", "keyed", '"int64"', '{"struct":[]}')
    own.invalid("a column of three parts", "count", "keyed", value, '["w","int64",1]')
    own.invalid("a column without a type", "missing", "keyed", value, '["w"]')
    own.invalid("a column whose name is a number", "type", "keyed", value, '[1,"int64"]')
    own.valid("columns of one name", "duplicate", "keyed", '"w"', '"v"')
    own.valid("a name of control characters, which are escaped", "text", "keyed", '"w"', '"\\u0000\\u001b\\n\\"\\\\"')
    own.damaged("a name of a control character that is not escaped", "text", "keyed", '"w"', '"\n"')
    own.damaged("a name of half a surrogate pair", "text", "keyed", '"w"', '"\\ud83d"')
    own.damaged("a name with a letter that is escaped", "form", "keyed", '"w"', '"\\u00e9"')
    own.valid("a name of letters beyond ASCII", "text", "keyed", '"w"', '"\u00e9\u6f22\U0001f511"')
    own.invalid("no columns of a key", "missing", "keyed", key, '"key":[]')
    own.invalid("columns of a key in a table by index", "contradiction", "local", '"lookup"', f'"schema":{{{key},"value":[]}},"lookup"')
    own.valid("a key of two columns", "plain", "keyed", key, '"key":[["k","string"],["l","int8"]]')
    own.valid("all steps of the normal form", "boundary", "keyed", value + "]", value + '],"normalize":["trim","lower","nfc"]')
    own.invalid("a step that is there twice", "duplicate", "keyed", value + "]", value + '],"normalize":["trim","trim"]')
    own.invalid("steps in another order", "order", "keyed", value + "]", value + '],"normalize":["nfc","trim"]')
    own.invalid("a step that is not known", "unknown", "keyed", value + "]", value + '],"normalize":["upper"]')


def add_files(own: Descriptors) -> None:
    dictionary = '"bytes":9},"max_value_bytes":100'
    own.valid("a dictionary of 1 MiB", "boundary", "packed", dictionary, dictionary.replace("9", str(1 << 20)))
    own.invalid("a dictionary of a byte more than 1 MiB", "range", "packed", dictionary, dictionary.replace("9", str((1 << 20) + 1)))
    own.invalid("a codec that is not known", "unknown", "packed", "zstd", "lz4")
    own.valid("values of 16 MiB", "boundary", "packed", '"max_value_bytes":100', f'"max_value_bytes":{16 << 20}')
    own.invalid("values of a byte more than 16 MiB", "range", "packed", '"max_value_bytes":100', f'"max_value_bytes":{(16 << 20) + 1}')
    own.invalid("an order that is not known", "unknown", "ordered", '"order":"ip"', '"order":"name"')
    own.invalid("networks in another order", "contradiction", "ordered", '"order":"ip"', '"order":"bytes"')
    own.valid("ranges up to a column", "plain", "ordered", '"network"', '{"to":"last"}')
    own.invalid("a form of ranges that is not known", "unknown", "ordered", '"network"', '{"from":"first"}')
    own.invalid("a key of two columns", "contradiction", "ordered", '["net","string"]', '["net","string"],["b","string"]')
    own.invalid("fences of a byte more than 64 MiB", "range", "ordered", '"length":1', f'"length":{(64 << 20) + 1}')
    own.invalid("a file of fences of a byte more than 64 MiB", "range", "ordered", '"bytes":9', f'"bytes":{(64 << 20) + 1}')
    schema = written(sealed("ordered")["schema"])
    own.invalid("no schema", "missing", "ordered", f'"schema":{schema},', "")


def add_signatures(own: Descriptors) -> None:
    signature = sealed("signed")["signature"]["signature"]
    again = lambda **more: signed(sealed("colpack"), **more)["signature"]["signature"]
    own.damaged("one bit of the signature", "signature", "signed", signature, f"{int(signature[0], 16) ^ 1:x}" + signature[1:])
    own.damaged("the signature of another serial", "signature", "signed", '"serial":7', '"serial":8')
    own.damaged("the signature of another time", "signature", "signed", '"time":1800000000', '"time":1800000001')
    own.damaged("the signature of another name", "signature", "signed", '"name":"table"', '"name":"tables"')
    own.damaged("the signature of another publisher", "signature", "signed", PUBLIC, ed25519.sign(bytes(32), b"")[0].hex())
    other = signed(sealed("onion"))["signature"]["signature"]
    own.damaged("the signature of another epoch", "signature", "signed", signature, other)
    own.damaged("a signature of zeros", "signature", "signed", signature, "00" * 64)
    second = int.from_bytes(bytes.fromhex(signature[64:]), "little") + ed25519.ORDER
    own.damaged("the second form of the signature", "form", "signed", signature, signature[:64] + second.to_bytes(32, "little").hex())
    # With a key of order 1, R = S B is a signature of every message unless small orders are refused.
    small, first = (1).to_bytes(32, "little").hex(), ed25519.encoded(ed25519.BASE).hex()
    own.damaged("a key of small order", "signature", "signed", PUBLIC, small, signature, first + (1).to_bytes(32, "little").hex())
    own.damaged("a key that is no point", "signature", "signed", PUBLIC, "02" + "00" * 31)
    own.damaged("a signature of 63 bytes", "length", "signed", signature, signature[:-2])
    own.add("valid", "a signature of the largest numbers", "boundary", "signed", '"serial":7', f'"serial":{2**64 - 1}', '"time":1800000000', f'"time":{2**64 - 1}', signature, again(serial=2**64 - 1, time=2**64 - 1))
    own.add("valid", "a name of 64 letters", "boundary", "signed", '"name":"table"', '"name":"' + "a" * 64 + '"', signature, again(name="a" * 64))
    for name in ("", ".table", "a/b", "a" * 65):
        own.damaged(f"the name {name!r}", "text", "signed", '"name":"table"', f'"name":"{name}"', signature, again(name=name))
    own.damaged("a serial of 2^64", "range", "signed", '"serial":7', f'"serial":{2**64}')
    own.damaged("a signature without a name", "missing", "signed", '"name":"table",', "")
    without = ed25519.sign(SEED, CONTEXT[:31] + b"2" + bytes.fromhex(sealed("signed")["epoch"]))[1].hex()
    own.damaged("a signature of another purpose", "signature", "signed", signature, without)


def cases() -> Cases:
    own = Descriptors()
    for add in (add_texts, add_numbers, add_slots, add_lookups, add_schemas, add_files, add_signatures):
        add(own)
    return own.cases
