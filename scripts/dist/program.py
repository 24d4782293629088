"""The program for machines with an older C library than this one's."""

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
FEATURES = ["cuda", "page"]  # it runs without a GPU, too
# Parts of the C library, and nothing else, are looked for when it starts.
LIBRARIES = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1", "ld-linux-x86-64.so.2"}


class NoProgram(Exception):
    """There is none; the text says why, and what to do."""


def build(cargo: str, out: pathlib.Path) -> None:
    """Compiles the program, and strips it into `out`."""
    home = os.environ.get("CARGO_HOME") or pathlib.Path.home() / ".cargo"
    # Paths of this machine are in messages of panics.
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
    """Whether it starts where the C library is as old as that, and is what it says."""
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
