"""The Debian package, with the unit for systemd."""

import os
import pathlib
import subprocess

import program
from targets import Target

ROOT = pathlib.Path(__file__).resolve().parents[2]


def build(cargo: str, cargo_deb: pathlib.Path, target: Target, version: str, date: int, out: pathlib.Path) -> pathlib.Path:
    """Packs the program that `program.build` compiled into the folder `out`, and returns the path of the package.

    The package has the program in /usr/bin; the unit of deploy/systemd names /usr/local/bin, where administrators install."""
    units = ROOT / "target/dist-parts/unit"
    units.mkdir(parents=True, exist_ok=True)
    unit = (ROOT / "deploy/systemd/hushdb.service").read_text().replace("/usr/local/bin/hushdb", "/usr/bin/hushdb")
    (units / "hushdb.service").write_text(unit)
    path = out / f"hushdb_{version}_{target.debian}.deb"
    command = [cargo_deb, "deb", "--quiet", "--no-build", "--no-strip", "--target", target.triple, "--package", "hushdb", "--output", path]
    command += ["--deb-version", version]
    if subprocess.run(command, cwd=ROOT, env={**os.environ, "CARGO": cargo, "SOURCE_DATE_EPOCH": str(date)}).returncode:
        raise program.NoProgram(f"the Debian package for {target.debian} cannot be made; see above")
    return path
