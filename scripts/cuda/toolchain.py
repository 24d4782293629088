"""The CUDA compiler and disassembler: the pinned ones, fetched once as Python wheels, or those that HUSH_NVCC names."""

import dataclasses
import os
import pathlib
import platform
import re
import shutil
import stat
import subprocess
import sys
import zipfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

import pins

REQUIREMENTS = pathlib.Path(__file__).with_name("requirements.txt")
OLDEST = (12, 8)


class ToolchainError(Exception):
    """No compiler is usable. The text says what to do."""


@dataclasses.dataclass(frozen=True)
class Toolchain:
    nvcc: pathlib.Path
    ptxas: pathlib.Path | None  # None: the code that drivers make from PTX text cannot be checked
    nvdisasm: pathlib.Path | None  # None: opcodes cannot be checked
    identity: str  # differs if the output may differ
    pinned: bool  # gates are meant for the pinned compiler


def find() -> Toolchain:
    if shutil.which("g++") is None:
        raise ToolchainError("g++ is needed: nvcc has it preprocess the kernels")
    if nvcc := os.environ.get("HUSH_NVCC"):
        return given(pathlib.Path(nvcc))
    home = cached()
    return Toolchain(home / "bin/nvcc", home / "bin/ptxas", home / "bin/nvdisasm", home.parents[1].name, pinned=True)


def given(nvcc: pathlib.Path) -> Toolchain:
    try:
        text = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise ToolchainError(f"HUSH_NVCC={nvcc} does not run: {error}") from error
    version = re.search(r"release (\d+)\.(\d+), V([\d.]+)", text)
    if version is None or (int(version[1]), int(version[2])) < OLDEST:
        raise ToolchainError(f"HUSH_NVCC={nvcc} is older than CUDA {OLDEST[0]}.{OLDEST[1]}")
    return Toolchain(nvcc, beside(nvcc, "ptxas"), beside(nvcc, "nvdisasm"), f"nvcc {version[3]}", pinned=False)


def beside(nvcc: pathlib.Path, tool: str) -> pathlib.Path | None:
    """Returns a tool from the installation of `nvcc`, or else from PATH; None if there is none."""
    found = shutil.which(tool, path=nvcc.resolve().parent) or shutil.which(tool)
    return pathlib.Path(found) if found else None


def cached() -> pathlib.Path:
    """Returns the folder of the pinned compiler, and fetches it at the first call. Raises `ToolchainError` if pip fails."""
    wheels = REQUIREMENTS.read_bytes()
    version = re.search(rb"nvidia-cuda-nvcc==([\d.]+)", wheels)[1].decode()
    try:
        folder = pins.cached(f"cuda-{version}", wheels, fetch)
    except pins.PipError as error:
        raise ToolchainError(f"the CUDA compiler is not available: {error}\n{hint()}") from error
    return folder / "nvidia" / "cu13"


def fetch(folder: pathlib.Path) -> None:
    """Downloads the wheels, whose hashes pip checks, and unpacks them to `folder`/tree."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise ToolchainError(f"the pinned CUDA compiler is for Linux on x86-64; {hint()}")
    print("cuda: fetching the compiler (about 100 MiB, once)", flush=True)
    pins.pip("download", REQUIREMENTS, "--dest", folder / "wheels")
    for wheel in sorted((folder / "wheels").iterdir()):
        unpack(wheel, folder / "tree")


def unpack(wheel: pathlib.Path, folder: pathlib.Path) -> None:
    """Unpacks a wheel, which is a zip file, and restores the executable bits, which Python's zipfile ignores."""
    with zipfile.ZipFile(wheel) as files:
        for entry in files.infolist():
            path = pathlib.Path(files.extract(entry, folder))
            if entry.external_attr >> 16 & stat.S_IXUSR and path.is_file():
                path.chmod(0o755)


def hint() -> str:
    """Returns the advice for a machine without the pinned compiler."""
    home = os.environ.get("CUDA_HOME")
    installed = shutil.which("nvcc") or (home and shutil.which("nvcc", path=f"{home}/bin"))
    where = installed or "/path/to/nvcc"
    return f"pip and the network are needed once, or CUDA {OLDEST[0]}.{OLDEST[1]} or later: HUSH_NVCC={where} make cuda"
