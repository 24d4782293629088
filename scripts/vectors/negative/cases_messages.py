"""Cases of messages: requests, responses, keys, queries, lists of tables, problems, URLs."""

from messages import VERSION, field, varint
from negative.bases import sealed, tables
from negative.cases import Cases, hexa, of, texts_of

# The table of the tests of hush-server.
EPOCH, OTHER = b"\5" * 32, b"\6" * 32
SHAPE = {"asked": EPOCH.hex(), "protocol": "sum", "first": 8, "second": 4, "packed": 0, "key_id": 0, "max_queries": 6}
FIRST, SECOND = bytes(range(8)), bytes(range(4))
QUERY = field(1, FIRST) + field(2, SECOND)


def request(*queries: bytes, epoch: bytes = EPOCH, protocol: bytes = b"sum", version: bytes = VERSION) -> bytes:
    return version + field(2, epoch) + field(3, protocol) + b"".join(field(4, query) for query in queries)


def query_request() -> Cases:
    cases = Cases("query_request", invalid="invalid_request", **SHAPE)
    good = request(QUERY)

    def valid(name, reason, body):
        cases.valid(name, reason, hexa(body))

    def invalid(name, reason, body, code="invalid_request"):
        cases.invalid(name, reason, *(body if isinstance(body, list) else [hexa(body)]), code=code)

    valid("one query", "plain", good)
    valid("as many queries as there may be", "boundary", request(*6 * [QUERY]))
    valid("fields in another order", "order", field(4, QUERY) + field(3, b"sum") + field(2, EPOCH) + VERSION)
    valid("an unknown field", "unknown", good + b"\x78\5")
    valid("an unknown field of bytes in a query", "unknown", request(QUERY + b"\x7a\2ab"))
    valid("a version that is there twice: the last one counts", "duplicate", b"\x08\2" + good)
    valid("an epoch that is there twice: the last one counts", "duplicate", field(2, OTHER) + good)
    valid("a tag and a length that could be shorter", "form", b"\x88\0\1" + b"\x12\xa0\0" + EPOCH + good[36:])
    invalid("nothing", "missing", b"", "unsupported_version")
    invalid("one byte", "truncated", b"\x08")
    for cut in (1, 2, len(QUERY), len(QUERY) + 1):
        invalid(f"{cut} bytes short", "truncated", good[:-cut])
    invalid("one byte long", "trailing", good + b"\0")
    invalid("no queries", "count", request())
    invalid("one query more than there may be", "count", request(*7 * [QUERY]), "too_large")
    invalid("a thousand empty queries", "count", [hexa(b"\x22\0", 1000)], "too_large")
    invalid("no version", "missing", request(QUERY, version=b""), "unsupported_version")
    invalid("version 0", "version", request(QUERY, version=b"\x08\0"), "unsupported_version")
    invalid("version 2", "version", request(QUERY, version=b"\x08\2"), "unsupported_version")
    invalid("the largest version", "version", request(QUERY, version=b"\x08\xff\xff\xff\xff\x0f"), "unsupported_version")
    invalid("a version of bytes", "type", request(QUERY, version=b"\x0a\1\1"))
    invalid("no epoch", "missing", request(QUERY, epoch=b""))
    invalid("an epoch of 31 bytes", "length", request(QUERY, epoch=EPOCH[:31]))
    invalid("an epoch of 33 bytes", "length", request(QUERY, epoch=EPOCH + b"\0"))
    invalid("the epoch of another table", "epoch", request(QUERY, epoch=OTHER), "epoch_gone")
    invalid("an epoch that is a number", "type", VERSION + b"\x10\1" + good[36:])
    invalid("no protocol", "missing", request(QUERY, protocol=b""))
    invalid("another protocol", "contradiction", request(QUERY, protocol=b"frodo"))
    invalid("a protocol with a zero", "contradiction", request(QUERY, protocol=b"sum\0"))
    invalid("a protocol in capitals", "form", request(QUERY, protocol=b"Sum"))
    invalid("a protocol that is not UTF-8", "text", request(QUERY, protocol=b"su\xe9"))
    invalid("a protocol of a surrogate", "text", request(QUERY, protocol=b"\xed\xa0\x80"))
    for number, (name, whole) in enumerate((("first", FIRST), ("second", SECOND)), 1):
        others = QUERY.replace(field(number, whole), b"")
        invalid(f"a query without {name}", "missing", request(others))
        invalid(f"{name} one byte short", "length", request(others + field(number, whole[:-1])))
        invalid(f"{name} one byte long", "length", request(others + field(number, whole + b"\0")))
    invalid("packed where there is none", "length", request(QUERY + field(3, b"\0")))
    invalid("a name of keys where there is none", "length", request(QUERY + field(4, bytes(32))))
    invalid("a second query of another length", "length", request(QUERY, QUERY[:-3]))
    invalid("a query that is empty", "missing", request(QUERY) + b"\x22\0")
    invalid("a length that goes on behind the message", "length", VERSION + b"\x22\x7f" + QUERY)
    invalid("a length of 2^63", "length", VERSION + b"\x22" + varint(1 << 63) + QUERY)
    invalid("a length of 2^64 - 1", "length", VERSION + b"\x22" + varint((1 << 64) - 1) + QUERY)
    invalid("a number of eleven bytes", "number", b"\x08" + b"\x80" * 10 + b"\1" + good[2:])
    invalid("a number of more than 64 bits", "number", b"\x08" + b"\xff" * 9 + b"\x7f" + good[2:])
    invalid("field number 0", "number", b"\0\0" + good)
    invalid("a field number of 30 bits", "number", b"\xf8\xff\xff\xff\x1f\0" + good)
    invalid("wire type 6", "type", b"\x7e\0" + good)
    invalid("wire type 7", "type", b"\x7f\0" + good)
    invalid("a group that ends without its start", "type", b"\x7c" + good)
    invalid("a fixed number that is cut", "truncated", good + b"\x79\0\0\0")
    return cases


def query_response() -> Cases:
    """The answer of `colpack` has 7,680 bytes; that of `simple` is three words of 12 bits, so that four bits are behind them."""
    texts = tables()
    cases = Cases("query_response", {name: texts[name] for name in ("colpack", "short")}, "bad_answer")
    cases.share(bytes(sealed("short")["hint"]["bytes"]))
    zeros = hexa(b"\0", 7680)
    answer = field(3, field(1, bytes(7680)))[:-7680]

    def case(add, name, reason, *pieces, queries=1, table="colpack"):
        add(name, reason, *pieces, descriptor=[of(table)], queries=queries)

    def head(table="colpack", epoch=None, version=VERSION):
        return version + field(2, bytes.fromhex(sealed(table)["epoch"]) if epoch is None else epoch)

    def valid(name, reason, *pieces, **more):
        case(cases.valid, name, reason, *pieces, **more)

    def invalid(name, reason, *pieces, **more):
        case(cases.invalid, name, reason, *pieces, **more)

    valid("one answer", "plain", hexa(head() + answer), zeros)
    valid("two answers to two queries", "plain", hexa(head() + answer), zeros, hexa(answer), zeros, queries=2)
    valid("an answer of ones", "boundary", hexa(head() + answer), hexa(b"\xff", 7680))
    valid("an answer before the version", "order", hexa(answer), zeros, hexa(head()))
    valid("an unknown field", "unknown", hexa(head() + answer), zeros, hexa(b"\x7a\2ab"))
    invalid("nothing", "missing")
    invalid("a web page", "syntax", "<html><body>504</body></html>")
    invalid("no answers", "count", hexa(head()))
    invalid("two answers to one query", "count", hexa(head() + answer), zeros, hexa(answer), zeros)
    invalid("one answer to two queries", "count", hexa(head() + answer), zeros, queries=2)
    invalid("a thousand empty answers", "count", hexa(head()), hexa(b"\x1a\0", 1000))
    invalid("an empty answer", "missing", hexa(head() + b"\x1a\0"))
    invalid("one byte short", "truncated", hexa(head() + answer), hexa(b"\0", 7679))
    invalid("one byte long", "trailing", hexa(head() + answer), hexa(b"\0", 7681))
    for size in (7679, 7681):
        invalid(f"an answer of {size} bytes", "length", hexa(head() + field(3, field(1, bytes(size)))[:-size]), hexa(b"\0", size))
    invalid("no version", "version", hexa(head(version=b"") + answer), zeros)
    invalid("version 2", "version", hexa(head(version=b"\x08\2") + answer), zeros)
    invalid("no epoch", "missing", hexa(VERSION + answer), zeros)
    invalid("an epoch of 31 bytes", "length", hexa(head(epoch=bytes(31)) + answer), zeros)
    invalid("another epoch", "epoch", hexa(head(epoch=bytes(32)) + answer), zeros)
    invalid("answers that are numbers", "type", hexa(head() + b"\x18\1"))
    invalid("a length of 2^64 - 1", "length", hexa(head() + b"\x1a" + varint((1 << 64) - 1)), zeros)
    short = hexa(head("short") + b"\x1a\7\x0a\5")
    valid("words that do not fill their bytes", "plain", short, hexa(b"\xff\xff\xff\xff\x0f"), table="short")
    invalid("a bit behind the last word", "form", short, hexa(b"\0\0\0\0\x10"), table="short")
    invalid("the last bit behind the last word", "form", short, hexa(b"\0\0\0\0\x80"), table="short")
    return cases


def evaluation_keys() -> Cases:
    """Keys of `INSECURE_PACK_N256`: 18 halves modulo Q_e of 90 bits a coefficient, then 4 modulo Q_1 of 59 bits."""
    cases = Cases("evaluation_keys", preset="INSECURE_PACK_N256")
    wide, narrow = 18 * 2880, 4 * 1888
    words, preset = wide + narrow, b"INSECURE_PACK_N256"

    def keys(*pieces, version=VERSION, name=preset, seed=bytes(32), length=words):
        return [hexa(version + field(2, name) + field(3, seed) + b"\x22" + varint(length)), *pieces]

    def invalid(name, reason, pieces):
        cases.invalid(name, reason, *pieces)

    zeros = hexa(b"\0", words)
    cases.valid("zeros", "plain", *keys(zeros))
    q, p = 2147377153 * 2147352577 * 2147295233, 2147377153 * 2147352577
    for name, modulus, before, behind in (("Q_e", q, 0, wide + narrow - 12), ("Q_1", p, wide, narrow - 8)):
        most = (modulus - 1 + 4) >> 3
        size = 12 if modulus == q else 8
        around = lambda word: [*([hexa(b"\0", before)] if before else []), hexa(word.to_bytes(size, "little")), hexa(b"\0", behind)]
        cases.valid(f"the largest coefficient modulo {name}", "boundary", *keys(*around(most)))
        invalid(f"the modulus {name}, cut", "range", keys(*around(most + 1)))
    invalid("a last coefficient of ones", "range", keys(hexa(b"\0", words - 8), hexa(b"\xff", 8)))
    invalid("nothing", "missing", [])
    invalid("one byte short", "truncated", keys(hexa(b"\0", words - 1)))
    invalid("one byte long", "trailing", keys(zeros, hexa(b"\0")))
    invalid("words one byte short", "length", keys(hexa(b"\0", words - 1), length=words - 1))
    invalid("words one byte long", "length", keys(hexa(b"\0", words + 1), length=words + 1))
    invalid("version 0", "version", keys(zeros, version=b"\x08\0"))
    invalid("version 2", "version", keys(zeros, version=b"\x08\2"))
    invalid("another set, whose name is as long", "contradiction", keys(zeros, name=b"INSECURE_PACK_M256"))
    invalid("a set whose name is not UTF-8", "text", keys(zeros, name=preset[:-1] + b"\xff"))
    invalid("a seed of 31 bytes", "length", keys(zeros, seed=bytes(31)))
    invalid("a seed of 33 bytes", "length", keys(zeros, seed=bytes(33)))
    invalid("an unknown field", "unknown", keys(zeros, hexa(b"\x78\5")))
    invalid("words of another type", "type", [hexa(VERSION + field(2, preset) + field(3, bytes(32)) + b"\x20\0")])
    return cases


def query() -> Cases:
    cases = Cases("query")

    def words(columns, bits):
        return {"field": "first", "columns": columns, "bits": bits}

    for columns, bits, count, unused in ((3, 12, 5, 4), (8, 21, 21, 0), (1, 32, 4, 0), (7, 1, 1, 1)):
        name, shape = f"{columns} words of {bits} bits", words(columns, bits)
        full = (b"\xff" * count)[:-1] + bytes([0xFF >> unused])
        cases.valid(f"{name}, all ones", "boundary", hexa(full), **shape)
        cases.invalid(f"{name}, one byte short", "length", hexa(full[:-1]), **shape)
        cases.invalid(f"{name}, one byte long", "length", hexa(full + b"\0"), **shape)
        if unused:
            cases.invalid(f"{name}, a bit behind them", "form", hexa(full[:-1] + bytes([0x100 >> unused])), **shape)
    # Rotation key of 1,472 bytes, conjugation key of 42 bits a coefficient, two rows of 46 bits.
    q = 67104769 * 67084289
    rotation, conjugation, row = 1472, 1344, 1472
    for folds, length in ((0, rotation + conjugation), (1, rotation + conjugation + 2 * row)):
        shape, name = {"field": "packed", "preset": "INSECURE_COLPACK_N256", "folds": folds}, f"column keys, {folds} folds"
        ones = hexa(b"\xff", rotation)
        cases.valid(f"{name}: a rotation key of ones", "boundary", ones, hexa(b"\0", length - rotation), **shape)
        cases.invalid(f"{name}: nothing", "missing", **shape)
        cases.invalid(f"{name}: one byte short", "length", hexa(b"\0", length - 1), **shape)
        cases.invalid(f"{name}: one byte long", "length", hexa(b"\0", length + 1), **shape)
        starts = [("conjugation key", rotation, 10)] + [("row", rotation + conjugation, 6), ("last row", length - row, 6)] * folds
        for key, start, low in starts:
            most = (q - 1 + (1 << low >> 1)) >> low
            around = lambda word: [hexa(b"\0", start), hexa(word.to_bytes(6, "little")), hexa(b"\0", length - start - 6)]
            cases.valid(f"{name}: the largest coefficient of the {key}", "boundary", *around(most), **shape)
            cases.invalid(f"{name}: a coefficient of the {key} beyond the modulus", "range", *around(most + 1), **shape)
        cases.invalid(f"{name}: ones", "range", hexa(b"\xff", length), **shape)
    cases.invalid("column keys of another protocol", "length", hexa(b"\0", rotation + conjugation), field="packed", preset="INSECURE_COLPACK_N256", folds=1)
    # A seed, two selectors of 52 bits, two digits of 52 bits.
    shape = {"field": "packed", "preset": "ONION_M31", "selectors": 2, "folds": 1}
    most = (2147377153 * 2147352577 * 2147295233 - 1 + (1 << 40)) >> 41
    full = (most << 52 | most).to_bytes(13, "little")
    seed = b"\xff" * 16
    cases.valid("ring query: the largest coefficients", "boundary", hexa(seed + full + full), **shape)
    cases.valid("ring query: zeros", "plain", hexa(b"\0", 42), **shape)
    cases.invalid("ring query: nothing", "missing", **shape)
    cases.invalid("ring query: the seed alone", "truncated", hexa(seed), **shape)
    cases.invalid("ring query: one byte short", "length", hexa(b"\0", 41), **shape)
    cases.invalid("ring query: one byte long", "length", hexa(b"\0", 43), **shape)
    cases.invalid("ring query: a selector beyond the modulus", "range", hexa(seed + (most + 1).to_bytes(13, "little") + full), **shape)
    cases.invalid("ring query: a digit beyond the modulus", "range", hexa(seed + full + (most + 1 << 52).to_bytes(13, "little")), **shape)
    # Three selectors of 52 bits take a byte and a half more: four bits are behind them.
    shape = {"field": "packed", "preset": "ONION_M31", "selectors": 3, "folds": 0}
    cases.valid("ring query of three selectors", "plain", hexa(b"\0", 36), **shape)
    cases.invalid("ring query of three selectors: a bit behind them", "form", hexa(bytes(35) + b"\x10"), **shape)
    return cases


def table_list() -> Cases:
    cases = Cases("tables", {"colpack": tables()["colpack"]}, "not_hushdb", descriptor=[of("colpack")])
    entry = '{"name":"t","state":"resident","epoch":null,"protocol":"colpack","records":6}'

    def with_entry(old: str, new: str) -> str:
        assert old in entry
        return '{"tables":[' + entry.replace(old, new) + "]}"

    def valid(name, reason, *pieces):
        cases.valid(name, reason, *pieces)

    def invalid(name, reason, *pieces):
        cases.invalid(name, reason, *pieces)

    valid("one table", "plain", with_entry("resident", "resident"))
    valid("no protocol and no records, as while it is loading", "missing", '{"tables":[{"name":"t","state":"loading"}]}')
    valid("records and protocol that are null", "boundary", with_entry('"colpack","records":6', 'null,"records":null'))
    valid("members that are not known", "unknown", '{"new":{"a":[1.5e9]},"tables":[' + entry.replace("{", '{"new":-1,', 1) + "]}")
    valid("white space", "form", ' {\n"tables" :\t[ ' + entry + " ] }\r\n")
    valid("the most records", "boundary", with_entry("6}", f"{2**64 - 1}}}"))
    valid("a name of 64 letters beside it", "boundary", '{"tables":[' + entry + ',{"name":"', texts_of("a", 64), '","state":"resident"}]}')
    valid("a descriptor that cannot be read: it is asked for later", "unknown", '{"tables":[' + entry + '],"descriptor":{"version":3}}')
    invalid("nothing", "missing")
    invalid("a web page", "syntax", "<html>")
    invalid("a list alone", "type", "[" + entry + "]")
    invalid("no list", "missing", "{}")
    invalid("a list that is null", "type", '{"tables":null}')
    invalid("a table that is a text", "type", '{"tables":["t"]}')
    invalid("one byte short", "truncated", with_entry("6", "6")[:-1])
    invalid("one byte long", "trailing", with_entry("6", "6") + "}")
    invalid("two lists", "duplicate", '{"tables":[],"tables":[' + entry + "]}")
    invalid("two names", "duplicate", with_entry("{", '{"name":"s",'))
    invalid("no name", "missing", with_entry('"name":"t",', ""))
    invalid("no state", "missing", with_entry('"state":"resident",', ""))
    for reason, name in (("text", ""), ("text", ".t"), ("text", "a/b"), ("text", "../t"), ("text", "a b"), ("text", "t\\u0000"), ("text", "\u00e9"), ("type", None)):
        invalid(f"the name {name!r}", reason, with_entry('"t"', f'"{name}"' if name is not None else "null"))
    invalid("a name of 65 letters", "length", '{"tables":[{"name":"', texts_of("a", 65), '","state":"resident"}]}')
    for word in ("-1", "1.5", "6.0", "1e3", "18446744073709551616", "NaN", "Infinity", '"6"', "06", "+6"):
        invalid(f"{word} records", "number", with_entry("6}", word + "}"))
    invalid("a name that is not UTF-8", "text", '{"tables":[{"state":"resident","name":"', hexa(b"\xff"), '"}]}')
    invalid("half a surrogate pair", "text", with_entry('"resident"', '"\\ud800"'))
    invalid("a mark of the order of bytes", "text", hexa(b"\xef\xbb\xbf"), with_entry("6", "6"))
    valid("lists in lists, in a member that is not known", "nesting", '{"new":', texts_of("[", 100), texts_of("]", 100), ',"tables":[' + entry + "]}")
    invalid("lists in lists", "nesting", '{"tables":', texts_of("[", 10_000), texts_of("]", 10_000), "}")
    return cases


def problem() -> Cases:
    cases = Cases("problem", {"colpack": tables()["colpack"]}, "not_hushdb", descriptor=[of("colpack")])

    def case(add, name, reason, status, code, *pieces):
        add(name, reason, *pieces, code=code, status=status)

    def document(code: str, more: str = "") -> str:
        return f'{{"type":"urn:hushdb:problem:{code}","title":"t","status":400,"detail":"d","code":"{code}"{more}}}'

    known = ((400, "invalid_request"), (401, "unauthorized"), (403, "forbidden"), (404, "unknown_table"), (404, "not_found"), (409, "refused"))
    for status, code in (*known, (413, "too_large"), (415, "unsupported_version"), (500, "internal"), (503, "device_lost"), (503, "part_unavailable")):
        case(cases.valid, f"{status} {code}", "plain", status, code, document(code))
    case(cases.valid, "without the other members", "missing", 404, "not_found", '{"code":"not_found","detail":""}')
    case(cases.valid, "with a member that is not known", "unknown", 404, "not_found", document("not_found", ',"new":[{}]'))
    case(cases.valid, "with control characters in its text", "text", 500, "internal", '{"code":"internal","detail":"\\u001b[2J\\r\\n\\u0000"}')
    case(cases.valid, "with a text of 60,000 bytes", "boundary", 500, "internal", '{"code":"internal","detail":"', texts_of("x", 60_000), '"}')
    case(cases.valid, "410 epoch_gone without a descriptor", "missing", 410, "epoch_gone", document("epoch_gone"))
    for name, descriptor in (("another version", '{"version":2}'), ("nothing in it", "{}"), ("a list", "[]")):
        more = f',"descriptor":{descriptor}'
        case(cases.invalid, f"410 with a descriptor of {name}", "version", 410, "bad_answer", document("epoch_gone", more))
    for status, code in ((400, "refused"), (401, "unauthorized"), (403, "forbidden"), (429, "throttled"), (503, "overloaded"), (500, "refused")):
        case(cases.invalid, f"{status} with a code of a later version", "unknown", status, code, document("new_in_a_later_version"))
    case(cases.invalid, "a code that belongs to another status", "contradiction", 404, "refused", document("key_not_found"))
    case(cases.invalid, "a code of clients", "contradiction", 404, "refused", document("bad_answer"))
    case(cases.invalid, "a code in capitals", "form", 404, "refused", document("NOT_FOUND"))
    bodies = {
        "nothing": ("missing", []),
        "a web page": ("syntax", ["<html>"]),
        "no code": ("missing", ['{"detail":"d"}']),
        "no text": ("missing", ['{"code":"not_found"}']),
        "a code that is a number": ("type", ['{"code":404,"detail":"d"}']),
        "a code that is there twice": ("duplicate", ['{"code":"not_found","code":"not_found","detail":"d"}']),
        "a text that is not UTF-8": ("text", ['{"code":"not_found","detail":"', hexa(b"\xff"), '"}']),
        "one byte short": ("truncated", ['{"code":"not_found","detail":"d"']),
        "lists in lists": ("nesting", ['{"code":"not_found","detail":', texts_of("[", 10_000), texts_of("]", 10_000), "}"]),
    }
    for name, (reason, pieces) in bodies.items():
        case(cases.invalid, f"404 with {name}", reason, 404, "not_hushdb", *pieces)
    for status, code in ((413, "proxy"), (403, "proxy"), (502, "proxy"), (429, "throttled"), (503, "overloaded")):
        case(cases.invalid, f"{status} with a web page", "syntax", status, code, "<html>")
    return cases


def url() -> Cases:
    cases = Cases("url", {}, "url")
    for reason, text in (
        ("plain", "http://127.0.0.1:1"),
        ("boundary", "http://127.0.0.1:1/"),
        ("boundary", "http://127.0.0.1:1/a/b"),
        ("boundary", "HTTP://127.0.0.1:1"),
        ("boundary", "http://[::1]:1"),
        ("boundary", "https://localhost:1"),
    ):
        cases.valid(text, reason, text)
    for reason, text in (
        ("missing", ""),
        ("syntax", "no url"),
        ("syntax", "127.0.0.1:1"),
        ("syntax", "/v1/tables"),
        ("syntax", "//127.0.0.1:1"),
        ("unknown", "ftp://127.0.0.1:1"),
        ("unknown", "file:///etc/passwd"),
        ("unknown", "httpx://127.0.0.1:1"),
        ("missing", "http://"),
        ("missing", "http://:80"),
        ("syntax", "http:127.0.0.1"),
        ("contradiction", "http://127.0.0.1:1/?a=b"),
        ("contradiction", "http://127.0.0.1:1/#a"),
        ("contradiction", "http://127.0.0.1:1#"),
        ("range", "http://127.0.0.1:65536"),
        ("range", "http://127.0.0.1:99999999999999999999"),
        ("range", "http://127.0.0.1:-1"),
        ("number", "http://127.0.0.1:8o"),
        ("syntax", "http://[::1"),
        ("text", "http://127.0.0.1:1/a b"),
        ("text", "http://127.0.0.1:1/\n"),
        ("text", "http://127.0.0.1 :1"),
        ("text", "http://127.0.0.1:1/\u0000"),
    ):
        cases.invalid(repr(text)[1:-1] or "nothing", reason, text)
    return cases


def ohttp_keys() -> Cases:
    """Key configurations of RFC 9458, section 3, of X25519 with HKDF-SHA256 and ChaCha20-Poly1305."""
    cases = Cases("ohttp_keys", {}, "relay")
    kem, public, suite = b"\0\x20", b"\x09" + bytes(31), b"\0\1\0\3"

    def config(kem=kem, public=public, suites=suite, length=None) -> bytes:
        body = b"\1" + kem + public + (len(suites) if length is None else length).to_bytes(2, "big") + suites
        return len(body).to_bytes(2, "big") + body

    good = config()
    for name, reason, content in (
        ("one key", "plain", good),
        ("other ciphers before", "plain", config(suites=b"\0\1\0\1" + suite)),
        ("a key of another kind before", "unknown", config(kem=b"\0\x10", public=b"\4" + bytes(64)) + good),
        ("a configuration of nothing before", "unknown", b"\0\0" + good),
        ("two keys", "plain", good + good),
    ):
        cases.valid(name, reason, hexa(content))
    for name, reason, content in (
        ("nothing", "missing", b""),
        ("a web page", "syntax", b"<html>"),
        ("one byte short", "truncated", good[:-1]),
        ("one byte long", "trailing", good + b"\0"),
        ("without its length", "missing", good[2:]),
        ("a second key that is cut", "truncated", good + good[:-1]),
        ("a length of 65,535", "length", b"\xff\xff" + good[2:]),
        ("no ciphers", "count", config(suites=b"")),
        ("three bytes of ciphers", "length", config(suites=suite[:3])),
        ("ciphers of two bytes more than there are", "length", config(length=6)),
        ("ciphers that end before the configuration", "trailing", config(suites=suite + b"\0", length=4)),
        ("another cipher", "unknown", config(suites=b"\0\1\0\1")),
        ("another hash", "unknown", config(suites=b"\0\2\0\3")),
        ("another kind of key", "unknown", config(kem=b"\0\x21")),
        ("a public key of 31 bytes", "length", config(public=public[:31])),
        ("a public key of 33 bytes", "length", config(public=public + b"\0")),
        ("a public key of zeros", "range", config(public=bytes(32))),
        ("a public key of small order", "range", config(public=b"\1" + bytes(31))),
    ):
        cases.invalid(name, reason, hexa(content))
    return cases


def cases() -> list[Cases]:
    return [ohttp_keys(), query_request(), query_response(), evaluation_keys(), query(), table_list(), problem(), url()]
