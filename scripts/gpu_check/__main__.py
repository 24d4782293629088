"""Checks and measures the CUDA backend on a machine with a GPU: conformance of primitives and steps, look-ups from end to end,
then benchmarks, in less than ten minutes. Runs from carried binaries (`make gpu-carry`); needs a driver and Python 3.9, no compiler and
no network.

With --emulated, the benchmarks alone run in the emulator, at a small scale: a test of them and of this script."""

import argparse
import contextlib
import json
import pathlib
import signal
import subprocess
import sys

import table
from check import BUDGET, ROOT, Check

RESERVE = 300  # seconds of the total that are reserved for benchmarks
STEPS_SIZE = "32G"  # the table of the steps, or half of the memory
# Sizes of the tables of answers; sizes with targets come first. The last two lists are for protocols with figures in papers.
SIZES = ["64G", "1G", "4G", "16G"]
ONION_SIZES = ["2G", "8G"]
PPIR_SIZES = ["8G", "256M", "16M", "4G", "1G", "64M"]  # 2^25 to 2^16 entries of 256 bytes
# The measurements of papers with their own parameter sets and shapes. A table of one column is looked up by CMux alone, as in table 6 of
# PPIR.
PAPERS = [
    ("exppack-s", "1G", "--preset VIPIR_N4096_3X29"),
    ("onion", "1G", "--preset ONIONPIRV2_N4096_4X27_SEC126"),
    ("onion", "2G", "--preset ONIONPIRV2_N4096_4X27_SEC126"),
    ("onion", "1G", "--preset ONIONPIRV2_N2048_2X30_SEC113"),
    ("tfhe", "16M", "--columns 1"),
    ("tfhe", "256M", "--columns 1"),
    ("tfhe-privks", "16M", "--preset PPIR_N1024_SEC110"),
    ("tfhe-privks", "256M", "--preset PPIR_N1024_SEC110"),
]
EMULATED_SIZE = "1M"
COMPAT = """An older driver will do on GPUs of data centres, with NVIDIA's package cuda-compat-13-0:
  LD_LIBRARY_PATH=/usr/local/cuda-13.0/compat python3 scripts/gpu_check"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--carry", type=pathlib.Path, default=ROOT / "target/gpu-carry", help="folder of the binaries")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "target/gpu-check", help="folder for logs and JSON")
    parser.add_argument("--only", choices=["tests", "bench"], help="one half alone")
    parser.add_argument("--sizes", nargs="*", help="tables of the benchmark of answers")
    parser.add_argument("--seconds", type=float, default=BUDGET, help="for all of it (%(default)s)")
    parser.add_argument("--emulated", action="store_true", help="the benchmarks, in the emulator")
    args = parser.parse_args()
    carry = args.carry.resolve()
    for name in ("hushdb", "hush-bench"):
        if not (carry / name).exists():
            sys.exit(f"error: {name} is not in {args.carry}: run `make gpu-carry` where cargo is")
    args.out.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("error: it was told to end"))  # sent by a caller's time limit
    with contextlib.closing(Check(carry, args.out.resolve(), args.seconds, args.emulated)) as check:
        print(check.machine, flush=True)
        try:
            stages(check, args)
        finally:  # a summary even of a failed run: there may be no other
            print("\n".join(table.lines(check.rows, check.stages)))
    sys.exit(not all(stage["passed"] for stage in check.stages))


def stages(check, args):
    hushdb, bench = check.carry / "hushdb", check.carry / "hush-bench"
    if why := None if args.emulated else unusable(hushdb):
        print(f"error: {why}\n{COMPAT}" if "driver 580" in why else f"error: {why}")
    tests, benchmarks = args.only != "bench" and not args.emulated, args.only != "tests"
    required = {"HUSH_REQUIRE_CUDA": "1", "HUSHDB": str(hushdb), "PYTHONDONTWRITEBYTECODE": "1"}
    reserve = RESERVE if benchmarks else 0
    check.run("doctor", [hushdb, "doctor"], 60)
    check.run("floors", [bench, "gpu-floors", "--json"], 60)
    # Without a single measured rate, there is no usable GPU.
    if not any("rate" in row for row in check.rows):
        return
    if tests:
        check.suite("primitives", 60, required, reserve)
        check.suite("steps", 150, required, reserve)
        check.run("lookups", [sys.executable, "-m", "unittest", "discover", "-v", "-s", "tests/e2e", "-t", "tests/e2e",
                              "-p", "test_cuda.py"], 120, required, reserve)
    if benchmarks:
        # The answers below use the thresholds that this stage finds.
        check.run("bench-thresholds", [bench, "gpu-thresholds", "--json"], 60)
        sizes, own = SIZES, [("tfhe", size, "") for size in PPIR_SIZES] + [("onion", size, "") for size in ONION_SIZES] + PAPERS
        if args.emulated:
            sizes, own = [EMULATED_SIZE], [("tfhe", EMULATED_SIZE, ""), ("tfhe", EMULATED_SIZE, "--columns 64")]
        if args.sizes is not None:
            sizes, own = args.sizes, []
        for size in sizes:
            check.run(f"answers-{size}", [bench, "gpu-answers", "--size", size, "--json"], 120)
        for protocol, size, options in own:
            command = [bench, "gpu-answers", "--size", size, "--protocol", protocol, *options.split(), "--json"]
            check.run(f"answers-{size}, {protocol} {options}".rstrip(), command, 60)
        check.run("bench-steps", [bench, "gpu-steps", "--size", EMULATED_SIZE if args.emulated else STEPS_SIZE, "--json"], 120)


def unusable(hushdb):
    """Returns the program's reason why no GPU can be used, or nothing if one can."""
    try:
        said = subprocess.run([hushdb, "doctor", "--json"], capture_output=True, text=True, timeout=60, check=False).stdout
        return json.loads(said)["gpu"]["unused_because"]
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        return f"hushdb doctor: {error}"


if __name__ == "__main__":
    main()
