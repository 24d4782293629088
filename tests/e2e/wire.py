"""The wire format by hand, for messages that no client sends: protobuf fields, BLAKE3, requests on a socket."""

import socket
import struct
import urllib.parse


def fields(message):
    """Returns the (number, value) pairs of a protobuf message; values are numbers and bytes."""
    pairs, at = [], 0
    while at < len(message):
        tag, at = _varint(message, at)
        if tag & 7 in (1, 5):
            length = 8 if tag & 7 == 1 else 4
            at, value = at + length, int.from_bytes(message[at:at + length], "little")
        else:
            value, at = _varint(message, at)
            if tag & 7 == 2:
                at, value = at + value, message[at:at + value]
        pairs.append((tag >> 3, value))
    return pairs


def message(pairs):
    """Returns the protobuf message with these (number, value) pairs: the inverse of `fields`."""
    out = b""
    for number, value in pairs:
        if isinstance(value, int):
            out += _encode(number << 3) + _encode(value)
        else:
            out += _encode(number << 3 | 2) + _encode(len(value)) + value
    return out


def changed(encoded, number, change):
    """Returns a message in which `change` is applied to all fields of this number."""
    return message((n, change(value) if n == number else value) for n, value in fields(encoded))


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _encode(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def send_raw(url, method, path, body, length=None):
    """Sends a request that declares `length` as the length of its body, and closes its side. Returns the status, if one came."""
    address = urllib.parse.urlsplit(url)
    with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
        head = (f"{method} {path} HTTP/1.1\r\nHost: {address.netloc}\r\nConnection: close\r\n"
                f"Content-Type: application/x-protobuf\r\nContent-Length: {length or len(body)}\r\n\r\n")
        connection.sendall(head.encode() + body)
        connection.shutdown(socket.SHUT_WR)
        answer = connection.makefile("rb").readline().split()
    return int(answer[1]) if answer else None


_IV = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
_ORDER = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
_MIXES = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
          (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
_CHUNK_START, _CHUNK_END, _PARENT, _ROOT = 1, 2, 4, 8
_MASK = 0xFFFFFFFF


def blake3(data):
    """Returns the BLAKE3 hash in hex. This is slow above some hundred KiB."""
    chunks = [data[at:at + 1024] for at in range(0, len(data), 1024)] or [b""]
    nodes = [_chunk(chunk, number) for number, chunk in enumerate(chunks)]
    # A parent hashes the values of its two children. The left child is the largest possible full tree.
    while len(nodes) > 1:
        pairs = zip(nodes[::2], nodes[1::2])
        parents = [(_IV, _value(left) + _value(right), 0, 64, _PARENT) for left, right in pairs]
        nodes = parents + nodes[len(parents) * 2:]
    chaining, block, counter, length, flags = nodes[0]
    return struct.pack("<8I", *_compress(chaining, block, counter, length, flags | _ROOT)).hex()


def _chunk(chunk, number):
    """Returns the input of the last compression of a chunk."""
    blocks = [chunk[at:at + 64] for at in range(0, len(chunk), 64)] or [b""]
    chaining, flags = _IV, _CHUNK_START
    for block in blocks[:-1]:
        chaining, flags = _compress(chaining, struct.unpack("<16I", block), number, 64, flags), 0
    last = struct.unpack("<16I", blocks[-1].ljust(64, b"\0"))
    return chaining, last, number, len(blocks[-1]), flags | _CHUNK_END


def _value(node):
    return _compress(*node)


def _compress(chaining, block, counter, length, flags):
    v = [*chaining, *_IV[:4], counter & _MASK, counter >> 32, length, flags]
    for _ in range(7):
        for (a, b, c, d), x, y in zip(_MIXES, block[::2], block[1::2]):
            v[a] = v[a] + v[b] + x & _MASK
            v[d] = _turn(v[d] ^ v[a], 16)
            v[c] = v[c] + v[d] & _MASK
            v[b] = _turn(v[b] ^ v[c], 12)
            v[a] = v[a] + v[b] + y & _MASK
            v[d] = _turn(v[d] ^ v[a], 8)
            v[c] = v[c] + v[d] & _MASK
            v[b] = _turn(v[b] ^ v[c], 7)
        block = [block[i] for i in _ORDER]
    return tuple(x ^ y for x, y in zip(v[:8], v[8:]))


def _turn(word, bits):
    return (word >> bits | word << 32 - bits) & _MASK
