"""Runs the cases of this folder under valgrind, and judges its errors: watch.py [NAME..].

An error is a branch on a secret, or an address by one. It is allowed if the innermost line of the product that it is in, or is called
from, contains a text of ALLOWED.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[4]

# Where the product reveals something that it computed from secrets: the file, a text of the line, and why nothing is told. With `via`,
# a line of one of the callers contains that text.
ALLOWED = [
    ("hush-he/src/algorithms/encrypt_lwe.rs", "assert!(is_below", "", "no query has such a column: the check always passes"),
    ("hush-he/src/algorithms/encrypt_lwe.rs", "fold(0, |a, b| a | b) == 0", "", "the filter of the table decides whether a long message is a window"),
    ("hush-he/src/algorithms/column_query.rs", "assert!(exponent", "", "no table has such an entry: the check always passes"),
    ("hush-math/src/ring.rs", "accepted", "ring.expand_uniform", "a mask: the seed of all its words, rejected ones too, is sent"),
    ("hush-protocol/src/families/ring/keys.rs", "if *id == self.id", "", "the name of the keys, which is sent"),
    ("hush-client/src/table.rs", "if wanted >= records", "", "whether the table has the position"),
    ("hush-protocol/src/tables/schema.rs", "bytes.split(", "", "the number of columns in the text of a key"),
    ("hush-protocol/src/tables/column_type.rs", "str::from_utf8(text)", "", "whether the text of a key is ASCII or UTF-8"),
    ("hush-protocol/src/slots/slot.rs", "if is_its_own & is_possible", "", "found or not: what the look-up is for, when all of it was compared"),
]


def judge(error: list[str]) -> str:
    """Returns where the product leaks, or nothing for an allowed error. The lines of `error` are frames, the innermost first."""
    frames = [(found[1], int(found[2])) for line in error if (found := re.search(r"(crates/\S+\.rs):(\d+)\)", line))]
    lines = [(file, number, (ROOT / file).read_text().splitlines()[number - 1].strip()) for file, number in frames]
    if not lines:
        return "\n".join(error)
    file, number, text = lines[0]
    for allowed, part, via, _ in ALLOWED:
        if file == f"crates/{allowed}" and part in text and any(via in line for *_, line in lines):
            return ""
    return f"{file}:{number}: {text}"


def main(names: list[str]) -> int:
    valgrind = ["valgrind", "-q", "--error-limit=no", "--num-callers=24", "--fullpath-after=", "--log-fd=1"]
    command = [*os.environ.get("CARGO", "cargo").split(), "bench", "--locked", "--profile", "timing", "-p", "hush-client", "--bench", "timing"]
    command += ["--config", f'target."cfg(all())".runner = {json.dumps(valgrind)}', "--", "taint", *names]
    run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    failed, found, error = False, set(), []
    for line in map(str.rstrip, run.stdout):
        frame = re.match(r"==\d+==    (?:at|by) (.*)", line)
        if frame:
            error.append(frame[1])
        elif error:
            found.add(judge(error))
            error = []
        if line.startswith("case "):
            name = line.removeprefix("case ")
            found.discard("")
            is_right = bool(found) == name.startswith("planted")
            failed |= not is_right
            print(f"{'ok  ' if is_right else 'FAIL'} {name}", *([] if is_right else sorted(found)), sep="\n     ", flush=True)
            found = set()
    return int(run.wait() != 0 or failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
