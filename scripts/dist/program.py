"""The program for machines with an older C library than this one's: Zig links against the names that it had."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "scripts"))

import glibc
import pins

REQUIREMENTS = ROOT / "scripts/dist/requirements.txt"
GLIBC = "2.28"
TARGET = "x86_64-unknown-linux-gnu"
FEATURES = ["cuda", "page"]  # it runs without a GPU, too
# Parts of the C library, and nothing else, are looked for when it starts.
LIBRARIES = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1", "ld-linux-x86-64.so.2"}


class NoProgram(Exception):
    """There is none; the text says why, and what to do."""


def build(cargo: str, out: pathlib.Path) -> None:
    """Compiles the program, and strips it into `out`."""
    try:
        tools = pins.cached("dist", REQUIREMENTS.read_bytes(), fetch)
    except pins.PipError as error:
        raise NoProgram(str(error)) from error
    home = os.environ.get("CARGO_HOME") or pathlib.Path.home() / ".cargo"
    # Paths of this machine are in messages of panics.
    flags = f"--remap-path-prefix={ROOT}=/hushdb --remap-path-prefix={home}=/cargo"
    zig = {"CARGO_ZIGBUILD_ZIG_PATH": str(tools / "ziglang/zig"), "PATH": f"{tools / 'bin'}:{os.environ['PATH']}"}
    command = [cargo, "zigbuild", "--release", "--locked", "--package", "hushdb", "--features", ",".join(FEATURES)]
    result = subprocess.run([*command, "--target", f"{TARGET}.{GLIBC}"], cwd=ROOT, env={**os.environ, **zig, "RUSTFLAGS": flags})
    if result.returncode:
        raise NoProgram("it does not compile; see above")
    folder = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    subprocess.run(["strip", "--strip-all", "-o", out, folder / TARGET / "release/hushdb"], check=True)


def fetch(folder: pathlib.Path) -> None:
    print("dist: fetching Zig, which links (about 80 MiB, once)", flush=True)
    pins.pip("install", REQUIREMENTS, "--target", folder / "tree")


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
