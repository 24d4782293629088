"""The bill of materials: every linked crate with its version and licence (CycloneDX), and the texts of the licences."""

import json
import os
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXTS = re.compile(r"(licen[cs]e|copying|notice|copyright|unlicense)", re.I)


class Incomplete(Exception):
    """A crate is missing in the bill, or has no licence. The text names it."""


def make(cargo: str, cyclonedx: pathlib.Path, date: int, features: list[str], target: str) -> dict:
    """Returns the bill of the program and of the module in its page, at the last commit. The tool writes files beside every crate, so it
    runs in a copy."""
    parts = [("hushdb", features, target), ("hush-wasm", [], "wasm32-unknown-unknown")]
    with tempfile.TemporaryDirectory(prefix="hushdb-bill-") as copy:
        files = subprocess.Popen(["git", "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE)
        subprocess.run(["tar", "-xf", "-", "-C", copy], stdin=files.stdout, check=True)
        if files.wait():
            raise Incomplete("git archive failed")
        bills = []
        for name, features, target in parts:
            crate = pathlib.Path(copy) / "crates" / name
            command = [cyclonedx, "cyclonedx", "--quiet", "--manifest-path", crate / "Cargo.toml", "--format", "json"]
            command += ["--spec-version", "1.5", "--no-build-deps", "--override-filename", "bill", "--target", target]
            command += ["--features", ",".join(features)] if features else []
            subprocess.run(command, check=True, env={**os.environ, "CARGO": cargo, "SOURCE_DATE_EPOCH": str(date)})
            bills.append(json.loads((crate / "bill.json").read_text().replace(copy, "/hushdb")))
    bill = together(*bills)
    listed = {(part["name"], part["version"]) for part in bill["components"]}
    missing = set().union(*(linked(cargo, *part) for part in parts)) - listed
    if missing:
        raise Incomplete("not in the bill of materials: " + ", ".join(" ".join(crate) for crate in sorted(missing)))
    bare = [part["name"] for part in bill["components"] if not part.get("licenses")]
    if bare:
        raise Incomplete("without a licence: " + ", ".join(bare))
    return bill


def together(bill: dict, part: dict) -> dict:
    """Returns the bill of a program, extended by the bill of a part that is embedded in it."""
    known = {component["bom-ref"] for component in bill["components"]}
    embedded = {key: value for key, value in part["metadata"]["component"].items() if key != "components"}
    new = [component for component in [embedded, *part["components"]] if component["bom-ref"] not in known]
    described = {entry["ref"] for entry in bill["dependencies"]}
    dependencies = [entry for entry in part["dependencies"] if entry["ref"] not in described]
    root = bill["metadata"]["component"]["bom-ref"]
    for entry in bill["dependencies"]:
        if entry["ref"] == root:
            entry["dependsOn"] = sorted({*entry.get("dependsOn", []), embedded["bom-ref"]})
    return {**bill, "components": bill["components"] + new, "dependencies": bill["dependencies"] + dependencies}


def linked(cargo: str, package: str, features: list[str], target: str) -> set[tuple[str, str]]:
    """Returns the names and versions of the crates that cargo links into a package, without the program itself."""
    tree = [cargo, "tree", "--locked", "--package", package, "--features", ",".join(features), "--target", target]
    lines = subprocess.check_output([*tree, "--edges", "normal", "--prefix", "none"], cwd=ROOT, text=True).splitlines()
    crates = {tuple(line.split()[:2]) for line in lines if line}
    return {(name, version.removeprefix("v")) for name, version in crates if name != "hushdb"}


def licences(bill: dict, metadata: dict) -> str:
    """Returns the licence texts of all parts, each text once, with the names of its parts."""
    folders = {(package["name"], package["version"]): pathlib.Path(package["manifest_path"]).parent for package in metadata["packages"]}
    texts: dict[str, list[str]] = {}
    for part in bill["components"]:
        name, version = part["name"], part["version"]
        if name.startswith("hush-"):
            continue  # covered by LICENSE
        files = sorted(path for path in folders[name, version].iterdir() if path.is_file() and TEXTS.match(path.name))
        expression = " AND ".join(licence.get("expression") or licence["license"]["id"] for licence in part["licenses"])
        for text in [path.read_text(errors="replace").strip() for path in files] or ["(its package has no text)"]:
            texts.setdefault(text, []).append(f"{name} {version} ({expression})")
    rule = "-" * 80
    return "\n".join(f"{rule}\n{', '.join(parts)}\n{rule}\n{text}\n" for text, parts in sorted(texts.items()))
