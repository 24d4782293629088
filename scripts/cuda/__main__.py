"""Compiles the CUDA kernels for every target to target/cuda and checks them: `make cuda`. No CUDA installation, no GPU."""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import sys

import gates
import targets
from compiler import CompileError, Compiler, forget_unused
from toolchain import ToolchainError, find

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--kernels", type=pathlib.Path, default=ROOT / "crates/hush-cuda/kernels")
    arguments.add_argument("--out", type=pathlib.Path, default=os.environ.get("HUSH_CUDA_DIR", ROOT / "target/cuda"))
    options = arguments.parse_args()
    sources = sorted(path for path in options.kernels.rglob("*") if path.suffix in (".cu", ".cuh"))
    try:
        rules = gates.load(options.kernels / "gates.toml")
        toolchain = find()
    except (ValueError, ToolchainError) as error:
        print(f"cuda: {error}", file=sys.stderr)
        return 1
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    modules, failures = compile_all(Compiler(toolchain, out, digest_of_headers(sources)), sources)
    if failures:
        print("\n".join(failures), file=sys.stderr)
        return 1
    wrong = gates.judge(modules, rules)
    if wrong:
        print("\n".join(f"cuda: {line}" for line in wrong), file=sys.stderr)
        if toolchain.pinned:
            return 1
        print("cuda: gates are meant for the pinned compiler: warnings only", file=sys.stderr)
    if toolchain.ptxas is None:
        print("cuda: no ptxas beside nvcc: what drivers make of text is not checked", file=sys.stderr)
    if toolchain.nvdisasm is None:
        print("cuda: no nvdisasm beside nvcc: instructions are not checked", file=sys.stderr)
    remove_stale(out, modules)
    forget_unused()
    write_manifest(out / "manifest.json", toolchain.identity, fingerprint(options.kernels, sources), modules)
    kernels = sum(len(report["kernels"]) for reports in modules.values() for report in reports.values())
    print(f"cuda: {len(modules)} modules, {kernels} kernels over all targets, in {out}")
    return 0


def compile_all(compiler: Compiler, sources: list[pathlib.Path]) -> tuple[dict[str, dict], list[str]]:
    """Compiles every file for every target. Returns the reports, module -> target -> report, and the messages of failed compilations."""
    modules: dict[str, dict] = {}
    failures = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        work = {
            (source, target): pool.submit(compiler.images, source, target)
            for source in sources
            if source.suffix == ".cu"
            for target in targets.of_file(source)
        }
        for (source, target), reports in work.items():
            try:
                modules.setdefault(source.stem, {}).update(reports.result())
            except CompileError as error:
                failures.append(f"cuda: {source.name}: {target.name}:\n{error}")
    return modules, failures


def digest_of_headers(sources: list[pathlib.Path]) -> str:
    digest = hashlib.sha256()
    for path in sources:
        if path.suffix == ".cuh":
            digest.update(path.read_bytes())
    return digest.hexdigest()


def fingerprint(kernels: pathlib.Path, sources: list[pathlib.Path]) -> str:
    """Returns the FNV-1a hash of the kernel sources. build.rs computes it too, and refuses images of other sources."""
    value = 0xCBF29CE484222325
    for path in sorted(sources, key=lambda path: path.relative_to(kernels).as_posix()):
        for byte in path.relative_to(kernels).as_posix().encode() + b"\0" + path.read_bytes() + b"\0":
            value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def remove_stale(out: pathlib.Path, modules: dict[str, dict]) -> None:
    """Deletes the images and reports of files that no longer exist."""
    kept = {report["file"] for reports in modules.values() for report in reports.values()}
    for path in [*out.glob("*.cubin"), *out.glob("*.ptx"), *out.glob("reports/*.json")]:
        if path.name.removesuffix(".json") not in kept:
            path.unlink()


def write_manifest(path: pathlib.Path, compiler: str, sources: str, modules: dict[str, dict]) -> None:
    """Writes the files and kernels of all embedded images: module -> target -> file and kernels. Rewrites the manifest only if it differs,
    because cargo looks at its time."""
    judged_only = {target.name for target in targets.LATER}
    listed = {
        module: {
            target: {
                "file": report["file"],
                "kernels": {
                    kernel: {figure: value for figure, value in figures.items() if figure not in ("opcodes", "order")}
                    for kernel, figures in report["kernels"].items()
                },
            }
            for target, report in reports.items()
            if target not in judged_only
        }
        for module, reports in modules.items()
    }
    text = json.dumps({"compiler": compiler, "sources": sources, "modules": listed}, indent=1) + "\n"
    if not path.exists() or path.read_text() != text:
        path.with_suffix(".new").write_text(text)
        path.with_suffix(".new").replace(path)


if __name__ == "__main__":
    sys.exit(main())
