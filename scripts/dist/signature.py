"""Checksums of a release, and their signature by minisign, which covers every file of the release through its checksum."""

import os
import pathlib
import subprocess

import program
import provenance

ROOT = pathlib.Path(__file__).resolve().parents[2]
PUBLIC = ROOT / "deploy/release.pub"
SECRET = "HUSHDB_RELEASE_KEY"


def sign(files: list[pathlib.Path], version: str, commit: str, out: pathlib.Path) -> list[pathlib.Path]:
    """Writes the checksums of `files` to `out`, and their signature if the environment names a key. Returns what it wrote.

    Raises `NoProgram` if the key is not the one whose public half is in the repository."""
    sums = out / "SHA256SUMS"
    sums.write_text("".join(f"{provenance.digest(path)}  {path.name}\n" for path in sorted(files)))
    signature = out / "SHA256SUMS.minisig"
    signature.unlink(missing_ok=True)
    key = os.environ.get(SECRET)
    if not key:
        print(f"dist: not signed: {SECRET} names no key (minisign -G makes one; its public half is {PUBLIC.relative_to(ROOT)})")
        return [sums]
    # Both comments have no time, so that the same commit gives the same signature.
    command = ["minisign", "-S", "-s", key, "-m", sums, "-x", signature, "-c", "signature of a HushDB release"]
    signed = subprocess.run([*command, "-t", f"hushdb {version} {commit}"])
    verified = signed.returncode or subprocess.run(["minisign", "-V", "-q", "-p", PUBLIC, "-m", sums, "-x", signature]).returncode
    if verified:
        signature.unlink(missing_ok=True)
        raise program.NoProgram(f"{key} does not sign for {PUBLIC.relative_to(ROOT)}: commit its public half there, or sign with the other key")
    return [sums, signature]
