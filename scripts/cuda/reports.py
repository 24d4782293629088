"""Reads the tools' output about kernels: resources from ptxas, instructions from nvdisasm."""

import collections
import hashlib
import itertools
import pathlib
import re

ENTRY = re.compile(r"Compiling entry function '(\w+)'")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers(?:, used (\d+) barriers)?")
CUMULATIVE = re.compile(r"(\d+) bytes cumulative stack size")
SHARED = re.compile(r"(\d+) bytes smem")
PTX_ENTRY = re.compile(r"\.entry (\w+)")
SECTION = re.compile(r"^\s*\.section\s+\.text\.(\w+)")
INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?\w+\s+)?([A-Z][\w.]*)")

# The mnemonics whose order a report keeps: barriers, fences, and the accesses that they order.
ORDERED = {"SYNCS", "WARPGROUP", "IGMMA", "FENCE", "STS", "UBLKCP", "USETMAXREG"}
# A hash of this file: reports of another version may differ.
IDENTITY = hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()


def resources(ptxas: str) -> dict[str, dict[str, int]]:
    """Reads the output of `ptxas -v`: kernel -> registers, bytes of spills, stack and static shared memory, and barriers.

    Functions that were not inlined are reported after the kernel that calls them: their spills count for the kernel.
    """
    kernels: dict[str, dict[str, int]] = {}
    kernel = dict.fromkeys(("registers", "spills", "stack", "shared", "barriers"), 0)
    for line in ptxas.splitlines():
        if match := ENTRY.search(line):
            kernel = kernels[match[1]] = dict.fromkeys(kernel, 0)
        elif match := FRAME.search(line):
            kernel["stack"] = max(kernel["stack"], int(match[1]))
            kernel["spills"] += int(match[2]) + int(match[3])
        elif match := USED.search(line):
            kernel["registers"] = int(match[1])
            kernel["barriers"] = int(match[2] or 0)
            if stack := CUMULATIVE.search(line):
                kernel["stack"] = max(kernel["stack"], int(stack[1]))
            if shared := SHARED.search(line):
                kernel["shared"] = int(shared[1])
    return kernels


def opcodes(sass: str) -> dict[str, list[str]]:
    """Reads the output of `nvdisasm -c`: kernel -> opcodes with their modifiers, in their order."""
    kernels: dict[str, list[str]] = {}
    listed: list[str] = []
    for line in sass.splitlines():
        if match := SECTION.match(line):
            listed = kernels.setdefault(match[1], [])
        elif match := INSTRUCTION.match(line):
            listed.append(match[1])
    return kernels


def counts(opcodes: list[str]) -> dict[str, int]:
    """Returns the number of occurrences of each opcode."""
    return dict(sorted(collections.Counter(opcodes).items()))


def order(opcodes: list[str]) -> list[str]:
    """Returns the opcodes whose order can be judged, with each run of equal opcodes as one."""
    ordered = [opcode for opcode in opcodes if opcode.split(".")[0] in ORDERED]
    return [opcode for opcode, _ in itertools.groupby(ordered)]


def entries(ptx: str) -> list[str]:
    """Returns the kernels of a PTX file."""
    return PTX_ENTRY.findall(ptx)
