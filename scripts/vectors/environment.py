"""The pinned packages, fetched once."""

import pathlib
import sys

SCRIPTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(SCRIPTS))

import pins

REQUIREMENTS = SCRIPTS / "vectors/requirements.txt"


class MissingPackages(Exception):
    """The packages cannot be fetched. The text says why."""


def enter() -> None:
    """Fetches the packages at the first call, and makes them importable. Raises `MissingPackages` if pip fails."""
    name = f"vectors-{sys.implementation.cache_tag}"  # wheels are for one Python
    try:
        sys.path.insert(0, str(pins.cached(name, REQUIREMENTS.read_bytes(), fetch)))
    except pins.PipError as error:
        raise MissingPackages(str(error)) from error


def fetch(folder: pathlib.Path) -> None:
    if sys.version_info < (3, 11):
        raise MissingPackages("Python 3.11 or later is needed")
    print("vectors: fetching numpy and blake3 (about 20 MiB, once)", flush=True)
    pins.pip("install", REQUIREMENTS, "--target", folder / "tree")
