"""Measures look-ups over a line with a delay and a rate, and compares them with the planner's times: `make flights`.

Tables of four lengths of queries are served over TLS at one end of the line, and looked up in at the other. A look-up waits for the one
before to be two seconds past, so that its connection is idle; the first one has a client of its own. What client and server compute
is measured over the same line without delay, and is no part of the comparison.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from line import SERVER, Line, line

RECORDS, VALUE_BYTES = 1 << 16, 1024
COLUMNS = (4096, 16384, 32768, 65536)
RTTS = (0.02, 0.06, 0.3)
MEGABITS = 32.0
PORT = 7700
LOOKUPS = 3
MEDIAN = 0.15

# The first look-up and others of an idle client, in seconds.
CLIENT = """
import json, sys, time, hushdb
authority, times = sys.argv[1], {}
for url in sys.argv[2:]:
    begun = time.perf_counter()
    client = hushdb.connect(url, ca_cert=authority, no_cache=True).table()
    assert client.get(77) is not None
    first, others = time.perf_counter() - begun, []
    for _ in range(%d):
        time.sleep(2)
        begun = time.perf_counter()
        client.get(77)
        others.append(time.perf_counter() - begun)
    times[url] = [first, min(others)]
print(json.dumps(times))
""" % LOOKUPS


def measured(own: Line, authority: pathlib.Path, urls: list[str]) -> dict[str, list[float]]:
    """Returns the seconds of a first look-up and of the next ones, by server."""
    command = own.client.command(sys.executable, "-c", CLIENT, str(authority), *urls)
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def planned(hushdb: str, columns: int, rtt: float) -> tuple[float, float]:
    """Returns the planner's seconds of a first look-up and of the next ones, without those that the server computes."""
    machine = "crates/hush-build/src/planner/reference_machine.json"
    words = ["--records", RECORDS, "--size", VALUE_BYTES, "--protocol", "colpack", "--machine", machine, "--rtt", f"{rtt}s",
             "--up", MEGABITS, "--down", MEGABITS, "--json", "--all"]
    lines = subprocess.run([hushdb, "plan", *map(str, words)], check=True, capture_output=True, text=True).stdout.splitlines()
    offer = next(offer for offer in map(json.loads, lines) if offer["geometry"]["columns"] == columns)
    return offer["first_look_up_seconds"] - offer["seconds"], offer["look_up_seconds"] - offer["seconds"]


def certificate(folder: pathlib.Path) -> list[str]:
    """Makes a certificate for the server's end, and returns the options of `hushdb serve` that use it."""
    names = ["-keyout", folder / "key.pem", "-out", folder / "cert.pem", "-subj", "/CN=hushdb", "-addext", f"subjectAltName=IP:{SERVER}",
             "-addext", "basicConstraints=critical,CA:FALSE"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names]
    subprocess.run([str(word) for word in command], check=True, capture_output=True)
    return ["--tls-cert", str(folder / "cert.pem"), "--tls-key", str(folder / "key.pem")]


def main() -> None:
    parser = argparse.ArgumentParser(prog="flights", description=__doc__)
    parser.add_argument("hushdb", help="the program")
    hushdb = parser.parse_args().hushdb
    if os.geteuid() or not shutil.which("ip") or not pathlib.Path("/dev/net/tun").exists():
        sys.exit("flights: network namespaces need Linux, root, the command ip (iproute2) and /dev/net/tun")
    with tempfile.TemporaryDirectory() as name, line() as own:
        folder = pathlib.Path(name)
        rows = folder / "rows.csv"
        rows.write_text("value\n" + RECORDS * ("x" * VALUE_BYTES + "\n"))
        secure = certificate(folder)
        servers, urls = [], {}
        try:
            for port, columns in enumerate(COLUMNS, PORT):
                out = folder / f"c{columns}"
                options = ["--protocol", "colpack", "--columns", str(columns), "--out", str(out)]
                subprocess.run([hushdb, "build", str(rows), *options], check=True, capture_output=True)
                urls[f"https://{SERVER}:{port}"] = columns
                serve = [hushdb, "serve", str(out), "--listen", f"{SERVER}:{port}", "--open", *secure]
                servers.append(subprocess.Popen(own.server.command(*serve)))
            time.sleep(3)
            computed = measured(own, folder / "cert.pem", list(urls))
            own.megabits = MEGABITS
            errors: tuple[list[float], list[float]] = ([], [])
            print(f"{'columns':>8} {'rtt, ms':>8} {'first, ms':>10} {'planned':>8} {'next, ms':>9} {'planned':>8}")
            for own.rtt in RTTS:
                took = measured(own, folder / "cert.pem", list(urls))
                for url, columns in urls.items():
                    pairs = []
                    for kind, planned_seconds in enumerate(planned(hushdb, columns, own.rtt)):
                        expected = planned_seconds + computed[url][kind]
                        errors[kind].append(abs(expected / took[url][kind] - 1))
                        pairs += [1e3 * took[url][kind], 1e3 * expected]
                    print(f"{columns:8} {1e3 * own.rtt:8.0f} {pairs[0]:10.0f} {pairs[1]:8.0f} {pairs[2]:9.0f} {pairs[3]:8.0f}")
        finally:
            for server in servers:
                server.terminate()
                server.wait()
    for kind, error in zip(("first", "next"), errors):
        print(f"{kind}: median error {100 * statistics.median(error):.1f} %, largest {100 * max(error):.1f} %, of {len(error)} pairs")
    if any(statistics.median(error) > MEDIAN for error in errors):
        sys.exit("the planner's times are off")


if __name__ == "__main__":
    main()
