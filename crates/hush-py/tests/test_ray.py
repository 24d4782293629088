"""Tests of parts on a real Ray cluster of several nodes: answers, killed processes, changing epochs."""

import contextlib
import json
import logging
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest
from ray.cluster_utils import Cluster
from ray.util import placement_group_table

import hushdb
import hushdb.ray
import ray

COUNT = 400


@pytest.fixture(scope="module")
def cluster():
    """Starts four nodes of Ray, each with its own processes. Three are of two kinds, of which the larger has an emulated GPU."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HUSH_CUDA", "emulator")  # for the nodes' processes
        # Memory for all results of a build. Ray's 150 MiB for tests would spill them to the disk, and Ray refuses a disk that is 95 % full.
        node = {"num_cpus": 1, "object_store_memory": 1 << 30}
        cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
        for kind in ("small", "large", "small"):
            cluster.add_node(**node, num_gpus=int(kind == "large"), resources={kind: 1})
    ray.init(address=cluster.address, namespace="hushdb", log_to_driver=False, logging_level=logging.ERROR)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ray")
    rows = folder / "rows.csv"
    rows.write_text("key,value\n" + "".join(f"k{i},value {i}\n" for i in range(COUNT)))
    hushdb.build(rows, out=folder / "people", key="key", protocol="colpack")
    return folder / "people"


@contextlib.contextmanager
def served(table, **options):
    """Yields a service of a table on the cluster, and ends all its parts afterwards."""
    with hushdb.ray.serve(table, **options) as service:
        try:
            yield service
        finally:
            hushdb.ray.stop(service.name)


def one(url):
    return hushdb.connect(url).table()


def wait_for(until, seconds=60):
    deadline = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_parts_find_what_is_there(cluster, people_table):
    with served(people_table, weights=[2, 1, 1]) as service:
        with hushdb.ray.head("people") as other:
            for url in (service.url, other.url):
                table = one(url)
                assert table.get_many(["user7@example.org", "nobody"]) == ["Name 7, é".encode(), None]
        status = service.status()
        assert [(part["part"], part["weights"]) for part in status] == [(at, [2, 1, 1]) for at in range(3)]
        # Each part has its own node and its own process.
        assert len({part["node"] for part in status}) == len({part["pid"] for part in status}) == 3
        with pytest.raises(hushdb.OptionError, match="stop it first"):
            hushdb.ray.serve(people_table)
        # The refusal does not affect the running parts.
        assert one(service.url).get("user7@example.org") == "Name 7, é".encode()
        assert len(service.status()) == 3
    assert hushdb.ray.status() == []


def test_parts_are_on_the_kind_of_node_that_is_theirs(cluster, people_table):
    kinds = {node["NodeID"]: {"small", "large"} & node["Resources"].keys() for node in ray.nodes()}
    with served(people_table, weights=[1, 2, 1], cpus=[0.5, 1, 0.5], nodes=["small", "large", "small"]) as service:
        assert service.connect().table().get("user7@example.org") == "Name 7, é".encode()
        assert [kinds[part["node"]] for part in service.status()] == [{"small"}, {"large"}, {"small"}]
        assert len({part["node"] for part in service.status()}) == 3
    for wrong in ({"cpus": [1, 1]}, {"nodes": ["small"]}, {"cpus": 0}):
        with pytest.raises(hushdb.OptionError, match="one for all, or as many"):
            hushdb.ray.serve(people_table, parts=3, **wrong)


@pytest.mark.skipif(os.environ.get("FEATURES") != "emulator", reason="the package has no emulated GPU")
def test_parts_are_on_gpus_or_not(cluster, people_table):
    with served(people_table, weights=[1, 2, 1], gpus=[0, 1, 0]) as service:
        assert service.connect().table().get_many(["user7@example.org", "nobody"]) == ["Name 7, é".encode(), None]
        assert [part["places"] for part in service.status()] == [["cpu"], ["cuda"], ["cpu"]]
    for wrong in (2, [1, 1], -1):
        with pytest.raises(hushdb.OptionError, match="a part is on one GPU"):
            hushdb.ray.serve(people_table, parts=3, gpus=wrong)


def test_a_part_whose_gpu_has_failed_ends_its_process():
    program = """if True:
        from hushdb.ray._part import Part

        class Failed:
            lost = "the GPU fell off its bus"

            def scan(self, batch):
                return b"reply"

        part = Part.__new__(Part)
        part._index, part._epochs = 3, {"epoch": Failed()}
        Part.scan(part, "epoch", b"batch")
    """
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (1, "part 3: the GPU fell off its bus\n")


def test_parts_take_memory_of_their_nodes(cluster, people_table):
    source = hushdb._native.Source(str(people_table), True, None)
    both, one, other = *source.memory([1]), *source.memory([3, 1])
    assert both >= one > other > 512 << 20
    with served(people_table, weights=[3, 1]):
        created = [group for group in placement_group_table().values() if (group["name"], group["state"]) == ("hushdb/people", "CREATED")]
        (bundles,) = [group["bundles"].values() for group in created]
        assert sorted(bundle["memory"] for bundle in bundles) == [other, one]
    for wrong, words in [({"weights": [1, 1], "parts": 3}, "leave one of both out"), ({"weights": [0, 0]}, "not all 0")]:
        with pytest.raises(hushdb.OptionError, match=words):
            hushdb.ray.serve(people_table, **wrong)


def test_protocols_with_keys_and_hints(cluster, people, tmp_path):
    for protocol in ("onion", "simple"):
        hushdb.build(people, out=tmp_path / protocol, key="email", protocol=protocol)
        with served(tmp_path / protocol) as service:
            table = service.connect(cache=tmp_path / "cache").table()
            assert table.get_many([f"user{i}@example.org" for i in range(3)]) == [f"Name {i}, é".encode() for i in range(3)]


def test_killed_parts_are_answered_by_their_replicas(cluster, table):
    """Kills one process after another. No answer is wrong, and no look-up fails twice."""
    kills, wrong, looked_up, done = int(os.environ.get("HUSHDB_KILLS", 6)), [], [0], threading.Event()
    with served(table, parts=2, replicas=2) as service:
        def look_up(start):
            own = one(service.url)
            number = start
            while not done.is_set():
                number = (number + 7) % COUNT
                try:
                    try:
                        found = own.get(f"k{number}")
                    except hushdb.HushError:
                        found = own.get(f"k{number}")
                    if found != f"value {number}".encode():
                        wrong.append((number, found))
                except Exception as error:  # noqa: BLE001 any error loses the look-up
                    wrong.append((number, repr(error)))
                looked_up[0] += 1

        threads = [threading.Thread(target=look_up, args=(start,)) for start in range(2)]
        for thread in threads:
            thread.start()
        try:
            for kill in range(kills):
                parts = service.status()
                # Parts alternate, so that the killed replica of the other part is alive again.
                alive = [part for part in parts if "pid" in part and part["part"] == kill % 2]
                before = looked_up[0]
                os.kill(alive[kill // 2 % len(alive)]["pid"], signal.SIGKILL)
                wait_for(lambda: looked_up[0] > before + 3)
                wait_for(lambda: all("pid" in part for part in service.status()))
        finally:
            done.set()
            for thread in threads:
                thread.join()
    assert wrong == []
    assert looked_up[0] > 4 * kills


def test_without_a_replica_a_look_up_fails_at_once(cluster, table):
    with served(table, parts=2) as service:
        one(service.url).get("k1")
        # A recorded query is sent without a client, which would retry it.
        body = recorded(service.url, table)
        assert post(service.url, body)[0] == 200
        os.kill(service.status()[1]["pid"], signal.SIGKILL)
        started = time.monotonic()
        statuses = [post(service.url, body) for _ in range(3)]
        assert time.monotonic() - started < 8  # less than the 10 seconds of a part's timeout
        refused = [answer for answer in statuses if answer[0] != 200]
        assert refused and all((status, code) == (503, "part_unavailable") and after == "1" for status, code, after in refused)
        # Ray restarts the part, and a client waits as long as the server asks.
        wait_for(lambda: post(service.url, body)[0] == 200)
        assert one(service.url).get("k5") == b"value 5"


def test_epochs_change_everywhere_at_once(cluster, tmp_path):
    def build(third, **options):
        rows = tmp_path / "rows.csv"
        rows.write_text("key,value\n" + "".join(f"k{i},{third if i == 3 else f'value {i}'}\n" for i in range(COUNT)))
        return hushdb.build(rows, out=tmp_path / "changing", key="key", protocol="colpack", **options).epoch

    first = build("value 3")
    with served(tmp_path / "changing", parts=3) as service:
        own = one(service.url)
        assert (own.get("k3"), service.head.epoch) == (b"value 3", first)
        second = build("changed", force=True)
        wait_for(lambda: service.head.epoch == second)
        assert one(service.url).get_many(["k3", "k4"]) == [b"changed", b"value 4"]
        # A client of the epoch before is still answered for a while.
        assert own.get_many(["k3", "k4"]) == [b"value 3", b"value 4"]
        assert all(part["epochs"] == [first, second] for part in service.status())


class Crew:
    """A crew that does a limited number of tasks in this process, and then fails."""

    def __init__(self, places, tasks=1 << 30, lie=lambda contents: contents):
        self.left, self.lie, self.asked = tasks, lie, []
        self.places = lambda: places

    def ask(self, number, task):
        self.asked.append((number, task))

    def next(self):
        if self.left == 0:
            raise RuntimeError("the cluster is gone")
        self.left -= 1
        number, task = self.asked.pop(0)
        return number, self.lie(hushdb._native.work(task, 1))


def same_files(one, other):
    names = sorted(path.name for path in one.iterdir())
    assert names == sorted(path.name for path in other.iterdir())
    assert all((one / name).read_bytes() == (other / name).read_bytes() for name in names)
    return names


@pytest.mark.parametrize(("protocol", "records", "columns", "width", "tasks", "stage", "file"), [
    ("colpack", 6000, 256, 200, 1, "pack columns", "columns.bin"),
    ("simple", 6000, 64, 200, 1, "hint", "hint.bin"),
    ("exppack-s", 600, 64, 200, 0, "hint", "lifted.bin"),
    # The hint that becomes the second database is not kept.
    ("exppack-d", 600, 64, 8, 1, "hint", "lifted.bin"),
])
def test_builds_are_computed_by_the_cluster(cluster, tmp_path, protocol, records, columns, width, tasks, stage, file):
    """Checks that tasks compute the same bytes as one process, and that finished tasks are not repeated."""
    rows = tmp_path / "rows.csv"
    rows.write_text("key,value\n" + "".join(f"k{i},{i:0{width}}\n" for i in range(records)))
    options = {"key": "key", "protocol": protocol, "columns": columns}
    given = {"threads": 1, "on_progress": None, "options": options}
    with pytest.raises(hushdb.HushError, match="the cluster is gone; the same build resumes from those that did") as gone:
        hushdb._build(rows, tmp_path / "ours", crew=Crew(1, tasks), **given)
    assert not isinstance(gone.value, hushdb.OptionError)
    # Both builds resume a copy of one unfinished table, because the seeds of a table are random.
    shutil.copytree(tmp_path / ".ours.hush-partial", tmp_path / ".theirs.hush-partial", copy_function=shutil.copy2)
    told = []
    epochs = {hushdb.ray.build(rows, out=tmp_path / "ours", on_progress=lambda *said: told.append(said), **options),
              hushdb.build(rows, out=tmp_path / "theirs", **options).epoch}
    assert len(epochs) == 1
    assert file in same_files(tmp_path / "ours", tmp_path / "theirs")
    # Finished units are not computed again: the stage resumes after them.
    begun = next(place for place, said in enumerate(told) if said[0] == stage)
    checked = any(said[0] == "check" and said[3] == "pieces" for said in told)
    assert checked == (tasks > 0 and protocol != "exppack-d"), told
    assert not checked or 0 < told[begun + 1][1] < told[begun][2], told[begun : begun + 2]
    with hushdb.serve(tmp_path / "ours") as server:
        assert one(server.url).get("k77") == f"{77:0{width}}".encode()
    lying = Crew(1, lie=lambda contents: [b"short" for _ in contents])
    with pytest.raises(hushdb.HushError, match="is not the piece"):
        hushdb._build(rows, tmp_path / "wrong", crew=lying, **given)


@pytest.mark.parametrize("protocol", ["simple", "onion"])
def test_filters_are_solved_by_a_crew_that_is_large(tmp_path, protocol):
    """Checks filters that tasks solve by the answers of their tables: tables cannot be compared, because their seeds are random."""
    rows = tmp_path / "rows.csv"
    rows.write_text("key,value\n" + "".join(f"k{i},{i:0{i % 700 + 4}}\n" for i in range(4000)))
    options = {"key": "key", "protocol": protocol}
    told = []
    crew = Crew(2)
    hushdb._build(rows, tmp_path / "ours", threads=1, on_progress=lambda *said: told.append(said), crew=crew, options=options)
    keys = [said for said in told if said[0] == "filter"]
    assert keys and keys[0][2] == 4000
    with hushdb.serve(tmp_path / "ours") as server:
        client = one(server.url)
        assert [client.get(f"k{i}") for i in (0, 77, 3999)] == [f"{i:0{i % 700 + 4}}".encode() for i in (0, 77, 3999)]
    lying = Crew(2, lie=lambda contents: contents[:-1])
    with pytest.raises(hushdb.HushError, match="are not the filters that were asked for"):
        hushdb._build(rows, tmp_path / "wrong", threads=1, on_progress=None, crew=lying, options=options)


def test_the_manifest_says_what_a_shell_can():
    """Checks deploy/kuberay: its command is valid, its resources suffice, and clients reach the servers."""
    import shlex

    import yaml

    from hushdb.ray.__main__ import parser

    manifest = pathlib.Path(__file__).parents[3] / "deploy/kuberay/hushdb.yaml"
    objects = {thing["kind"]: thing for thing in yaml.safe_load_all(manifest.read_text())}
    cluster = objects["RayCluster"]["spec"]
    servers, parts = cluster["workerGroupSpecs"]
    (server,), (part,) = (group["template"]["spec"]["containers"] for group in (servers, parts))
    (script,) = server["args"]
    said = re.search(r"python -m (hushdb\.ray .*?) &$", script.replace("\\\n", " "), re.MULTILINE)
    program, *arguments = shlex.split(said[1])
    args = parser().parse_args(arguments)
    assert program == "hushdb.ray" and args.parts * args.replicas == parts["replicas"]
    assert args.cpus == float(part["resources"]["limits"]["cpu"])
    options, ports = dict(text.split("=") for text in args.option), {port["name"]: port["containerPort"] for port in server["ports"]}
    assert args.listen.endswith(f":{ports['hushdb']}") and options["listen-health"].endswith(f":{ports['health']}")
    assert objects["Service"]["spec"]["selector"].items() <= servers["template"]["metadata"]["labels"].items()
    assert cluster["rayVersion"] == ray.__version__
    assert f"ray:{ray.__version__}-" in (manifest.parent / "Containerfile").read_text()


def test_from_a_shell(table):
    """Serves a table by a command that starts its own cluster, which ends with the command."""
    command = [sys.executable, "-m", "hushdb.ray", "serve", str(table), "--listen", "127.0.0.1:0", "--cpus", "0.5,0.25"]
    env = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env)
    try:
        line = next(line for line in process.stderr if "listening" in line)
        threading.Thread(target=lambda: print(process.stderr.read()), daemon=True).start()
        url = re.search(r"http://\S+", line)[0]
        assert one(url).get("k5") == b"value 5"
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def recorded(url, folder):
    """Records and returns the body of a query to a table."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    bodies = []

    class Passing(BaseHTTPRequestHandler):
        def answer(self):
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            if self.path.endswith("/query"):
                bodies.append(body)
            asked = urllib.request.Request(url + self.path, data=body or None, headers={"content-type": "application/x-protobuf"})
            with urllib.request.urlopen(asked) as response:
                answer = response.read()
                self.send_response(response.status)
                for name in ("content-type", "etag"):
                    if response.headers[name]:
                        self.send_header(name, response.headers[name])
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

        do_GET = do_POST = answer

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Passing) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        one(f"http://127.0.0.1:{proxy.server_port}").get("k1")
        proxy.shutdown()
    return bodies[-1]


def post(url, body):
    """Sends a query. Returns the status, the code of the problem, and Retry-After."""
    asked = urllib.request.Request(f"{url}/v1/tables/people/query", data=body, headers={"content-type": "application/x-protobuf"})
    try:
        with urllib.request.urlopen(asked, timeout=30) as response:
            return response.status, None, None
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())["code"], error.headers["retry-after"]
