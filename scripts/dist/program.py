"""Builds and checks the program for machines with an older C library than this machine's."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "scripts"))

import glibc
import pins
import zig

GLIBC, TARGET = zig.GLIBC, zig.TARGET
FEATURES = ["cuda", "page"]  # the program also runs without a GPU
# The only shared libraries that the program may load: parts of the C library.
LIBRARIES = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1", "ld-linux-x86-64.so.2"}


class NoProgram(Exception):
    """The program cannot be built, or is wrong. The text says why, and what to do."""


def build(cargo: str, out: pathlib.Path) -> None:
    """Compiles the program, and strips it into `out`. Raises `NoProgram` if that fails."""
    home = os.environ.get("CARGO_HOME") or pathlib.Path.home() / ".cargo"
    # Panic messages contain source paths: the flags hide the paths of this machine.
    flags = f"--remap-path-prefix={ROOT}=/hushdb --remap-path-prefix={home}=/cargo"
    command = ["--release", "--locked", "--package", "hushdb", "--features", ",".join(FEATURES)]
    try:
        compiles = zig.build(cargo, *command, env={"RUSTFLAGS": flags})
    except pins.PipError as error:
        raise NoProgram(str(error)) from error
    if not compiles:
        raise NoProgram("it does not compile; see above")
    subprocess.run(["strip", "--strip-all", "-o", out, zig.folder() / "release/hushdb"], check=True)


def check(path: pathlib.Path, version: str) -> None:
    """Checks that a program needs no newer C library than `GLIBC`, contains no paths of this machine, and reports `version`. Raises
    `NoProgram` otherwise."""
    wrong = [f"needs {name}" for name in glibc.too_new(path, GLIBC)]
    wrong += [f"needs {name}, which is no part of the C library" for name in sorted(glibc.libraries(path) - LIBRARIES)]
    for folder in (f"{ROOT}/", f"{pathlib.Path.home()}/"):
        if folder.encode() in path.read_bytes():
            wrong.append(f"has paths of this machine: strings {path} | grep {folder}")
    said = subprocess.run([path, "--version"], capture_output=True, text=True)
    if (said.returncode, said.stdout) != (0, f"hushdb {version}\n"):
        wrong.append(f"--version says {said.stdout.strip() or said.stderr.strip()!r}, not hushdb {version}")
    if wrong:
        raise NoProgram(f"{path} " + "; ".join(wrong))
