"""The module that recomputes each protocol."""

import pathlib
from collections.abc import Callable, Iterator

import colpack
import double
import double_pack
import download
import exppack_d
import hybrid
import onion
import simple
import tfhe
import tfhe_privks
from vector import Differs, Step, Vector

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "vectors"

STEPS: dict[str, Callable[[Vector], Iterator[Step]]] = {
    "hybrid": hybrid.steps,  # the longest first
    "onion": onion.steps,
    "tfhe": tfhe.steps,
    "tfhe-privks": tfhe_privks.steps,
    "colpack": colpack.steps,
    "colpack-s": colpack.steps,
    "frodo": simple.steps,
    "simple": simple.steps,
    "double": double.steps,
    "exppack-s": hybrid.steps,
    "exppack-d": exppack_d.steps,
    "double-pack": double_pack.steps,
    "download": download.steps,
}


def forgotten() -> list[str]:
    """Returns the protocols that have known answers, but no module."""
    return sorted({path.stem for path in FOLDER.glob("*.json")} - STEPS.keys())


def report(protocol: str, folder: pathlib.Path = FOLDER) -> tuple[bool, str]:
    """Recomputes a protocol's known answers. Returns whether all are equal, and a line of text for people."""
    try:
        vector = Vector(folder / f"{protocol}.json")
        names = vector.compare(STEPS[protocol](vector))
    except Differs as place:
        return False, f"{protocol}: differs: {place}"
    return True, f"{protocol}: {len(names)} equal: {'; '.join(names)}"
