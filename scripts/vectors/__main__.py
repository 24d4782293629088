"""Recomputes the known answers in vectors/ and compares all that they hold, and judges the negative vectors: `make vectors`. A second implementation, in numpy, of
what docs/reference/file-formats.md and docs/explanation/protocols/ describe."""

import argparse
import concurrent.futures
import multiprocessing
import sys

import environment


def main() -> int:
    try:
        environment.enter()
    except environment.MissingPackages as error:
        print(f"vectors: {error}", file=sys.stderr)
        return 1
    import negative  # numpy is importable only now
    import protocols
    from negative import cases

    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("protocols", nargs="*", metavar="protocol", help=f"of {', '.join(protocols.STEPS)}; all of them")
    arguments.add_argument("--write", action="store_true", help="write the negative vectors anew, and do nothing else")
    given = arguments.parse_args()
    if given.write:
        print("\n".join(cases.write()))
        return 0
    chosen = given.protocols or list(protocols.STEPS)
    if unknown := set(chosen) - protocols.STEPS.keys():
        arguments.error(f"no such protocol: {', '.join(sorted(unknown))}")
    equal = True
    for name in protocols.forgotten():
        equal = False
        print(f"{name}: has a file of known answers, but is not recomputed", file=sys.stderr)
    if not given.protocols:
        is_right, lines = negative.report()
        equal &= is_right
        print("\n".join(lines), file=sys.stdout if is_right else sys.stderr, flush=True)
    # Spawned, not forked: the libraries below numpy have threads.
    with concurrent.futures.ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        for is_equal, line in pool.map(protocols.report, chosen):
            equal &= is_equal
            print(line, file=sys.stdout if is_equal else sys.stderr, flush=True)
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
