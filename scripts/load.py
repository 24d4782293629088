#!/usr/bin/env python3
"""A server under twice the load that it can bear, with clients beside it that mean no good: `make load`.

A load generator (oha) repeats one real query of `hushdb get` over many connections. The script first measures the server's capacity,
then sends queries at twice that rate. At the same time, hostile connections read slowly, write slowly, stay silent, or break off their
TLS handshake. An honest client, `hushdb get` from another address, looks records up; all its look-ups must be right.

    scripts/load.py target/release/hushdb OHA [--minutes 30] [--connections 1000] [--records 1000000] [--out FILE]
"""

import argparse
import json
import os
import pathlib
import random
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/e2e"))

from certificates import Authority  # noqa: E402
from harness import request  # noqa: E402
from proxy import Proxy  # noqa: E402
from wiretap import Wiretap  # noqa: E402

HONEST = "127.0.0.9"  # the address of the honest client


class Server:
    """A server with one table, over TLS."""

    def __init__(self, binary, folder, table, authority):
        cert, key = authority.sign("server")
        command = [binary, "serve", table, "--listen", "127.0.0.1:0", "--client-share", "50", "--listen-health", "127.0.0.1:0",
                   "--tls-cert", cert, "--tls-key", key]
        self.process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True)
        found = {}
        while len(found) < 2 or "ready in" not in line:
            line = self.process.stderr.readline()
            if not line:
                raise SystemExit("the server did not start")
            for begin, name in (("listening on ", "url"), ("health and metrics on ", "health")):
                if line.startswith(begin):
                    found[name] = line[len(begin):].split()[0]
        self.url, self.health = found["url"], found["health"]
        threading.Thread(target=lambda: [None for _ in self.process.stderr], daemon=True).start()

    def resident(self):
        """Returns the bytes of the process's anonymous memory, which does not include the mapped file of the table."""
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon"):
                return int(line.split()[1]) << 10

    def metrics(self):
        text = request(self.health + "/metrics")[2].decode()
        lines = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, value in lines}


def scans(before, after):
    """Returns the number of scans between two readings of the metrics, the mean seconds of a scan, and its mean queries."""
    def total(name):
        return sum(value - before.get(key, 0) for key, value in after.items() if key.split("{")[0] == name)
    count = total("hush_scan_seconds_count")
    return count, total("hush_scan_seconds_sum") / max(count, 1), total("hush_batch_size_sum") / max(count, 1)


def oha(program, server, path, body, connections, seconds, rate=None):
    """Runs the load generator, and returns its report. `rate` is in queries per second; without it, oha sends as fast as it can."""
    command = [program, "--no-tui", "--output-format", "json", "--insecure", "--stats-success-breakdown", "-c", connections,
               "-z", f"{seconds}s", "-m", "POST", "-T", "application/x-protobuf", "-D", body, "--disable-compression"]
    command += ["-q", rate] if rate else []
    run = subprocess.run(list(map(str, [*command, server.url + path])), capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"the load generator failed: {run.stderr}")
    return json.loads(run.stdout)


class Hostile:
    """Hostile connections, `count` of each kind, each reopened until the end of the block."""

    KINDS = ("slow reader", "slow writer", "silent", "half-open TLS")

    def __init__(self, server, path, body, count):
        self.address = (urllib.parse.urlsplit(server.url).hostname, urllib.parse.urlsplit(server.url).port)
        self.head = (f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n"
                     f"Content-Length: {len(body)}\r\n\r\n").encode()
        self.body, self.stop, self.made = body, threading.Event(), dict.fromkeys(self.KINDS, 0)
        self.threads = [threading.Thread(target=self.keep_up, args=(kind,), daemon=True) for kind in self.KINDS for _ in range(count)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()

    def keep_up(self, kind):
        while not self.stop.is_set():
            try:
                self.made[kind] += 1
                self.once(kind)
            except OSError:
                pass
            self.stop.wait(0.05)

    def once(self, kind):
        # Each kind has its own address: the server limits the share of an address.
        source = (f"127.0.0.{20 + self.KINDS.index(kind)}", 0)
        with socket.create_connection(self.address, timeout=60, source_address=source) as tcp:
            if kind == "half-open TLS":
                tcp.sendall(b"\x16\x03\x01\x02\x00\x01\x00")  # the head of a ClientHello, without the rest
                return tcp.recv(1)
            context = ssl._create_unverified_context()
            with context.wrap_socket(tcp, server_hostname="localhost") as stream:
                if kind == "silent":
                    return stream.recv(1)
                if kind == "slow writer":
                    stream.sendall(self.head)
                    for byte in self.body[:300]:
                        stream.sendall(bytes([byte]))
                        if self.stop.wait(0.5):
                            return None
                    return None
                stream.sendall(self.head + self.body)
                while not self.stop.wait(0.5) and stream.recv(1):
                    pass
                return None


class Honest:
    """A client that looks up random records, one a second, from its own address."""

    def __init__(self, binary, server, authority, records):
        self.command = [binary, "get", "--json", "--ca-cert", authority.cert]
        self.port, self.records, self.seconds, self.wrong = urllib.parse.urlsplit(server.url).port, records, [], []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.ask, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()

    def ask(self):
        with Wiretap(("127.0.0.1", self.port), source=(HONEST, 0)) as forward:
            while not self.stop.wait(1):
                key = f"k{random.randrange(len(self.records))}"
                begun = time.time()
                command = [*self.command, f"https://localhost:{forward.port}", key]
                run = subprocess.run(list(map(str, command)), capture_output=True, text=True)
                value = json.loads(run.stdout)["value"] if run.returncode == 0 else run.stderr.strip()
                self.seconds.append(time.time() - begun)
                if value != self.records[key]:
                    self.wrong.append(value)


def prepare(binary, folder, count):
    """Builds a table of `count` records with values of 256 bytes. Returns its folder, and all records by key."""
    rng, records = random.Random(1), {}
    source = folder / "records.csv"
    with source.open("w") as file:
        file.write("key,value\n")
        for index in range(count):
            value = rng.randbytes(128).hex()
            records[f"k{index}"] = value
            file.write(f"k{index},{value}\n")
    table = folder / "table"
    subprocess.run(list(map(str, [binary, "build", source, "--key", "key", "--out", table])), check=True)
    return table, records


def a_query(binary, server, folder):
    """Records a real query of a client. Returns its path on the server, and a file with its body."""
    with Proxy(server.url) as proxy:
        subprocess.run([str(binary), "get", proxy.url, "k1", "--no-cache"], check=True, capture_output=True)
        [(path, body)] = [(path, body) for method, path, body in proxy.requests if method == "POST"]
    file = folder / "query"
    file.write_bytes(body)
    return path, file


def percentiles(said):
    return {name: round(value, 4) for name, value in said.items() if name in ("p50", "p90", "p99", "p99.9") and value}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("oha")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--hostile", type=int, default=25, help="connections of each bad kind")
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        table, records = prepare(args.binary, folder, args.records)
        authority = Authority(folder, "authority")
        server = Server(args.binary, folder, table, authority)
        try:
            report = measure(args, server, authority, folder, records)
        finally:
            server.process.terminate()
            server.process.wait()
    print(json.dumps(report, indent=1))
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(report, indent=1) + "\n")
    wrong = {status for status in report["statuses"] if status not in ("200", "429", "503")}
    if wrong or report["honest"]["wrong"]:
        raise SystemExit(f"statuses {wrong}, wrong look-ups {report['honest']['wrong']}")


def measure(args, server, authority, folder, records):
    path, body = a_query(args.binary, server, folder)
    oha(args.oha, server, path, body, 16, 3)  # the first scan is the slowest
    before = server.metrics()
    alone = oha(args.oha, server, path, body, 16, 15)
    capacity = alone["statusCodeDistribution"].get("200", 0) / alone["summary"]["total"]
    _, alone_scan, _ = scans(before, server.metrics())
    resident, stop = [], threading.Event()

    def watch():
        while not stop.wait(1):
            resident.append(server.resident())

    threading.Thread(target=watch, daemon=True).start()
    before = server.metrics()
    with Hostile(server, path, body.read_bytes(), args.hostile) as hostile, \
            Honest(args.binary, server, authority, records) as honest:
        seconds = int(args.minutes * 60)
        load = oha(args.oha, server, path, body, args.connections, seconds, rate=max(1, round(2 * capacity)))
    stop.set()
    after = server.metrics()
    count, scan, batch = scans(before, after)
    admitted = percentiles(load["latencyPercentilesSuccessful"])
    answered = load["statusCodeDistribution"].get("200", 0) / load["summary"]["total"]
    return {
        "records": args.records, "query bytes": body.stat().st_size, "connections": args.connections, "minutes": args.minutes,
        "cores": os.cpu_count(), "tls": True,
        "capacity per second": round(capacity, 2), "asked per second": round(load["summary"]["requestsPerSec"], 2),
        "answered per second": round(answered, 2),
        "statuses": load["statusCodeDistribution"], "errors of connections": load["errorDistribution"],
        "scans": count, "scan seconds": round(scan, 4), "scan seconds at capacity": round(alone_scan, 4),
        "queries a scan": round(batch, 2), "seconds of the admitted": admitted,
        "p99 in scans": round(admitted["p99"] / scan, 2) if admitted.get("p99") else None,
        "seconds of the refused": percentiles(load["latencyPercentilesNotSuccessful"]),
        "resident MiB": {"first minute": round(statistics.median(resident[:60] or [0]) / 2**20), "most": round(max(resident, default=0) / 2**20),
                         "last minute": round(statistics.median(resident[-60:] or [0]) / 2**20)},
        "hostile connections": hostile.made,
        "honest": {"look-ups": len(honest.seconds), "wrong": honest.wrong[:5],
                   "median seconds": round(statistics.median(honest.seconds), 2) if honest.seconds else None,
                   "most seconds": round(max(honest.seconds), 2) if honest.seconds else None},
    }


if __name__ == "__main__":
    main()
