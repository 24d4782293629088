"""Compiles a kernel file for a target, unless its image was made from the same sources, flags and compiler, here or in another checkout."""

import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

import reports
from targets import COMPUTE_80, LATER, Target
from toolchain import Toolchain, pins

FLAGS = ("-std=c++17", "-O3", "-ccbin", "g++", "-allow-unsupported-compiler", "-Werror", "all-warnings")
QUIET = ("-diag-suppress", "186")  # unsigned < 0: loops of templates that have no rounds for some numbers
# In the text of a module, names of an anonymous namespace have a hash of the file's path. It is replaced, so that two folders give the
# same bytes.
PATH_HASH = re.compile("_GLOBAL__N__[0-9a-f]{8}_")
ASSEMBLER_FLAGS = ("-Xptxas", "-v,--warning-as-error")
# The images that any checkout compiled: a folder for each digest, with the image and its report. What is not used for a month goes.
MADE = pins.CACHE / "cuda-images"
MONTH = 30 * 24 * 3600


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
        if not image.exists():
            self.report_of(image.name).unlink(missing_ok=True)
        return self.known(image, digest) or self.made([self.toolchain.nvcc, *flags, source], image, target, digest)

    def assembled(self, text: pathlib.Path, target: Target) -> dict:
        """Assembles PTX text for a later GPU, as its driver would. Returns the report. The machine code is not kept."""
        image = self.out / text.name.replace(COMPUTE_80.suffix, target.suffix)
        flags = ["-O3", *target.flags, "-v", "--warning-as-error"]
        digest = self.digest(*flags, text.read_text())
        report = self.known(image, digest) or self.made([self.toolchain.ptxas, *flags, text], image, target, digest)
        image.unlink(missing_ok=True)
        return report

    def known(self, image: pathlib.Path, digest: str) -> dict | None:
        """Returns the report of an image with this digest that was made here, or in another checkout; None if there is none."""
        kept = self.report_of(image.name)
        report = json.loads(kept.read_text()) if kept.exists() else {}
        if report.get("digest") == digest:
            return report
        if report := restored(image, digest):
            self.keep(report)
        return report

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
        self.keep(report)
        share(image, report)
        return report

    def keep(self, report: dict) -> None:
        kept = self.report_of(report["file"])
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(json.dumps(report, indent=1))

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


def share(image: pathlib.Path, report: dict) -> None:
    """Keeps an image and its report for other checkouts."""
    MADE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=MADE, prefix=".") as temporary:
        tree = pathlib.Path(temporary) / "tree"
        tree.mkdir()
        shutil.copyfile(image, tree / report["file"])
        (tree / "report.json").write_text(json.dumps(report))
        pins.publish(tree, MADE / report["digest"])


def restored(image: pathlib.Path, digest: str) -> dict | None:
    """Copies an image that some checkout made to `image`, and returns its report; None if there is none."""
    made = MADE / digest
    try:
        report = json.loads((made / "report.json").read_text())
        if report["file"] != image.name:
            return None
        unfinished = image.with_name(f".{image.name}.{os.getpid()}")
        shutil.copyfile(made / image.name, unfinished)
        unfinished.replace(image)
        os.utime(made)
    except (OSError, ValueError):
        return None
    return report


def forget_unused() -> None:
    """Removes what no checkout has used for a month."""
    for made in MADE.glob("*"):
        with contextlib.suppress(FileNotFoundError):  # another process was first
            if time.time() - made.stat().st_mtime > MONTH:
                shutil.rmtree(made, ignore_errors=True)


def run(command: list) -> str:
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise CompileError((result.stdout + result.stderr).strip())
    return result.stdout + result.stderr
