"""Reads which C library a program needs. As a command: `glibc.py VERSION PROGRAM..` fails for programs that need a later one."""

import os
import pathlib
import re
import subprocess
import sys


def too_new(path: pathlib.Path, version: str) -> list[str]:
    """Names of the C library that a program needs and that came after `version`, as name@GLIBC_version."""
    number = lambda text: [int(part) for part in text.split(".")]
    needed = re.findall(r" UND (\w+)@GLIBC_([\d.]+)", read_elf("--dyn-syms", path))
    return sorted({f"{name}@GLIBC_{since}" for name, since in needed if number(since) > number(version)})


def libraries(path: pathlib.Path) -> set[str]:
    """Libraries that are loaded with a program."""
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", read_elf("--dynamic", path)))


def read_elf(what: str, path: pathlib.Path) -> str:
    return subprocess.check_output(["readelf", "--wide", what, path], text=True, env={**os.environ, "LC_ALL": "C"})


def main(version: str, *paths: str) -> int:
    wrong = [f"{path} needs {name}" for path in paths for name in too_new(pathlib.Path(path), version)]
    print("\n".join(f"error: {line}, which is later than {version}" for line in wrong), file=sys.stderr, end="\n" if wrong else "")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
