"""A client for look-ups by key over HTTP, with `simple`, `colpack`, `hybrid` and `onion` (docs/reference/file-formats.md, Descriptor,
Keys; docs/reference/http-api.md)."""

import base64
import dataclasses
import json
import os
import unicodedata
import urllib.request

import blake3
import numpy as np

import colpack
import expansion
import keys
import lwe
import onion
import parameters
import rlwe
import streams
import words
from key_lookup import Support, block_beside, block_of, support_of
from layouts import Entries
from messages import VERSION, field, last_field


WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
STEPS = {
    "trim": lambda text: text.strip(WHITE_SPACE),
    "lower": str.lower,
    "nfc": lambda text: unicodedata.normalize("NFC", text),
}


def normal_form(key: bytes, steps: list[str]) -> bytes:
    """Returns the normal form of a key of one column of text, after the table's steps."""
    text = key.decode()
    for step in steps:
        text = STEPS[step](text)
    return text.encode()


@dataclasses.dataclass
class Segment:
    """A segment of a table: the base, or a delta, which has its own number of lanes."""

    columns: int
    blocks: int
    slot_bytes: int
    lanes: int | None
    hint: dict | None
    whitening: str | None

    @classmethod
    def of(cls, described: dict, slot_bytes: int) -> "Segment":
        lanes = described["blocks"] // described["entries"] if "entries" in described else None
        shape = described["columns"], described["blocks"], slot_bytes, lanes
        return cls(*shape, described.get("hint"), described.get("whitening"))


class Client:
    """A client of one table. It makes new secrets for every look-up, and evaluation keys once."""

    def __init__(self, url: str, table: str):
        self.url, self.table = url, table
        self.descriptor = json.loads(self.request("GET", f"/v1/tables/{table}"))
        slot = self.descriptor["slot"]
        self.head_bytes = slot.get("head_bytes", slot["max_value_bytes"])
        self.base = Segment.of(self.descriptor, max(1, slot["fingerprint_bytes"] + slot["length_bytes"] + self.head_bytes))
        beside = self.descriptor.get("segments", [])
        self.segments = [self.base, *(Segment.of(segment, segment["slot_bytes"]) for segment in beside)]
        self.query_bits = self.descriptor.get("word_bits", [0])[0]
        self.protocol = {"simple": Simple, "colpack": Colpack, "hybrid": Hybrid, "onion": Onion}[self.descriptor["protocol"]](self)

    def request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        headers = {"Content-Type": "application/x-protobuf"} if body else {}
        request = urllib.request.Request(self.url + path, body, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.read()

    def get(self, key: bytes) -> bytes | None:
        """Looks a key up, and returns its value, or None if the table has no such key."""
        lookup = self.descriptor["lookup"]
        if steps := self.descriptor.get("schema", {}).get("normalize"):
            key = normal_form(key, steps)
        digest = blake3.blake3(key, key=bytes.fromhex(lookup["seed"])).digest()
        block = block_of(digest, bytes.fromhex(lookup["thresholds"]))
        seed = bytes.fromhex(lookup["block_seeds"])[block : block + 1]
        support = support_of(digest, seed, lookup["filter"], self.base.columns)
        parts, secrets = self.protocol.query(support, block)
        answer, slots, entry = self.answer(parts), [], self.protocol.entry(block)
        beside = self.descriptor.get("segments", [])
        blocks = [block, *(block_beside(digest, entry, segment) for segment in beside)]
        for segment, own in zip(self.segments, blocks, strict=True):
            size = self.protocol.answer_bytes(segment)
            slots.append(self.protocol.recover(segment, secrets, answer[:size], support, own))
            answer = answer[size:]
        assert not answer
        tiers = 1 + sum(segment["role"] == "tier" for segment in beside)
        value = self.value(digest, slots[0], b"".join(slots[1:tiers]))
        return self.changed(value, digest, slots[tiers], b"".join(slots[tiers + 1 :])) if slots[tiers:] else value

    def answer(self, parts: dict[int, bytes]) -> bytes:
        """Sends a query, whose fields `parts` has by number, and returns the answer."""
        query = b"".join(field(number, part) for number, part in sorted(parts.items()))
        protocol = self.descriptor["protocol"].encode()
        body = VERSION + field(2, self.asked()) + field(3, protocol) + field(4, query)
        response = self.request("POST", f"/v1/tables/{self.table}/query", body)
        return last_field(last_field(response))

    def value(self, digest: bytes, slot: bytes, tiers: bytes) -> bytes | None:
        form = self.descriptor["slot"]
        fingerprint, rest = slot[: form["fingerprint_bytes"]], slot[form["fingerprint_bytes"] :]
        at = form["length_bytes"]
        length = int.from_bytes(rest[:at], "little") if at else form["max_value_bytes"]
        is_found = digest[16:].startswith(fingerprint) and length <= form["max_value_bytes"]
        return (rest[at : at + self.head_bytes] + tiers)[:length] if is_found else None

    def changed(self, value: bytes | None, digest: bytes, slot: bytes, tiers: bytes) -> bytes | None:
        """Returns the current value of a key, given its value in the base and the slot of its change."""
        longest = self.descriptor["slot"]["max_value_bytes"]
        behind = 8 + next(count for count in (1, 2, 3, 4) if longest + 1 < 256**count)
        length = int.from_bytes(slot[8:behind], "little")
        if slot[:8] != digest[16:24] or length > longest + 1:
            return value
        return (slot[behind:] + tiers)[: length - 1] if length else None

    def asked(self) -> bytes:
        """Returns the hash that a query names: of the geometry if the table has changes, otherwise the epoch."""
        has_changes = any(segment["role"] == "delta" for segment in self.descriptor.get("segments", []))
        return self.geometry() if has_changes else bytes.fromhex(self.descriptor["epoch"])

    def geometry(self) -> bytes:
        """Returns the hash of the facts on which queries depend. Matrices and masks are derived from it."""
        described = self.descriptor
        absent = ("schema", "compression", "hint", "whitening", "signature")
        geometry = {name: value for name, value in described.items() if name not in absent}
        geometry |= {"epoch": "0" * 64, "records": 0, "database": "0" * 64}
        if "segments" in described:
            geometry["segments"] = []
        for segment in described.get("segments", []):
            own = {name: value for name, value in segment.items() if name not in absent}
            own |= {"records": 0, "lanes": {"seeds": "", "thresholds": ""}, "database": "0" * 64}
            geometry["segments"].append(own)
        text = json.dumps(geometry, separators=(",", ":")).encode()
        return blake3.blake3(text, derive_key_context="hushdb v2 2026 geometry").digest()

    def record(self, key: bytes) -> dict | None:
        """Looks a key up in a table whose values have several columns, and returns the fields, or None."""
        value = self.get(key)
        names = [name for name, _ in self.descriptor["schema"]["value"]]
        return None if value is None else read_fields(names, value)


def read_fields(names: list[str], value: bytes) -> dict:
    """Reads the fields of a value (docs/reference/file-formats.md, Fields)."""
    at, record = 0, {}
    for name in names:
        head = shift = 0
        while True:
            head |= (value[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if value[at - 1] < 0x80:
                break
        length, kind = head >> 2, head & 3
        content, at = value[at : at + length], at + length
        record[name] = [lambda _: None, json.loads, bytes.decode, lambda raw: base64.b64encode(raw).decode()][kind](content)
    assert at == len(value)
    return record


class Simple:
    def __init__(self, client: Client):
        self.client, self.params = client, parameters.LWE[client.descriptor["preset"]]
        bits = client.descriptor["word_bits"][1]
        self.hints = {}
        for segment in client.segments:
            blob = client.request("GET", f"/v1/blobs/{segment.hint['blake3']}")
            hint = words.unpack(blob, segment.blocks * segment.slot_bytes * self.params.n, bits)
            self.hints[id(segment)] = hint.reshape(-1, self.params.n) << np.uint64(32 - bits)

    def query(self, support: Support, block: int):
        secret = streams.ternary(stream := fresh(), self.params.n)
        return {1: encrypted(self.client, self.params, secret, support, stream)}, secret

    def entry(self, block: int) -> int:
        return 0

    def answer_bytes(self, segment: Segment) -> int:
        return -(-segment.blocks * segment.slot_bytes * self.client.descriptor["word_bits"][2] // 8)

    def recover(self, segment: Segment, secret: np.ndarray, answer: bytes, support: Support, block: int) -> bytes:
        bits, hint = self.client.descriptor["word_bits"][2], self.hints[id(segment)]
        rows = slice(block * segment.slot_bytes, (block + 1) * segment.slot_bytes)
        folded = words.unpack(answer, len(hint), bits)[rows] << np.uint64(32 - bits)
        return lwe.decrypt(folded, hint[rows], secret)


class Packed:
    """A table whose answers are the planes of an entry, with halves of the set's widths or of `widths`."""

    widths = None

    def __init__(self, client: Client, params):
        self.client, self.params = client, params
        self.entry_count = self.entries(client.base).count

    def entries(self, segment: Segment) -> Entries:
        return Entries(self.params.ring.degree, segment.blocks, segment.slot_bytes, segment.lanes)

    def entry(self, block: int) -> int:
        return self.entries(self.client.base).place(block)[0]

    def answer_bytes(self, segment: Segment) -> int:
        return rlwe.answer_bytes(self.params.ring, self.entries(segment).planes, self.sharing, self.widths)

    def recover(self, segment: Segment, secrets: list, answer: bytes, support: Support, block: int) -> bytes:
        entries = self.entries(segment)
        _, lane = entries.place(block)
        symbols = rlwe.decrypt(self.params.ring, secrets, answer, entries.planes, 8, self.widths)
        return symbols[lane * segment.slot_bytes :][: segment.slot_bytes].astype(np.uint8).tobytes()


class Colpack(Packed):
    sharing = 1

    def __init__(self, client: Client):
        super().__init__(client, parameters.COLUMN[client.descriptor["preset"]])
        self.widths = client.descriptor["word_bits"][1:]
        self.masks = [colpack.mask(self.params.ring.kept_ring, client.geometry(), index) for index in range(4)]

    def query(self, support: Support, block: int):
        params, stream, ring = self.params, fresh(), self.params.ring.kept_ring
        secret = streams.ternary(stream, ring.degree)
        first = encrypted(self.client, params.lwe, secret, support, stream)
        power = 1 << (self.entry_count - 1).bit_length()
        exponent = 2 * ring.degree // power * self.entry(block) if self.entry_count > 1 else None
        packed = colpack.packed_keys(params, ring, *colpack.keys(params, ring, self.masks, secret, exponent, stream))
        return {1: first, 3: packed}, [secret]


class Hybrid(Packed):
    sharing = 2

    def __init__(self, client: Client):
        super().__init__(client, parameters.PACK[client.descriptor["preset"]])
        self.keys, self.key_id = uploaded(client, self.params.ring)

    def query(self, support: Support, block: int):
        stream, entry = fresh(), self.entry(block)
        secret = streams.ternary(stream, self.params.lwe.n)
        first = encrypted(self.client, self.params.lwe, secret, support, stream)
        bits = [entry >> fold & 1 for fold in range((self.entry_count - 1).bit_length())]
        packed, _ = expansion.query(self.params.ring, self.keys, secret, bits, stream)
        return {1: first, 3: packed, 4: self.key_id}, self.keys.secrets


class Onion:
    def __init__(self, client: Client):
        self.client, self.params = client, parameters.RING[client.descriptor["preset"]]
        self.entry_count = self.shape(client.base)[2]
        self.keys, self.key_id = uploaded(client, self.params)

    def shape(self, segment: Segment) -> tuple[int, int, int]:
        """Returns the symbols of a slot, the lanes, and the entries of a segment."""
        symbols = -(-8 * segment.slot_bytes // self.params.plaintext_bits)
        lanes = segment.lanes or max(self.params.degree // symbols, 1)
        return symbols, lanes, -(-segment.blocks // lanes)

    def planes(self, segment: Segment) -> int:
        return -(-self.shape(segment)[0] // self.params.degree)

    def entry(self, block: int) -> int:
        return block // self.shape(self.client.base)[1]

    def query(self, support: Support, block: int):
        entry = self.entry(block)
        selectors = np.zeros(self.client.base.columns, np.int64)
        for row, coefficient in support:
            selectors[row] += coefficient
        of_entry = [entry >> fold & 1 for fold in range((self.entry_count - 1).bit_length())]
        packed, _ = expansion.query(self.params, self.keys, selectors, of_entry, fresh())
        return {3: packed, 4: self.key_id}, self.keys.secrets

    def answer_bytes(self, segment: Segment) -> int:
        return rlwe.answer_bytes(self.params, self.planes(segment), 2)

    def recover(self, segment: Segment, secrets: list, answer: bytes, support: Support, block: int) -> bytes:
        (symbols, lanes, entries), planes, bits = self.shape(segment), self.planes(segment), self.params.plaintext_bits
        entry, lane = divmod(block, lanes)
        decrypted = rlwe.decrypt(self.params, secrets, answer, planes, bits).reshape(planes, -1)
        columns = [plane * entries + entry for plane in range(planes)]
        bare = onion.without_whitening(self.params, bytes.fromhex(segment.whitening), support, columns, decrypted).ravel()
        return words.pack(bare[lane * symbols :][:symbols].astype(np.uint64), bits)[: segment.slot_bytes]


def fresh() -> streams.Stream:
    return streams.Stream(os.urandom(32))


def encrypted(client: Client, params: parameters.Lwe, secret: np.ndarray, support: Support, stream: streams.Stream) -> bytes:
    """Returns the encrypted vector over the columns, in the form that is sent."""
    matrix = lwe.public_matrix(params, client.geometry(), client.base.columns)
    return words.pack(words.round_even(lwe.encrypt(matrix, secret, support, stream), client.query_bits), client.query_bits)


def uploaded(client: Client, params: parameters.Rlwe) -> tuple[keys.Keys, bytes]:
    """Makes keys from a new seed and uploads them. Returns the keys, and their name."""
    made = keys.generate(params, os.urandom(32))
    name = blake3.blake3(made.upload)
    client.request("PUT", f"/v1/keys/{name.hexdigest()}", made.upload)
    return made, name.digest()
