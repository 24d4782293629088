"""Compiles a kernel file for a target, unless what is there already comes of the same sources, flags and compiler."""

import dataclasses
import hashlib
import json
import os
import pathlib
import subprocess

import reports
from targets import Target
from toolchain import Toolchain

FLAGS = ("-std=c++17", "-O3", "-ccbin", "g++", "-allow-unsupported-compiler", "-Werror", "all-warnings")
QUIET = ("-diag-suppress", "186")  # unsigned < 0: loops of templates that have no rounds for some numbers
ASSEMBLER_FLAGS = ("-Xptxas", "-v,--warning-as-error")


class CompileError(Exception):
    """A tool refused a file; the text is what it said."""


@dataclasses.dataclass(frozen=True)
class Compiler:
    toolchain: Toolchain
    out: pathlib.Path
    headers: str  # digest of all headers: any of them may be included

    def image(self, source: pathlib.Path, target: Target) -> dict:
        """Compiles; returns the report: {"file", "digest", "kernels": {name: resources and opcodes}}."""
        image = self.out / (source.stem + target.suffix)
        kept = self.out / "reports" / (image.name + ".json")
        flags = [*FLAGS, *QUIET, *target.flags, *os.environ.get("HUSH_NVCC_FLAGS", "").split()]
        if target.name.startswith("sm_"):
            flags += ASSEMBLER_FLAGS
        digest = self.digest(source, flags)
        if image.exists() and kept.exists():
            report = json.loads(kept.read_text())
            if report["digest"] == digest:
                return report
        print(f"cuda: {image.name}", flush=True)
        unfinished = image.with_name(f".{image.name}.{os.getpid()}")
        try:
            said = run([self.toolchain.nvcc, *flags, source, "-o", unfinished])
            kernels = self.inspect(unfinished, target, said)
            kept.unlink(missing_ok=True)
            unfinished.replace(image)
        finally:
            unfinished.unlink(missing_ok=True)
        report = {"file": image.name, "digest": digest, "kernels": kernels}
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(json.dumps(report, indent=1))
        return report

    def digest(self, source: pathlib.Path, flags: list[str]) -> str:
        disassembled = self.toolchain.nvdisasm is not None
        parts = [self.toolchain.identity, str(disassembled), *flags, self.headers, source.read_text()]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def inspect(self, image: pathlib.Path, target: Target, said: str) -> dict[str, dict]:
        if not target.name.startswith("sm_"):
            return {kernel: {} for kernel in reports.entries(image.read_text())}
        kernels: dict[str, dict] = reports.resources(said)
        if self.toolchain.nvdisasm:
            for kernel, counts in reports.opcodes(run([self.toolchain.nvdisasm, "-c", image])).items():
                kernels[kernel]["opcodes"] = counts
        return kernels


def run(command: list) -> str:
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise CompileError((result.stdout + result.stderr).strip())
    return result.stdout + result.stderr
