"""The machines that a release is for."""

import dataclasses
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILDER = "x86_64"  # the machine on which releases are made


@dataclasses.dataclass(frozen=True)
class Target:
    """A kind of machine, with the names that it has elsewhere."""

    machine: str  # as `uname -m` prints it
    debian: str  # the architecture of Debian's packages and of containers
    loader: str  # the program that loads shared libraries
    runner: tuple[str, ...]  # the words before a command that this machine runs

    @property
    def triple(self) -> str:
        return f"{self.machine}-unknown-linux-gnu"

    def compiler(self, tools: pathlib.Path) -> dict[str, str]:
        """Returns the variables that choose a compiler with a standard library for the target: cargo's own on x86-64, else Debian's.

        Raises `subprocess.CalledProcessError` if the library cannot be installed."""
        home = os.environ.get("CARGO_HOME") or pathlib.Path.home() / ".cargo"
        # Messages of panics contain paths: those of this machine are replaced.
        flags = f"--remap-path-prefix={ROOT}=/hushdb --remap-path-prefix={home}=/cargo"
        if self.machine == BUILDER:
            return {"RUSTFLAGS": flags}
        sysroot = subprocess.check_output([ROOT / "scripts/arm_std.sh", tools], cwd=ROOT, text=True).strip()
        return {"RUSTC": "/usr/bin/rustc", "RUSTFLAGS": f"{flags} --sysroot {sysroot}"}


TARGETS = [
    Target("x86_64", "amd64", "ld-linux-x86-64.so.2", ()),
    Target("aarch64", "arm64", "ld-linux-aarch64.so.1", ("qemu-aarch64", "-cpu", "max", "-L", "/usr/aarch64-linux-gnu")),
]
