"""The Python package as a wheel for every CPython from 3.10 on."""

import os
import pathlib
import subprocess
import tempfile
import zipfile

import pins
import program
import zig
from targets import Target

ROOT = pathlib.Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "scripts/dist/requirements.txt"


def build(target: Target, commit: str, date: int, tools: pathlib.Path, out: pathlib.Path) -> pathlib.Path:
    """Makes the wheel of a target in the folder `out`, and returns its path. The same commit gives the same bytes."""
    try:
        maturin = pins.cached("maturin", REQUIREMENTS.read_bytes(), fetch)
        environment = {**os.environ, **zig.variables(), **program.environment(target, commit, tools), "SOURCE_DATE_EPOCH": str(date)}
    except (pins.PipError, subprocess.CalledProcessError) as error:
        raise program.NoProgram(str(error)) from error
    command = [maturin / "bin/maturin", "build", "--quiet", "--locked", "--release", "--zig", "--target", target.triple, "--features", "cuda"]
    command += ["--compatibility", f"manylinux_{program.GLIBC.replace('.', '_')}", "--auditwheel", "check"]
    command += ["--manifest-path", ROOT / "crates/hush-py/Cargo.toml", "--target-dir", zig.folder(target.triple).parent, "--out", out]
    command += ["--ignore-rust-version"]
    if subprocess.run(command, cwd=ROOT, env=environment).returncode:
        raise program.NoProgram(f"the Python package does not compile for {target.triple}; see above")
    [wheel] = out.glob(f"*_{target.machine}.whl")
    with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(wheel) as files:
        [library] = [name for name in files.namelist() if name.endswith(".so")]
        wrong = program.faults(pathlib.Path(files.extract(library, scratch)), target)
    if wrong:
        raise program.NoProgram(f"{library} of {wheel.name} " + "; ".join(wrong))
    return wheel


def fetch(cache: pathlib.Path) -> None:
    pins.pip("install", REQUIREMENTS, "--target", cache / "tree")
