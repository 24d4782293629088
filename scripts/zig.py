"""Runs cargo with Zig as the linker, which can link for older C libraries: the programs run with glibc 2.28 and newer. As a command:
`zig.py CARGO ARGUMENT..`, with the arguments of `cargo build`."""

import os
import pathlib
import subprocess
import sys

import pins

ROOT = pathlib.Path(__file__).resolve().parents[1]
REQUIREMENTS = ROOT / "scripts/zig-requirements.txt"
GLIBC = "2.28"
TARGET = "x86_64-unknown-linux-gnu"


def build(cargo: str, *arguments: str, env: dict[str, str] | None = None) -> bool:
    """Runs `cargo zigbuild`, which puts programs into `folder()`. Returns whether it succeeds.

    Raises `pins.PipError` if Zig cannot be fetched."""
    tools = pins.cached("zig", REQUIREMENTS.read_bytes(), fetch)
    zig = {"CARGO_ZIGBUILD_ZIG_PATH": str(tools / "ziglang/zig"), "PATH": f"{tools / 'bin'}:{os.environ['PATH']}"}
    command = [cargo, "zigbuild", *arguments, "--target", f"{TARGET}.{GLIBC}"]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **zig, **(env or {})}).returncode == 0


def folder() -> pathlib.Path:
    """Returns the folder in which cargo puts the programs for this target."""
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / TARGET


def fetch(cache: pathlib.Path) -> None:
    print("fetching Zig, which links (about 80 MiB, once)", file=sys.stderr, flush=True)
    pins.pip("install", REQUIREMENTS, "--target", cache / "tree")


if __name__ == "__main__":
    try:
        sys.exit(not build(*sys.argv[1:]))
    except pins.PipError as error:
        sys.exit(f"error: {error}")
