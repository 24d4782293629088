"""Where a release came from: an in-toto statement (version 1) with SLSA's provenance (version 1) as its predicate."""

import hashlib
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Every file that pins what a release is made with.
PINS = ["Cargo.lock", "clients/js/package-lock.json", "scripts/zig-requirements.txt", "scripts/dist/requirements.txt",
        "scripts/cuda/requirements.txt"]


def make(commit: str, features: list[str], compilers: dict[str, str], artefacts: list[pathlib.Path]) -> dict:
    """Returns the statement about `artefacts`. It has no times, so that the same commit gives the same statement.

    `compilers` maps the triple of each target to what its `rustc --version` prints."""
    pins = [{"name": name, "digest": {"sha256": digest(ROOT / name)}} for name in PINS]
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": path.name, "digest": {"sha256": digest(path)}} for path in artefacts],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "urn:hushdb:make-dist:1",
                "externalParameters": {"command": "make dist", "features": features, "targets": sorted(compilers)},
                "internalParameters": {"compilers": compilers},
                "resolvedDependencies": [{"name": "hushdb", "digest": {"gitCommit": commit}}, *pins],
            },
            "runDetails": {"builder": {"id": "urn:hushdb:scripts/dist"}},
        },
    }


def digest(path: pathlib.Path) -> str:
    """Returns the SHA-256 hash of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def version_of(rustc: str) -> str:
    """Returns the version of a compiler, with its commit."""
    return subprocess.check_output([rustc, "--version"], cwd=ROOT, text=True).strip()
