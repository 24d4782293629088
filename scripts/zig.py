"""Cargo with Zig as the linker, which knows the names that older C libraries had: what comes of it runs with glibc 2.28 and newer. As a
command: `zig.py CARGO ARGUMENT..`, the arguments those of `cargo build`; `zig.py --check CARGO ARGUMENT..` links nothing, for any target."""

import os
import pathlib
import subprocess
import sys

import pins

ROOT = pathlib.Path(__file__).resolve().parents[1]
REQUIREMENTS = ROOT / "scripts/zig-requirements.txt"
GLIBC = "2.28"
TARGET = "x86_64-unknown-linux-gnu"


def build(cargo: str, *arguments: str, target: str = TARGET, env: dict[str, str] | None = None) -> bool:
    """Returns whether the arguments compile for `target`. Programs are in `folder(target)`.

    Raises `pins.PipError` if Zig cannot be fetched."""
    command = [cargo, "zigbuild", *arguments, "--target", f"{target}.{GLIBC}"]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **variables(), **(env or {})}).returncode == 0


def check(cargo: str, *arguments: str) -> bool:
    """Returns whether the arguments of `cargo check` succeed, with Zig as the compiler of what is in C.

    Raises `pins.PipError` if Zig cannot be fetched."""
    command = ["cargo-zigbuild", "check", *arguments]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **variables(), "CARGO": cargo}).returncode == 0


def variables() -> dict[str, str]:
    """Returns the variables by which cargo-zigbuild, and maturin, find Zig.

    Raises `pins.PipError` if Zig cannot be fetched."""
    tools = pins.cached("zig", REQUIREMENTS.read_bytes(), fetch)
    return {"CARGO_ZIGBUILD_ZIG_PATH": str(tools / "ziglang/zig"), "PATH": f"{tools / 'bin'}:{os.environ['PATH']}"}


def folder(target: str = TARGET) -> pathlib.Path:
    """Returns the folder of what cargo compiled for `target`."""
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / target


def fetch(cache: pathlib.Path) -> None:
    print("fetching Zig, which links (about 80 MiB, once)", file=sys.stderr, flush=True)
    pins.pip("install", REQUIREMENTS, "--target", cache / "tree")


if __name__ == "__main__":
    try:
        sys.exit(not (check(*sys.argv[2:]) if sys.argv[1] == "--check" else build(*sys.argv[1:])))
    except pins.PipError as error:
        sys.exit(f"error: {error}")
