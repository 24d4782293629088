"""Checks the Containerfile: its linter accepts it, and .dockerignore lets through every file that it copies."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILE = ROOT / "deploy/Containerfile"


def check(hadolint: pathlib.Path) -> tuple[str, list[str]]:
    """Checks the Containerfile. Returns a summary, and the faults."""
    result = subprocess.run([hadolint, FILE, FILE.with_suffix(".release")], capture_output=True, text=True)
    wrong = (result.stdout + result.stderr).splitlines() if result.returncode else []
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {name for names in re.findall(r"^COPY ((?!--)[^\n]+) \S+$", FILE.read_text(), re.M) for name in names.split()}
    wrong += [f".dockerignore: {name}: Containerfile copies it" for name in sorted(copied - sent)]
    wrong += [f".dockerignore: {name}: Containerfile does not copy it" for name in sorted(sent - copied)]
    wrong += [f"Containerfile: {name}: there is none" for name in sorted(copied) if not (ROOT / name).exists()]
    return f"Containerfile: linted, copies {', '.join(sorted(copied))}", wrong
