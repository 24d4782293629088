"""Parts of the messages of crates/hush-protocol/proto."""

VERSION = b"\x08\x01"  # field 1 of every message that has it


def field(number: int, octets: bytes) -> bytes:
    """Returns a field of bytes of a message, or nothing if it is empty."""
    return bytes([number << 3 | 2]) + varint(len(octets)) + octets if octets else b""


def last_field(message: bytes) -> bytes:
    """Returns the value of the last field. In a response with one answer, that is the answer."""
    at, value = 0, b""
    while at < len(message):
        tag, at = read_varint(message, at)
        length, at = read_varint(message, at)
        if tag & 7 == 2:
            value, at = message[at : at + length], at + length
    return value


def read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        octet, at = message[at], at + 1
        value, shift = value | (octet & 0x7F) << shift, shift + 7
        if octet < 0x80:
            return value, at


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])
