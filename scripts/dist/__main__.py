"""Makes a release in target/dist: `make dist`. For every target the program, a Debian package and a Python wheel; the npm package, the
Helm chart and the context of a container; bills of materials, provenance, checksums and their signature. The same commit gives the same
bytes, with the same compilers."""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

import archive
import bill
import deb
import program
import provenance
import signature
import wheel
from targets import BUILDER, TARGETS, Target

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = ROOT / "target/dist-parts"  # what several files of a release contain


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--cargo", default="cargo")
    arguments.add_argument("--tools", type=pathlib.Path, required=True)
    arguments.add_argument("--cyclonedx", type=pathlib.Path, required=True)
    arguments.add_argument("--cargo-deb", type=pathlib.Path, required=True)
    arguments.add_argument("--machines", nargs="+", choices=[target.machine for target in TARGETS], default=[target.machine for target in TARGETS])
    options = arguments.parse_args()
    try:
        made = make(options)
    except (program.NoProgram, bill.Incomplete) as error:
        print(f"dist: {error}", file=sys.stderr)
        return 1
    print("\n".join(f"dist: {path.relative_to(ROOT)} {path.stat().st_size >> 10} KiB" for path in made))
    return 0


def make(options: argparse.Namespace) -> list[pathlib.Path]:
    """Makes the release of the last commit. Returns the paths of its files."""
    if os.uname().machine != BUILDER:
        raise program.NoProgram(f"a release is made on {BUILDER}, and this machine is {os.uname().machine}")
    if subprocess.run(["git", "diff", "--quiet", "HEAD"], cwd=ROOT).returncode:
        raise program.NoProgram("files differ from the commit: commit them first, since a release is made of what is committed")
    commit, date = subprocess.check_output(["git", "log", "-1", "--format=%H %ct"], cwd=ROOT, text=True).split()
    date = int(date)
    command = [options.cargo, "metadata", "--locked", "--format-version", "1", "--all-features"]
    metadata = json.loads(subprocess.check_output(command, cwd=ROOT))
    version = next(package["version"] for package in metadata["packages"] if package["name"] == "hushdb")
    out = ROOT / "target/dist"
    for folder in (out, PARTS):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    targets = [target for target in TARGETS if target.machine in options.machines]
    made, programs, compilers = [], {}, {}
    for target in targets:
        print(f"dist: {target.triple}", flush=True)
        programs[target] = PARTS / target.debian / "hushdb"
        variables = program.environment(target, commit, options.tools)
        program.build(options.cargo, target, variables, programs[target])
        program.check(programs[target], target, version)
        compilers[target.triple] = provenance.version_of(variables.get("RUSTC", "rustc"))
        materials = bill.make(options.cargo, options.cyclonedx, date, program.FEATURES, target.triple)
        (PARTS / "LICENSES-OF-PARTS").write_text(bill.licences(materials, metadata))
        made += pack(target, version, date, materials, programs[target], out)
        made.append(deb.build(options.cargo, options.cargo_deb, target, version, date, out))
        made.append(wheel.build(target, variables, date, [ROOT / "LICENSE", PARTS / "LICENSES-OF-PARTS"], out))
    made += [npm(date, out), chart(version, date, out), container(version, date, programs, out)]
    statement = out / f"hushdb-{version}.intoto.json"
    statement.write_text(json.dumps(provenance.make(commit, program.FEATURES, compilers, sorted(made)), indent=1) + "\n")
    made.append(statement)
    return made + signature.sign(made, version, commit, out)


def pack(target: Target, version: str, date: int, materials: dict, built: pathlib.Path, out: pathlib.Path) -> list[pathlib.Path]:
    """Packs the program of a target with its licences, settings and unit. Returns the archive and the bill of materials."""
    name = f"hushdb-{version}-{target.machine}-linux-gnu{program.GLIBC}"
    packed, listed = out / f"{name}.tar.gz", out / f"{name}.cdx.json"
    listed.write_text(json.dumps(materials, indent=1) + "\n")
    archive.write(packed, name, date, {
        "hushdb": built.read_bytes(),
        "LICENSE": (ROOT / "LICENSE").read_bytes(),
        "LICENSES-OF-PARTS": (PARTS / "LICENSES-OF-PARTS").read_bytes(),
        "README.md": (ROOT / "README.md").read_bytes(),
        "hushdb.toml": (ROOT / "docs/reference/hushdb.toml").read_bytes(),
        "hushdb.service": (ROOT / "deploy/systemd/hushdb.service").read_bytes(),
        "hushdb.sysusers.conf": (ROOT / "deploy/systemd/hushdb.sysusers.conf").read_bytes(),
    })
    return [packed, listed]


def npm(date: int, out: pathlib.Path) -> pathlib.Path:
    """Packs what `make npm` packed, with the licences of the parts."""
    [packed] = (ROOT / "target/npm").glob("*.tgz")
    with tarfile.open(packed) as files:
        content = {file.name.removeprefix("package/"): files.extractfile(file).read() for file in files.getmembers() if file.isfile()}
    content["LICENSES-OF-PARTS"] = (PARTS / "LICENSES-OF-PARTS").read_bytes()
    archive.write(out / packed.name, "package", date, content)
    return out / packed.name


def chart(version: str, date: int, out: pathlib.Path) -> pathlib.Path:
    """Packs the Helm chart, without the values that only its check uses."""
    folder = ROOT / "deploy/helm/hushdb"
    files = [path for path in folder.rglob("*") if path.is_file() and "ci" not in path.relative_to(folder).parts]
    path = out / f"hushdb-chart-{version}.tgz"
    archive.write(path, "hushdb", date, {str(file.relative_to(folder)): file.read_bytes() for file in files})
    return path


def container(version: str, date: int, programs: dict[Target, pathlib.Path], out: pathlib.Path) -> pathlib.Path:
    """Packs what `podman build` makes an image of, for every target."""
    path = out / f"hushdb-{version}-container.tar.gz"
    files = {f"{target.debian}/hushdb": built.read_bytes() for target, built in programs.items()}
    files["Containerfile"] = (ROOT / "deploy/Containerfile.release").read_bytes()
    files["LICENSE"] = (ROOT / "LICENSE").read_bytes()
    files["LICENSES-OF-PARTS"] = (PARTS / "LICENSES-OF-PARTS").read_bytes()
    archive.write(path, path.name.removesuffix(".tar.gz"), date, files)
    return path


if __name__ == "__main__":
    sys.exit(main())
