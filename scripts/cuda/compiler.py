"""Compiles a kernel file for a target, unless its image was made from the same sources, flags and compiler."""

import dataclasses
import hashlib
import json
import os
import pathlib
import re
import subprocess

import reports
from targets import COMPUTE_80, LATER, Target
from toolchain import Toolchain

FLAGS = ("-std=c++17", "-O3", "-ccbin", "g++", "-allow-unsupported-compiler", "-Werror", "all-warnings")
QUIET = ("-diag-suppress", "186")  # unsigned < 0: loops of templates that have no rounds for some numbers
# In the text of a module, names of an anonymous namespace have a hash of the file's path. It is replaced, so that two folders give the
# same bytes.
PATH_HASH = re.compile("_GLOBAL__N__[0-9a-f]{8}_")
ASSEMBLER_FLAGS = ("-Xptxas", "-v,--warning-as-error")


class CompileError(Exception):
    """A tool refused a file. The text is the tool's output."""


@dataclasses.dataclass(frozen=True)
class Compiler:
    toolchain: Toolchain
    out: pathlib.Path
    headers: str  # digest of all headers: any of them may be included

    def images(self, source: pathlib.Path, target: Target) -> dict[str, dict]:
        """Compiles a file for a target. Returns target name -> report, {"file", "digest", "kernels": {name: resources and opcodes}}.
        Also assembles PTX text for the later GPUs, on which drivers compile that text. Raises `CompileError` if a tool refuses it."""
        made = {target.name: self.image(source, target)}
        if target == COMPUTE_80 and self.toolchain.ptxas:
            text = self.out / made[target.name]["file"]
            made |= {later.name: self.assembled(text, later) for later in LATER}
        return made

    def image(self, source: pathlib.Path, target: Target) -> dict:
        image = self.out / (source.stem + target.suffix)
        flags = [*FLAGS, *QUIET, *target.flags, *os.environ.get("HUSH_NVCC_FLAGS", "").split()]
        if target.name.startswith("sm_"):
            flags += ASSEMBLER_FLAGS
        rules = [PATH_HASH.pattern] if target == COMPUTE_80 else []
        digest = self.digest(*flags, *rules, self.headers, source.read_text())
        known = self.known(image.name, digest) if image.exists() else None
        return known or self.made([self.toolchain.nvcc, *flags, source], image, target, digest)

    def assembled(self, text: pathlib.Path, target: Target) -> dict:
        """Assembles PTX text for a later GPU, as its driver would. Returns the report. The machine code is not kept."""
        image = self.out / text.name.replace(COMPUTE_80.suffix, target.suffix)
        flags = ["-O3", *target.flags, "-v", "--warning-as-error"]
        digest = self.digest(*flags, text.read_text())
        report = self.known(image.name, digest)
        if report is None:
            report = self.made([self.toolchain.ptxas, *flags, text], image, target, digest)
            image.unlink()
        return report

    def known(self, file: str, digest: str) -> dict | None:
        """Returns the report of an image if it has this digest, and None otherwise."""
        kept = self.report_of(file)
        report = json.loads(kept.read_text()) if kept.exists() else {}
        return report if report.get("digest") == digest else None

    def made(self, command: list, image: pathlib.Path, target: Target, digest: str) -> dict:
        """Runs a compiler, stores the image and its report, and returns the report."""
        print(f"cuda: {image.name}", flush=True)
        kept, unfinished = self.report_of(image.name), image.with_name(f".{image.name}.{os.getpid()}")
        try:
            said = run([*command, "-o", unfinished])
            if target == COMPUTE_80:
                unfinished.write_text(PATH_HASH.sub("_GLOBAL__N__00000000_", unfinished.read_text()))
            kernels = self.inspect(unfinished, target, said)
            kept.unlink(missing_ok=True)
            unfinished.replace(image)
        finally:
            unfinished.unlink(missing_ok=True)
        report = {"file": image.name, "digest": digest, "kernels": kernels}
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(json.dumps(report, indent=1))
        return report

    def report_of(self, file: str) -> pathlib.Path:
        return self.out / "reports" / f"{file}.json"

    def digest(self, *parts: str) -> str:
        tools = [self.toolchain.identity, str(self.toolchain.nvdisasm is not None), reports.IDENTITY]
        return hashlib.sha256("\0".join([*tools, *parts]).encode()).hexdigest()

    def inspect(self, image: pathlib.Path, target: Target, said: str) -> dict[str, dict]:
        if not target.name.startswith("sm_"):
            return {kernel: {} for kernel in reports.entries(image.read_text())}
        kernels: dict[str, dict] = reports.resources(said)
        if self.toolchain.nvdisasm:
            sass = run([self.toolchain.nvdisasm, "-c", image])
            for kernel, opcodes in reports.opcodes(sass).items():
                kernels[kernel] |= {"opcodes": reports.counts(opcodes), "order": reports.order(opcodes)}
        return kernels


def run(command: list) -> str:
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise CompileError((result.stdout + result.stderr).strip())
    return result.stdout + result.stderr
