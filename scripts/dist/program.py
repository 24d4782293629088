"""The program for machines with an older C library than this machine's."""

import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "scripts"))

import glibc
import pins
import zig
from targets import Target

GLIBC = zig.GLIBC
FEATURES = ["cuda", "page"]  # it runs without a GPU, too
# The program loads parts of the C library and nothing else.
LIBRARIES = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1"}


class NoProgram(Exception):
    """A release cannot be made; the text says why, and what to do."""


def build(cargo: str, target: Target, variables: dict[str, str], out: pathlib.Path) -> None:
    """Compiles the program without symbols, and copies it to `out`."""
    command = ["--release", "--locked", "--package", "hushdb", "--features", ",".join(FEATURES), "--ignore-rust-version"]
    try:
        compiles = zig.build(cargo, *command, target=target.triple, env=variables)
    except pins.PipError as error:
        raise NoProgram(str(error)) from error
    if not compiles:
        raise NoProgram(f"the program does not compile for {target.triple}; see above")
    out.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(zig.folder(target.triple) / "release/hushdb", out)
    out.chmod(0o755)


def environment(target: Target, commit: str, tools: pathlib.Path) -> dict[str, str]:
    """Returns the variables of cargo with which a release is compiled.

    Raises `NoProgram` if the compiler cannot be installed."""
    try:
        compiler = target.compiler(tools)
    except subprocess.CalledProcessError as error:
        raise NoProgram(str(error)) from error
    prefix = f"-ffile-prefix-map={ROOT}=/hushdb"
    return {"HUSHDB_COMMIT": commit, "CARGO_PROFILE_RELEASE_STRIP": "symbols", "CFLAGS": prefix, "CXXFLAGS": prefix,
            **compiler}


def check(path: pathlib.Path, target: Target, version: str) -> None:
    """Raises `NoProgram` unless the program starts where the C library is as old as `GLIBC`, and has this version."""
    wrong = faults(path, target)
    said = subprocess.run([*target.runner, path, "--version"], capture_output=True, text=True)
    if (said.returncode, said.stdout) != (0, f"hushdb {version}\n"):
        wrong.append(f"--version says {said.stdout.strip() or said.stderr.strip()!r}, not hushdb {version}")
    if wrong:
        raise NoProgram(f"{path} " + "; ".join(wrong))


def faults(path: pathlib.Path, target: Target) -> list[str]:
    """Returns what keeps a program or a library from being for all machines of a target."""
    wrong = [f"needs {name}" for name in glibc.too_new(path, GLIBC)]
    others = sorted(glibc.libraries(path) - LIBRARIES - {target.loader})
    wrong += [f"needs {name}, which is no part of the C library" for name in others]
    for folder in (f"{ROOT}/", f"{pathlib.Path.home()}/"):
        if folder.encode() in path.read_bytes():
            wrong.append(f"has paths of this machine: strings {path} | grep {folder}")
    return wrong
