"""The program `hushdb`: `python -m hushdb build ..`."""

import signal
import sys

from . import _native


def main() -> int:
    """Runs the command line of this process, and returns its exit code."""
    # The program itself handles Ctrl-C and a closed pipe.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native.run(["hushdb", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
