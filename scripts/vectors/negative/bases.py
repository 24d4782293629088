"""The valid descriptors from which cases are made."""

import functools

from negative import ed25519
from negative.cases import hash_of
from negative.described import ZEROS, epoch_of, message_of, written

SEED = bytes(range(32))
PUBLIC = ed25519.sign(SEED, b"")[0].hex()
BLOB = {"blake3": "22" * 32, "bytes": 0}


def table(protocol: str, preset: str, records: int, columns: int, blocks: int, slot: tuple, lookup: dict, **more) -> dict:
    """Returns a descriptor. `slot` has its members, in order."""
    names = ("fingerprint_bytes", "length_bytes", "max_value_bytes", "head_bytes")
    optional = {name: more[name] for name in ("schema", "compression") if name in more}
    behind = {name: more[name] for name in ("sorted", "hint", "whitening") if name in more}
    described = {"version": 3, "epoch": ZEROS, "protocol": protocol, "preset": preset, "records": records, "columns": columns, "blocks": blocks}
    described |= {"word_bits": more["word_bits"]} if "word_bits" in more else {}
    described |= {"slot": dict(zip(names, slot))} | optional | {"lookup": lookup} | behind | {"database": "33" * 32}
    return seal(described | ({"segments": more["segments"]} if "segments" in more else {}))


def seal(described: dict) -> dict:
    """Gives a descriptor the epoch of the rest, without which nobody reads further."""
    return described | {"epoch": epoch_of(described)}


def signed(described: dict, name: str = "table", serial: int = 7, time: int = 1_800_000_000) -> dict:
    signature = {"publisher": PUBLIC, "name": name, "serial": serial, "time": time}
    value = ed25519.sign(SEED, message_of(described["epoch"], signature))[1].hex()
    return described | {"signature": signature | {"signature": value}}


def hint(rows: int, n: int = 1280, bits: int = 32) -> dict:
    size = rows * n * bits // 8
    return {"blake3": hash_of(bytes(size)), "bytes": size}


def keys(blocks: int, by: str = "key", filter: str = "band64") -> dict:
    return {"by": by, "filter": filter, "seed": "11" * 32, "thresholds": "00" * blocks, "block_seeds": "00" * blocks}


def segment(role: str, slot_bytes: int) -> dict:
    shape = {"role": role, "records": 9, "columns": 256, "blocks": 1, "entries": 1, "slot_bytes": slot_bytes}
    return shape | {"lanes": {"seeds": "00", "thresholds": "00"}, "hint": hint(slot_bytes), "database": "44" * 32}


def download(value: bytes, **more) -> dict:
    """Returns a table of one record of the value, which clients download. `longest`: its slots have a length of one byte."""
    lengths = (0, 1, more.pop("longest")) if "longest" in more else (0, 0, len(value))
    content = {"blake3": hash_of(value), "bytes": len(value)}
    return table("download", "DOWNLOAD", 1, 1, 1, lengths, {"by": "index"}, hint=content, **more)


@functools.cache
def all_tables() -> dict[str, dict]:
    simple, wide = ("simple", "LWE_N1280_STD3_2_RING256"), {"word_bits": [32, 32, 32]}
    colpack = table("colpack", "COLPACK_N2048_Q52", 6, 2, 3, (0, 0, 5), {"by": "index"}, word_bits=[32, 18, 12])
    text = {"key": [["k", "string"]], "value": [["v", "string"], ["w", "int64"]]}
    fences = {"blob": {"blake3": "22" * 32, "bytes": 9}, "length": 1}
    ordered = {"order": "ip", "range": "network", "rows": 5, "overlap": 0, "fences": fences, "added": fences}
    tiers = [segment("tier", 6), segment("delta", 20)]
    return {
        "colpack": colpack,
        "signed": signed(colpack),
        "short": table(*simple, 1, 1, 1, (0, 0, 3), {"by": "index"}, hint=hint(3), word_bits=[32, 32, 12]),
        "keyed": table(*simple, 30, 128, 2, (8, 1, 20), keys(2), schema=text, hint=hint(58), **wide),
        "tiered": table(*simple, 30, 256, 1, (8, 1, 11, 5), keys(1), hint=hint(14), segments=tiers, **wide),
        "placed": table(*simple, 30, 256, 1, (0, 1, 11, 5), keys(1, "position"), hint=hint(6), segments=tiers[:1], **wide),
        "onion": table("onion", "ONION_M31", 4, 2, 2, (0, 0, 11), {"by": "index"}, whitening="55" * 32),
        "local": table("download", "DOWNLOAD", 1, 1, 1, (0, 0, 5), {"by": "index"}, hint=BLOB | {"bytes": 5}),
        "packed": download(
            bytes(9), compression={"codec": "zstd", "dictionary": BLOB | {"bytes": 9}, "max_value_bytes": 100}, longest=8
        ),
        "ordered": download(
            bytes(9), schema={"key": [["net", "string"]], "value": [["v", "string"]]}, sorted=ordered, longest=8
        ),
    }


def sealed(name: str) -> dict:
    return all_tables()[name]


def tables() -> dict[str, str]:
    return {name: written(described) for name, described in all_tables().items()}
