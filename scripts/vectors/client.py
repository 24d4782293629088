"""A client by key of `simple`, `colpack`, `hybrid` and `onion`, over HTTP (docs/formats.md, Descriptor, Keys; docs/http-api.md)."""

import base64
import json
import os
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
from key_lookup import Support, block_of, support_of
from layouts import Entries
from messages import VERSION, field, last_field


class Client:
    """Of one table; it makes new secrets for every look-up, and keys once."""

    def __init__(self, url: str, table: str):
        self.url, self.table = url, table
        self.descriptor = json.loads(self.request("GET", f"/v1/tables/{table}"))
        slot = self.descriptor["slot"]
        self.slot_bytes = max(1, slot["fingerprint_bytes"] + slot["length_bytes"] + slot["max_value_bytes"])
        self.columns, self.blocks = self.descriptor["columns"], self.descriptor["blocks"]
        self.query_bits = self.descriptor.get("word_bits", [0])[0]
        self.protocol = {"simple": Simple, "colpack": Colpack, "hybrid": Hybrid, "onion": Onion}[self.descriptor["protocol"]](self)

    def request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        headers = {"Content-Type": "application/x-protobuf"} if body else {}
        request = urllib.request.Request(self.url + path, body, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.read()

    def get(self, key: bytes) -> bytes | None:
        """The value of a key."""
        lookup = self.descriptor["lookup"]
        digest = blake3.blake3(key, key=bytes.fromhex(lookup["seed"])).digest()
        block = block_of(digest, bytes.fromhex(lookup["thresholds"]))
        seed = bytes.fromhex(lookup["block_seeds"])[block : block + 1]
        support = support_of(digest, seed, lookup["filter"], self.columns)
        parts, recover = self.protocol.query(support, block)
        return self.value(digest, recover(self.answer(parts)))

    def answer(self, parts: dict[int, bytes]) -> bytes:
        """Sends one query, its fields by number."""
        query = b"".join(field(number, part) for number, part in sorted(parts.items()))
        epoch = bytes.fromhex(self.descriptor["epoch"])
        protocol = self.descriptor["protocol"].encode()
        body = VERSION + field(2, epoch) + field(3, protocol) + field(4, query)
        response = self.request("POST", f"/v1/tables/{self.table}/query", body)
        return last_field(last_field(response))

    def value(self, digest: bytes, slot: bytes) -> bytes | None:
        form = self.descriptor["slot"]
        fingerprint, rest = slot[: form["fingerprint_bytes"]], slot[form["fingerprint_bytes"] :]
        at = form["length_bytes"]
        length = int.from_bytes(rest[:at], "little") if at else form["max_value_bytes"]
        is_found = digest[16:].startswith(fingerprint) and length <= form["max_value_bytes"]
        return rest[at : at + length] if is_found else None

    def record(self, key: bytes) -> dict | None:
        """The value of a key in a table whose values have several columns."""
        value = self.get(key)
        return None if value is None else read_fields(self.descriptor["fields"], value)


def read_fields(names: list[str], value: bytes) -> dict:
    """docs/formats.md, Fields."""
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
        blob = client.request("GET", f"/v1/blobs/{client.descriptor['hint']['blake3']}")
        rows, bits = client.blocks * client.slot_bytes, client.descriptor["word_bits"][1]
        self.hint = words.unpack(blob, rows * self.params.n, bits).reshape(rows, -1) << np.uint64(32 - bits)

    def query(self, support: Support, block: int):
        client, stream = self.client, fresh()
        secret = streams.ternary(stream, self.params.n)
        first = encrypted(client, self.params, secret, support, stream)
        rows = slice(block * client.slot_bytes, (block + 1) * client.slot_bytes)

        def recover(answer: bytes) -> bytes:
            bits = client.descriptor["word_bits"][2]
            folded = words.unpack(answer, len(self.hint), bits)[rows] << np.uint64(32 - bits)
            return lwe.decrypt(folded, self.hint[rows], secret)

        return {1: first}, recover


class Colpack:
    def __init__(self, client: Client):
        self.client, self.params = client, parameters.COLUMN[client.descriptor["preset"]]
        self.entries = Entries(self.params.ring.degree, client.blocks, client.slot_bytes)
        self.entry_count = self.entries.count
        self.masks = [colpack.mask(self.params.ring.kept_ring, index) for index in range(4)]

    def query(self, support: Support, block: int):
        client, params, entries, stream = self.client, self.params, self.entries, fresh()
        ring = params.ring.kept_ring
        secret = streams.ternary(stream, ring.degree)
        first = encrypted(client, params.lwe, secret, support, stream)
        entry, lane = entries.place(block)
        power = 1 << (entries.count - 1).bit_length()
        exponent = 2 * ring.degree // power * entry if entries.count > 1 else None
        packed = colpack.packed_keys(params, ring, *colpack.keys(params, ring, self.masks, secret, exponent, stream))
        return {1: first, 3: packed}, lambda answer: lane_of(client, params.ring, [secret], answer, entries, lane)


class Hybrid:
    def __init__(self, client: Client):
        self.client, self.params = client, parameters.PACK[client.descriptor["preset"]]
        self.entries = Entries(self.params.ring.degree, client.blocks, client.slot_bytes)
        self.entry_count = self.entries.count
        self.keys, self.key_id = uploaded(client, self.params.ring)

    def query(self, support: Support, block: int):
        client, params, entries, stream = self.client, self.params, self.entries, fresh()
        secret = streams.ternary(stream, params.lwe.n)
        first = encrypted(client, params.lwe, secret, support, stream)
        entry, lane = entries.place(block)
        bits = [entry >> fold & 1 for fold in range((entries.count - 1).bit_length())]
        packed, _ = expansion.query(params.ring, self.keys, secret, bits, stream)
        parts = {1: first, 3: packed, 4: self.key_id}
        return parts, lambda answer: lane_of(client, params.ring, self.keys.secrets, answer, entries, lane)


class Onion:
    def __init__(self, client: Client):
        self.client, self.params = client, parameters.RING[client.descriptor["preset"]]
        self.slot_symbols = -(-8 * client.slot_bytes // self.params.plaintext_bits)
        self.lanes = max(self.params.degree // self.slot_symbols, 1)
        self.planes = -(-self.slot_symbols // self.params.degree)
        self.entry_count = -(-client.blocks // self.lanes)
        self.keys, self.key_id = uploaded(client, self.params)

    def query(self, support: Support, block: int):
        client, params, bits = self.client, self.params, self.params.plaintext_bits
        entry, lane = divmod(block, self.lanes)
        selectors = np.zeros(client.columns, np.int64)
        for row, coefficient in support:
            selectors[row] += coefficient
        of_entry = [entry >> fold & 1 for fold in range((self.entry_count - 1).bit_length())]
        packed, _ = expansion.query(params, self.keys, selectors, of_entry, fresh())

        def recover(answer: bytes) -> bytes:
            decrypted = rlwe.decrypt(params, self.keys.secrets, answer, self.planes, bits).reshape(self.planes, -1)
            whitening = bytes.fromhex(client.descriptor["whitening"])
            columns = [plane * self.entry_count + entry for plane in range(self.planes)]
            bare = onion.without_whitening(params, whitening, support, columns, decrypted).ravel()
            return words.pack(bare[lane * self.slot_symbols :][: self.slot_symbols].astype(np.uint64), bits)[: client.slot_bytes]

        return {3: packed, 4: self.key_id}, recover


def fresh() -> streams.Stream:
    return streams.Stream(os.urandom(32))


def encrypted(client: Client, params: parameters.Lwe, secret: np.ndarray, support: Support, stream: streams.Stream) -> bytes:
    """A vector over the columns, as it travels."""
    matrix = lwe.public_matrix(params, client.columns)
    return words.pack(words.round_even(lwe.encrypt(matrix, secret, support, stream), client.query_bits), client.query_bits)


def uploaded(client: Client, params: parameters.Rlwe) -> tuple[keys.Keys, bytes]:
    """Keys of a new seed, and their name."""
    made = keys.generate(params, os.urandom(32))
    name = blake3.blake3(made.upload)
    client.request("PUT", f"/v1/keys/{name.hexdigest()}", made.upload)
    return made, name.digest()


def lane_of(client: Client, params: parameters.Rlwe, secrets: list, answer: bytes, entries: Entries, lane: int) -> bytes:
    """The bytes of a lane, from the planes of its entry."""
    symbols = rlwe.decrypt(params, secrets, answer, entries.planes, 8)
    return symbols[lane * client.slot_bytes :][: client.slot_bytes].astype(np.uint8).tobytes()
