"""Checks the systemd unit with systemd itself: the unit is valid, and its exposure is low."""

import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
UNIT = ROOT / "deploy/systemd/hushdb.service"
# The highest allowed exposure, of 10, by `systemd-analyze security`.
MOST_EXPOSED = 1.6


def check() -> tuple[str, list[str]]:
    """Checks the unit. Returns a summary, and the faults."""
    with tempfile.TemporaryDirectory(prefix="hushdb-unit-") as scratch:
        # The program is not installed on this machine.
        unit = pathlib.Path(scratch) / UNIT.name
        unit.write_text(re.sub(r"/usr/local/bin/hushdb", "/bin/true", UNIT.read_text()))
        verified = analyze("verify", "--man=no", unit)
    judged = analyze("security", "--offline=true", "--no-pager", UNIT)
    exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", judged.stdout)
    if not exposure:
        return "unit: not judged", [f"unit: {judged.stderr.strip()}"]
    wrong = [f"unit: {line}" for line in verified.stderr.splitlines()]
    if float(exposure[1]) > MOST_EXPOSED:
        wrong.append(f"unit: an exposure of {exposure[1]}, more than {MOST_EXPOSED}: systemd-analyze security --offline=true {UNIT}")
    return f"unit: exposure {exposure[1]} of 10", wrong


def analyze(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run(["systemd-analyze", *map(str, arguments)], capture_output=True, text=True)
