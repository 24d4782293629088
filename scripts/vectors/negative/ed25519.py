"""Ed25519 (RFC 8032), strict: without points of small order and without a second form of any number."""

import hashlib

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)

Point = tuple[int, int, int, int]  # x, y, z, x y / z


def add(left: Point, right: Point) -> Point:
    a, b = (left[1] - left[0]) * (right[1] - right[0]), (left[1] + left[0]) * (right[1] + right[0])
    c, d = 2 * left[3] * right[3] * D, 2 * left[2] * right[2]
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(factor: int, point: Point) -> Point:
    out = (0, 1, 1, 0)
    for bit in bin(factor)[2:]:
        out = add(out, out)
        if bit == "1":
            out = add(out, point)
    return out


def encoded(point: Point) -> bytes:
    inverse = pow(point[2], -1, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def decoded(octets: bytes) -> Point | None:
    """Returns a point, or None if the bytes are not the only form of one."""
    y = int.from_bytes(octets, "little")
    sign, y = y >> 255, y & 2**255 - 1
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if x * x % P == square else x * ROOT % P
    if y >= P or x * x % P != square or (x == 0 and sign):
        return None
    x = x if x & 1 == sign else P - x
    return x, y, 1, x * y % P


BASE = decoded((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def challenge(*parts: bytes) -> int:
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little") % ORDER


def verify(public: bytes, message: bytes, signature: bytes) -> bool:
    key, first, second = decoded(public), decoded(signature[:32]), int.from_bytes(signature[32:], "little")
    if key is None or first is None or second >= ORDER or any(encoded(times(8, point)) == encoded((0, 1, 1, 0)) for point in (key, first)):
        return False
    return encoded(times(second, BASE)) == encoded(add(first, times(challenge(signature[:32], public, message), key)))


def sign(seed: bytes, message: bytes) -> tuple[bytes, bytes]:
    """Returns the public key of a seed, and its signature."""
    digest = hashlib.sha512(seed).digest()
    secret = int.from_bytes(digest[:32], "little") & 2**254 - 8 | 2**254
    public, nonce = encoded(times(secret, BASE)), challenge(digest[32:], message)
    first = encoded(times(nonce, BASE))
    return public, first + ((nonce + challenge(first, public, message) * secret) % ORDER).to_bytes(32, "little")
