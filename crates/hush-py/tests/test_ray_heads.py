"""Tests of servers of a table on a Ray cluster that come and go. The parts outlive servers, and end by `stop` or by their lease."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest
from ray.cluster_utils import Cluster

import hushdb
import hushdb.ray
import ray
from test_ray import COUNT, one, served, wait_for


@pytest.fixture(scope="module")
def cluster():
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 4, "include_dashboard": False})
    ray.init(address=cluster.address, namespace="hushdb", log_to_driver=False, logging_level="ERROR")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("heads")
    rows = folder / "rows.csv"
    rows.write_text("key,value\n" + "".join(f"k{i},value {i}\n" for i in range(COUNT)))
    hushdb.build(rows, out=folder / "people", key="key", protocol="colpack")
    return folder / "people"


def shell(cluster, *arguments, **options):
    command = [sys.executable, "-m", "hushdb.ray", *map(str, arguments), "--address", cluster.address]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def said(cluster, *arguments):
    """Runs a command. Returns its status and its output."""
    process = shell(cluster, *arguments)
    out, error = process.communicate(timeout=60)
    return process.returncode, out, error


class HeadProcess:
    """A server in its own process, which the same command starts again after each kill."""

    def __init__(self, cluster, table):
        self.cluster, self.table = cluster, table
        self.start()

    def start(self):
        self.process = shell(self.cluster, "serve", self.table, "--replicas", 2, "--cpus", 0.5, "--listen", "127.0.0.1:0")
        self.lines = []
        found = None
        while found is None:
            self.lines.append(self.process.stderr.readline())
            assert self.lines[-1], self.lines
            found = re.match(r"listening on (http://\S+)", self.lines[-1])
        threading.Thread(target=lambda: self.lines.extend(self.process.stderr), daemon=True).start()
        self.url = found[1]
        self.port = int(self.url.rpartition(":")[2])

    def end(self, number):
        self.process.send_signal(number)
        return self.process.wait(90)


class Balancer:
    """A load balancer that forwards connections to servers in turn, and skips those that do not listen."""

    def __init__(self, ports):
        self.ports = ports
        self._turn = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            for _ in range(10 * len(self.ports())):
                ports = self.ports()
                self._turn += 1
                try:
                    server = socket.create_connection(("127.0.0.1", ports[self._turn % len(ports)]), timeout=10)
                except OSError:
                    continue
                server.settimeout(None)
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=(source, target), daemon=True).start()
                break
            else:
                client.close()

    @staticmethod
    def _pass(source, target):
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self._socket.close()


def test_heads_are_killed_one_after_another(cluster, table):
    """Kills all heads, including the first, which started the parts. No look-up fails or is wrong, and the parts keep their processes."""
    kills, failed, looked_up, done = int(os.environ.get("HUSHDB_KILLS", 4)), [], [0], threading.Event()
    heads = [HeadProcess(cluster, table), HeadProcess(cluster, table)]
    balancer = Balancer(lambda: [head.port for head in heads])
    wrong = []

    def look_up(number):
        while not done.is_set():
            number = (number + 7) % COUNT
            try:
                # Every look-up has its own client, as with many users.
                with hushdb.connect(balancer.url) as client:
                    found = client.table("people").get(f"k{number}")
                if found != f"value {number}".encode():
                    wrong.append((number, found))
            except hushdb.HushError as error:
                failed.append((number, repr(error)))
            looked_up[0] += 1

    try:
        pids = sorted(part["pid"] for part in hushdb.ray.status())
        assert len(pids) == 4
        threads = [threading.Thread(target=look_up, args=(start,)) for start in range(2)]
        for thread in threads:
            thread.start()
        for kill in range(kills):
            head = heads[kill % 2]
            ended = head.end((signal.SIGKILL, signal.SIGTERM)[kill // 2 % 2])
            assert ended == (-signal.SIGKILL if kill // 2 % 2 == 0 else 0), head.lines
            before = looked_up[0]
            wait_for(lambda: looked_up[0] > before + 10)
            head.start()
        done.set()
        for thread in threads:
            thread.join()
        assert sorted(part["pid"] for part in hushdb.ray.status()) == pids
        code, out, _ = said(cluster, "status")
        assert code == 0 and re.match("people: 4 parts, http://.*, lease of 60 s", out) and all(head.url in out for head in heads), out
        assert len(out.splitlines()) == 5
    finally:
        done.set()
        balancer.close()
        for head in heads:
            head.end(signal.SIGTERM)
        ended = said(cluster, "stop", "people")
    print(f"{looked_up[0]} look-ups, {kills} heads killed, {len(failed)} failed, {len(wrong)} wrong")
    assert (failed, wrong) == ([], [])
    assert ended == (0, "people: 4 parts ended\n", "")
    assert said(cluster, "stop", "people") == (2, "", "error: there is no table people on this cluster; there are none\n")
    assert said(cluster, "status") == (0, "there are no tables on this cluster\n", "")
    # The log has only lines of this package: Ray prints none for each actor.
    assert not [line for head in heads for line in head.lines if not re.match("listening|the parts outlive|.*replicas of a part", line)]


def test_parts_end_when_nobody_renews_their_lease(cluster, table):
    with hushdb.ray.serve(table, cpus=0.5, lease=3) as service:
        (lease,) = hushdb.ray.leases()
        assert (lease["name"], lease["heads"], lease["lease"]) == ("people", [service.url], 3)
        time.sleep(5)
        assert len(service.status()) == 2
    # The parts outlive the head, and another head uses them.
    with hushdb.ray.serve(table, cpus=0.5) as service:
        assert service.lease == 3
        assert one(service.url).get("k5") == b"value 5"
    wait_for(lambda: not hushdb.ray.leases(), 15)
    assert hushdb.ray.status() == []
    # All resources are free again.
    wait_for(lambda: ray.available_resources()["CPU"] == 4)


def ready(url):
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_head_without_a_part_is_not_ready(cluster, table):
    def metrics():
        with urllib.request.urlopen(f"{service.url}/metrics") as response:
            return dict(line.rsplit(" ", 1) for line in response.read().decode().splitlines() if "hush_part_" in line and line[0] != "#")

    with hushdb.ray.serve(table, cpus=0.5, grace=1.5) as service:
        one(service.url).get("k1")
        wait_for(lambda: metrics()['hush_part_up{table="people",part="1"}'] == "1")
        assert metrics()['hush_part_seconds_count{table="people",part="1"}'] == "1"
        os.kill(service.status()[1]["pid"], signal.SIGKILL)
        wait_for(lambda: metrics()['hush_part_restarts_total{table="people",part="1"}'] == "1")
        wait_for(lambda: ready(service.url)[0] == 200)
        assert hushdb.ray.stop("people") == 2
        wait_for(lambda: ready(service.url)[0] == 503)
        assert "has had no live replica for" in ready(service.url)[1]
        assert metrics()['hush_part_up{table="people",part="0"}'] == "0"
        # Parts that another head starts serve this head too.
        with served(table, cpus=0.5, parts=3) as other:
            assert one(other.url).get("k2") == b"value 2"
            wait_for(lambda: ready(service.url)[0] == 200)
            wait_for(lambda: 'hush_part_up{table="people",part="2"}' in metrics())
            assert one(service.url).get("k3") == b"value 3"
