"""The program `hushdb`: `python -m hushdb build ..`."""

import signal
import sys

from . import _native


def main() -> int:
    """Runs the command line of this process."""
    # The program has its own ways to end on Ctrl-C and on a reader that has gone.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native.run(["hushdb", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
