"""Pinned Python wheels, fetched once into a cache folder that is named by the hash of the pins."""

import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable

# The folder for what all checkouts share.
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "hushdb"


class PipError(Exception):
    """pip failed to get the wheels. The text has its messages."""


def cached(name: str, pins: bytes, fetch: Callable[[pathlib.Path], None]) -> pathlib.Path:
    """Returns the cache folder of `name`, which differs for every set of pins and exists only if it is complete. If it is missing, calls
    `fetch` with a temporary folder, in which `fetch` creates the content as `tree`."""
    folder = CACHE / f"{name}-{hashlib.sha256(pins).hexdigest()[:8]}"
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE, prefix=f".{name}-") as temporary:
            fetch(pathlib.Path(temporary))
            publish(pathlib.Path(temporary) / "tree", folder)
    return folder


def pip(command: str, requirements: pathlib.Path, *options: str | pathlib.Path) -> None:
    """Runs `pip download` or `pip install` for the wheels in `requirements`, and checks their hashes. Raises `PipError` if pip fails."""
    pip = [sys.executable, "-m", "pip", command, "--quiet", "--disable-pip-version-check", "--no-deps"]
    pip += ["--only-binary=:all:", "--require-hashes", "--requirement", requirements, *options]
    result = subprocess.run(pip, capture_output=True, text=True)
    if result.returncode:
        why = result.stderr.strip().splitlines() or ["no message"]
        raise PipError(f"pip {command} failed:\n  " + "\n  ".join(why[-6:]))


def publish(tree: pathlib.Path, folder: pathlib.Path) -> None:
    try:
        tree.rename(folder)
    except OSError:
        if not folder.exists():  # else another process was first
            raise
