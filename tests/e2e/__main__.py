"""Runs all test files, one for each processor at a time: `python3 tests/e2e`. Runs only the named ones: `python3 tests/e2e test_tls`."""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time

FOLDER = pathlib.Path(__file__).parent


def run(name: str) -> bool:
    """Runs the tests of a file, and prints their output at the end. Returns whether all passed."""
    start = time.monotonic()
    ended = subprocess.run([sys.executable, "-m", "unittest", "-v", name], cwd=FOLDER, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    print(f"{ended.stdout}{name}: {time.monotonic() - start:.0f} s\n", flush=True)
    return ended.returncode == 0


def main() -> None:
    # Long files start first, so that the last one to end is short.
    files = sorted(FOLDER.glob("test_*.py"), key=lambda path: -path.stat().st_size)
    names = sys.argv[1:] or [path.stem for path in files]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as several:
        passed = list(several.map(run, names))
    failed = [name for name, is_good in zip(names, passed, strict=True) if not is_good]
    sys.exit(f"failed: {', '.join(failed)}" if failed else None)


if __name__ == "__main__":
    main()
