"""Strict decoders of messages (crates/hush-protocol/proto/hush/v1/query.proto) and of what is packed in them (Words, RLWE)."""

from messages import VERSION, field
from negative import check

LIMIT = 2**64


def varint(message: bytes, at: int) -> tuple[int, int]:
    """Returns a number of at most ten bytes and 64 bits, and the place behind it."""
    value = 0
    for shift in range(0, 70, 7):
        check(at < len(message), "the message ends within a number", "invalid_request")
        octet, at = message[at], at + 1
        value |= (octet & 0x7F) << shift
        if octet < 0x80:
            check(value < LIMIT, "a number of more than 64 bits", "invalid_request")
            return value, at
    check(False, "a number of more than ten bytes", "invalid_request")
    raise AssertionError


def fields(message: bytes, kinds: dict[int, int]) -> list[tuple[int, int | bytes]]:
    """Returns the fields of a message in which field n has the wire type `kinds[n]`. Others are skipped, as protobuf has it."""
    at, found = 0, []
    while at < len(message):
        tag, at = varint(message, at)
        number, kind = tag >> 3, tag & 7
        check(0 < number and tag < 2**32, "no field has such a number", "invalid_request")
        check(kinds.get(number, kind) == kind, "a field of another type", "invalid_request")
        check(kind in (0, 1, 2, 5), "no such wire type", "invalid_request")
        if kind == 0:
            value, at = varint(message, at)
        else:
            length, at = varint(message, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
            check(length <= len(message) - at, "the message ends within a field", "invalid_request")
            value, at = message[at : at + length], at + length
        if number in kinds:
            found.append((number, value))
    return found


def last(found: list, number: int, default: int | bytes) -> int | bytes:
    """Returns the last of the fields of a number, which is the one that counts."""
    return next((value for own, value in reversed(found) if own == number), default)


def text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        check(False, "a text that is not UTF-8", "invalid_request")
        raise AssertionError from None


def check_version(found: list) -> None:
    check(last(found, 1, 0) == 1, "another version", "unsupported_version")


def request(body: bytes, shape: dict) -> None:
    """Decodes a `QueryRequest`."""
    found = fields(body, {1: 0, 2: 2, 3: 2, 4: 2})
    queries = [fields(value, {1: 2, 2: 2, 3: 2, 4: 2}) for number, value in found if number == 4]
    protocols = [text(value) for number, value in found if number == 3]
    check(len(queries) <= shape["max_queries"], "too many queries", "too_large")
    check_version(found)
    epoch = last(found, 2, b"")
    check(len(epoch) == 32, "an epoch of another length", "invalid_request")
    check(epoch.hex() == shape["asked"], "another epoch", "epoch_gone")
    check((protocols or [""])[-1] == shape["protocol"], "another protocol", "invalid_request")
    check(len(queries) > 0, "no queries", "invalid_request")
    for query in queries:
        for number, name in enumerate(("first", "second", "packed", "key_id"), 1):
            check(len(last(query, number, b"")) == shape[name], f"{name} of another length", "invalid_request")


def response(body: bytes, epoch: str, count: int) -> list[bytes]:
    """Decodes a `QueryResponse`, and returns the answers."""
    found = fields(body, {1: 0, 2: 2, 3: 2})
    answers = [last(fields(value, {1: 2}), 1, b"") for number, value in found if number == 3]
    check(len(answers) == count, "another number of answers")
    check_version(found)
    check(last(found, 2, b"").hex() == epoch, "another epoch")
    return answers


def packed(octets: bytes, count: int, bits: int) -> list[int]:
    """Reads packed words: their bytes are as many as they need, and bits behind the last word are zero."""
    check(len(octets) == -(-count * bits // 8), "another length of packed words")
    whole = int.from_bytes(octets, "little")
    check(whole >> count * bits == 0, "bits behind the last word")
    return [whole >> index * bits & (1 << bits) - 1 for index in range(count)]


def residues(octets: bytes, count: int, modulus: int, dropped: int) -> None:
    """Reads coefficients modulo a number, without their low bits (`cut`)."""
    largest = (modulus - 1 + (1 << dropped >> 1)) >> dropped
    words = packed(octets, count, modulus.bit_length() - dropped)
    check(all(word <= largest for word in words), "a coefficient that is not below the modulus")


def split(octets: bytes, lengths: list[int]) -> list[bytes]:
    check(len(octets) == sum(lengths), "another length")
    return [octets[sum(lengths[:index]) :][:length] for index, length in enumerate(lengths)]


def column_keys(octets: bytes, params, folds: bool) -> None:
    """Reads the field `packed` of a query of column packing."""
    ring, modulus = params.ring, params.ring.kept_ring.modulus
    cut = [params.conjugation_dropped] + 2 * folds * [ring.key_dropped]
    lengths = [ring.degree * bits // 8 for bits in (params.rotation_bits, *(modulus.bit_length() - low for low in cut))]
    rotation, *others = split(octets, lengths)
    packed(rotation, ring.degree, params.rotation_bits)
    for key, low in zip(others, cut, strict=True):
        residues(key, ring.degree, modulus, low)


def ring_query(octets: bytes, params, selectors: int, folds: int) -> None:
    """Reads a packed query: the seed, the selectors to a whole byte, then the digits of the bits."""
    modulus, spread = params.full_ring.modulus, params.degree >> len(params.levels)
    counts = [selectors * spread, folds * params.fold.digits * spread]
    cut = [params.selector_dropped, params.query_dropped]
    lengths = [-(-count * (modulus.bit_length() - low) // 8) for count, low in zip(counts, cut)]
    _, *parts = split(octets, [16, *lengths])
    for part, count, low in zip(parts, counts, cut, strict=True):
        residues(part, count, modulus, low)


def evaluation_keys(body: bytes, params) -> None:
    """Decodes an `EvaluationKeys` of a parameter set whose keys are those of levels, of s^2 and of pairs."""
    kept, full = params.kept_ring.modulus, params.full_ring.modulus
    halves = [full] * (sum(gadget.digits for gadget in params.levels) + params.square.digits) + [kept] * (4 * params.pack.digits)
    lengths = [-(-params.degree * (modulus.bit_length() - params.key_dropped) // 8) for modulus in halves]
    found = fields(body, {1: 0, 2: 2, 3: 2, 4: 2})
    check_version(found)
    check(text(last(found, 2, b"")) == params.name, "another parameter set")
    check(len(last(found, 3, b"")) == 32, "a seed of another length")
    words = last(found, 4, b"")
    for half, modulus in zip(split(words, lengths), halves, strict=True):
        residues(half, params.degree, modulus, params.key_dropped)
    exact = len(VERSION + b"".join(field(number, last(found, number, b"")) for number in (2, 3, 4)))
    check(len(body) == exact, "more than the four fields")
