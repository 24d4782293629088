"""The Python package as a wheel for every CPython from 3.10 on."""

import base64
import hashlib
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


def build(target: Target, variables: dict[str, str], date: int, licences: list[pathlib.Path], out: pathlib.Path) -> pathlib.Path:
    """Makes the wheel of a target, with the licences of its parts, in the folder `out`. Returns its path. The same commit gives the same
    bytes."""
    try:
        maturin = pins.cached("maturin", REQUIREMENTS.read_bytes(), fetch)
        environment = {**os.environ, **zig.variables(), **variables, "SOURCE_DATE_EPOCH": str(date)}
    except pins.PipError as error:
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
    complete(wheel, licences)
    return wheel


def complete(wheel: pathlib.Path, licences: list[pathlib.Path]) -> None:
    """Adds files to the licences of a wheel, takes the paths of this machine from maturin's bill of materials, and lists all files anew."""
    with zipfile.ZipFile(wheel) as files:
        content = {member: files.read(member) for member in files.infolist()}
    [record] = [member for member in content if member.filename.endswith(".dist-info/RECORD")]
    del content[record]
    for member in content:
        if "/sboms/" in member.filename:
            content[member] = content[member].replace(bytes(ROOT), b"/hushdb")
    for path in licences:
        member = zipfile.ZipInfo(record.filename.removesuffix("RECORD") + f"licenses/{path.name}", record.date_time)
        member.compress_type, member.external_attr = record.compress_type, record.external_attr
        content[member] = path.read_bytes()
    with zipfile.ZipFile(wheel, "w") as files:
        for member, data in content.items():
            files.writestr(member, data)
        files.writestr(record, "".join(map(listed, content, content.values())) + f"{record.filename},,\n")


def listed(member: zipfile.ZipInfo, data: bytes) -> str:
    """Returns the line of a file in the list of a wheel's files."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    return f"{member.filename},sha256={digest},{len(data)}\n"


def fetch(cache: pathlib.Path) -> None:
    pins.pip("install", REQUIREMENTS, "--target", cache / "tree")
