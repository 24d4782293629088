"""Reads the version of the C library that a program needs. `glibc.py VERSION PROGRAM..` fails if one needs a later version."""

import os
import pathlib
import re
import subprocess
import sys


def too_new(path: pathlib.Path, version: str) -> list[str]:
    """Returns the symbols of the C library that a program needs and that are newer than `version`, as name@GLIBC_version."""
    number = lambda text: [int(part) for part in text.split(".")]
    needed = re.findall(r" UND (\w+)@GLIBC_([\d.]+)", read_elf("--dyn-syms", path))
    return sorted({f"{name}@GLIBC_{since}" for name, since in needed if number(since) > number(version)})


def libraries(path: pathlib.Path) -> set[str]:
    """Returns the names of the shared libraries that a program loads."""
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", read_elf("--dynamic", path)))


def read_elf(what: str, path: pathlib.Path) -> str:
    return subprocess.check_output(["readelf", "--wide", what, path], text=True, env={**os.environ, "LC_ALL": "C"})


def main(version: str, *paths: str) -> int:
    wrong = [f"{path} needs {name}" for path in paths for name in too_new(pathlib.Path(path), version)]
    print("\n".join(f"error: {line}, which is later than {version}" for line in wrong), file=sys.stderr, end="\n" if wrong else "")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
