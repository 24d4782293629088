"""Makes what an operator installs, in target/dist: `make dist`. The program for machines with glibc 2.28 or newer, packed with its
licences, settings and unit; a bill of materials; checksums. The same commit gives the same bytes, with the same compiler."""

import argparse
import hashlib
import json
import pathlib
import subprocess
import sys

import archive
import bill
import program

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--cargo", default="cargo")
    arguments.add_argument("--cyclonedx", type=pathlib.Path, required=True)
    arguments.add_argument("--out", type=pathlib.Path, default=ROOT / "target/dist")
    options = arguments.parse_args()
    try:
        made = make(options.cargo, options.cyclonedx, options.out)
    except (program.NoProgram, bill.Incomplete) as error:
        print(f"dist: {error}", file=sys.stderr)
        return 1
    print("\n".join(f"dist: {path.relative_to(ROOT)} {path.stat().st_size >> 10} KiB" for path in made))
    return 0


def make(cargo: str, cyclonedx: pathlib.Path, out: pathlib.Path) -> list[pathlib.Path]:
    if subprocess.run(["git", "diff", "--quiet", "HEAD"], cwd=ROOT).returncode:
        raise program.NoProgram("files differ from the commit: commit them first, since archives are dated by it")
    date = int(subprocess.check_output(["git", "log", "-1", "--format=%ct"], cwd=ROOT))
    command = [cargo, "metadata", "--locked", "--format-version", "1", "--all-features"]
    metadata = json.loads(subprocess.check_output(command, cwd=ROOT))
    version = next(package["version"] for package in metadata["packages"] if package["name"] == "hushdb")
    out.mkdir(parents=True, exist_ok=True)
    built = out / "hushdb"
    program.build(cargo, built)
    program.check(built, version)
    materials = bill.make(cargo, cyclonedx, date, program.FEATURES, program.TARGET)
    name = f"hushdb-{version}-x86_64-linux-gnu{program.GLIBC}"
    packed, listed, sums = out / f"{name}.tar.gz", out / f"{name}.cdx.json", out / "SHA256SUMS"
    listed.write_text(json.dumps(materials, indent=1) + "\n")
    archive.write(packed, name, date, {
        "hushdb": built.read_bytes(),
        "LICENSE": (ROOT / "LICENSE").read_bytes(),
        "LICENSES-OF-PARTS": bill.licences(materials, metadata).encode(),
        "README.md": (ROOT / "README.md").read_bytes(),
        "hushdb.toml": (ROOT / "docs/reference/hushdb.toml").read_bytes(),
        "hushdb.service": (ROOT / "deploy/systemd/hushdb.service").read_bytes(),
        "hushdb.sysusers.conf": (ROOT / "deploy/systemd/hushdb.sysusers.conf").read_bytes(),
    })
    made = [packed, listed]
    sums.write_text("".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in made))
    return [*made, sums]


if __name__ == "__main__":
    sys.exit(main())
