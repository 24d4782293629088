"""The targets for which kernel files are compiled."""

import dataclasses
import pathlib


@dataclasses.dataclass(frozen=True)
class Target:
    name: str
    suffix: str
    flags: tuple[str, ...]


SM_90A = Target("sm_90a", ".sm_90a.cubin", ("-cubin", "-gencode=arch=compute_90a,code=sm_90a"))
SM_80 = Target("sm_80", ".sm_80.cubin", ("-cubin", "-gencode=arch=compute_80,code=sm_80"))
COMPUTE_80 = Target("compute_80", ".compute_80.ptx", ("-ptx", "-gencode=arch=compute_80,code=compute_80"))
# Later GPUs, of data centres and of desktops, whose drivers compile the PTX text. Their code is judged, and not kept.
LATER = tuple(Target(name, f".{name}.cubin", (f"-arch={name}",)) for name in ("sm_100", "sm_120"))


def of_file(source: pathlib.Path) -> tuple[Target, ...]:
    """Returns the targets of a file. Files with Hopper's instructions are compiled for Hopper alone."""
    return (SM_90A,) if source.stem.endswith("_hopper") else (SM_90A, SM_80, COMPUTE_80)
