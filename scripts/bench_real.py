#!/usr/bin/env python3
"""Builds and queries two real tables whose values have a long tail: elliptic curves of a Debian package, and icons of an npm package.

  scripts/bench_real.py HUSHDB [FOLDER]

Fetches both packages (about 250 MB) into FOLDER, and needs apt-get, dpkg-deb, npm and 6 GB of disk there. Prints for each table the
sizes, the times, and the number of correct look-ups.
"""

import contextlib
import json
import pathlib
import random
import sqlite3
import subprocess
import sys
import time

CURVES = "sagemath-database-cremona-elliptic-curves"
ICONS = "@iconify/json@2.2.535"
ASKED = 40


def run(*command, **kwargs):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **kwargs).stdout


def curves(folder):
    """Returns the path of the database, the options that build it, and some of its records by key."""
    database = folder / "usr/share/sagemath/cremona/cremona.db"
    if not database.exists():
        run("apt-get", "download", CURVES, cwd=folder)
        run("dpkg-deb", "-x", next(folder.glob(f"{CURVES}_*.deb")), folder)
    rows = sqlite3.connect(database)
    rows.row_factory = sqlite3.Row
    longest = rows.execute("select * from t_curve order by length(gens) + length(eqn) desc limit 4").fetchall()
    some = rows.execute(f"select * from t_curve where rowid % 76543 = 17 limit {ASKED}").fetchall()
    records = [dict(row) for row in longest + some]
    return database, ["--table", "t_curve", "--key", "curve"], {row.pop("curve"): row for row in records}


def icons(folder, longest):
    """Returns a JSONL file of the icons of at most `longest` bytes, the options that build it, and some icons by key."""
    source = folder / f"icons-{longest}.jsonl"
    if not (folder / "package").exists():
        run("npm", "pack", ICONS, cwd=folder)
        run("tar", "xzf", next(folder.glob("iconify-json-*.tgz")), cwd=folder)
    records = {}
    for path in sorted((folder / "package/json").glob("*.json")):
        named = json.loads(path.read_text())
        for name, icon in named["icons"].items():
            if len(json.dumps(icon, separators=(",", ":")).encode()) <= longest:
                records[f"{named['prefix']}:{name}"] = icon
    lines = (json.dumps({"key": key, "value": icon}, separators=(",", ":")) for key, icon in records.items())
    source.write_text("\n".join(lines))
    keys = random.Random(5).sample(sorted(records), ASKED)
    return source, ["--key", "key", "--max-value-size", longest], {key: records[key] for key in keys}


def changes(folder, database):
    """Returns a file of changes that sets another torsion for 10,000 curves, and some of the changed records by key."""
    rows = sqlite3.connect(database)
    rows.row_factory = sqlite3.Row
    records = [dict(row) | {"tors": 9} for row in rows.execute("select * from t_curve where rowid % 300 = 17 limit 10000")]
    path = folder / "changes.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path, {record.pop("curve"): record for record in records[::250]}


@contextlib.contextmanager
def served(hushdb, *arguments):
    """Yields the URL of a ready server, and the stream of its log lines."""
    command = [str(part) for part in (hushdb, "serve", *arguments, "--listen", "127.0.0.1:0")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        url = server.stderr.readline().split()[2]
        while "ready in" not in server.stderr.readline():
            assert server.poll() is None, "the server ended"
        yield url, server.stderr
        server.terminate()


def ask(hushdb, url, asked):
    """Looks up all keys of `asked`. Returns the number of correct values, and the median seconds of a look-up."""
    right, times = 0, []
    for key, expected in asked.items():
        start = time.monotonic()
        [answer] = run(hushdb, "get", url, key, "--json").splitlines()
        times.append(time.monotonic() - start)
        right += json.loads(json.loads(answer)["value"]) == expected
    return right, sorted(times)[len(times) // 2]


def change(hushdb, folder, database, arguments, asked):
    """Builds the curves as an updatable table, applies 10,000 changes, and prints the times until they are applied and served. Returns
    whether all look-ups are right."""
    table = folder / "table-changes"
    run(hushdb, "build", database, *arguments, "--out", table, "--force", "--updatable")
    path, changed = changes(folder, database)
    with served(hushdb, table, "--watch") as (url, lines):
        before = ask(hushdb, url, asked)
        start = time.monotonic()
        run(hushdb, "apply", table, path, "--key", "curve")
        applied = time.monotonic() - start
        while "taken up" not in lines.readline():
            pass
        seconds = time.monotonic() - start
        # Unchanged records keep their values.
        expected = {key: record for key, record in asked.items() if key not in changed} | changed
        after = ask(hushdb, url, expected)
    facts = json.loads(run(hushdb, "inspect", table, "--json", "--verify", "header"))
    print(
        f"changes: {facts['changes']['changes']} of {facts['changes']['room']} applied in {applied:.1f} s, served after {seconds:.1f} s; "
        f"{facts['server_bytes'] / 2**30:.2f} GiB in {len(facts['segments'])} segments, {facts['query_bytes'] / 1024:.1f} KiB up, "
        f"{facts['answer_bytes'] / 1024:.1f} KiB down; {before[0]} of {len(asked)} and {after[0]} of {len(expected)} look-ups right, "
        f"{1000 * before[1]:.0f} and {1000 * after[1]:.0f} ms each",
        flush=True,
    )
    return (before[0], after[0]) == (len(asked), len(expected))


def measure(hushdb, folder, name, source, arguments, asked):
    table = folder / f"table-{name}"
    start = time.monotonic()
    run(hushdb, "build", source, *arguments, "--out", table, "--force")
    seconds = time.monotonic() - start
    facts = json.loads(run(hushdb, "inspect", table, "--json", "--verify", "header"))
    with served(hushdb, table) as (url, _):
        right, middle = ask(hushdb, url, asked)
    kib = {part: f"{facts[f'{part}_bytes'] / 1024:.1f} KiB" for part in ("query", "answer")}
    print(
        f"{name}: {facts['records']} records of {facts['payload_bytes'] / 2**20:.0f} MiB; "
        f"{facts['server_bytes'] / 2**30:.2f} GiB in {len(facts['segments'])} segments; built in {seconds:.1f} s; "
        f"{kib['query']} up, {kib['answer']} down; {right} of {len(asked)} look-ups right, "
        f"{1000 * middle:.0f} ms each, with the start of a client",
        flush=True,
    )
    return right == len(asked)


def main():
    hushdb = pathlib.Path(sys.argv[1]).resolve()
    folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "target/bench-real").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    source, arguments, asked = curves(folder)
    good = measure(hushdb, folder, "curves", source, arguments, asked)
    good &= change(hushdb, folder, source, arguments, asked)
    tfhe = ("--protocol", "tfhe", "--preset", "TFHE_COMPACT", "--form", "symbols")
    for name, longest, *more in (
        ("icons-64k", 1 << 16), ("icons-64k-zstd", 1 << 16, "--compress", "auto"), ("icons-zstd", 1 << 20, "--compress", "auto"),
        ("icons-64k-tfhe", 1 << 16, *tfhe), ("icons-zstd-tfhe", 1 << 20, "--compress", "auto", *tfhe),
    ):
        source, arguments, asked = icons(folder, longest)
        good &= measure(hushdb, folder, name, source, [*arguments, *more], asked)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
