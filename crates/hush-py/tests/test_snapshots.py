"""Tests of tables in folders: their facts, their changes, servers that load new epochs, and the program."""

import logging
import subprocess
import sys
import time

import polars
import pytest

import hushdb


@pytest.fixture
def updatable(people, tmp_path):
    return hushdb.build(people, out=tmp_path / "people", key="email", protocol="colpack", updatable=True, changes=50)


def test_a_build_says_what_it_has_made(people, tmp_path):
    built = hushdb.build(people, out=tmp_path / "table", key="email", protocol="simple")
    assert (built.records, built.protocol, len(built.epoch), built.path) == (500, "simple", 64, tmp_path / "table")
    assert built.download_bytes > built.query_bytes > 0 == built.upload_bytes and built.seconds > 0 and built.changes is None
    # The files that clients download are on disk, and not in a server's memory.
    assert built.disk_bytes == built.server_bytes + built.download_bytes
    assert built.payload_bytes == sum(len(name.encode()) for name in people["name"])
    assert "protocol" in str(built) and "500 records, simple" in repr(built)
    html = built._repr_html_()
    assert html.startswith("<table>") and built.epoch in html and "a client downloads once" in html
    seen = hushdb.inspect(tmp_path / "table")
    assert (seen.facts, seen.seconds) == (built.facts, None)
    table = hushdb.open(tmp_path / "table")
    assert (table.facts["epoch"], table.facts["hint_bytes"]) == (built.epoch, built.download_bytes)
    assert "<th" in table._repr_html_()
    with pytest.raises(hushdb.InputError, match="no header.json"):
        hushdb.inspect(tmp_path)
    with pytest.raises(hushdb.OptionError, match="verify"):
        hushdb.inspect(tmp_path / "table", verify="some")


def test_several_files_are_one_table(tmp_path):
    folder = tmp_path / "rows"
    folder.mkdir()
    for i in range(2):
        polars.DataFrame({"k": [f"key {i}"], "v": [f"value {i}"]}).write_csv(folder / f"{i}.csv")
    with pytest.raises(hushdb.InputError, match='has 0.csv: as_="rows" takes'):
        hushdb.build(folder, out=tmp_path / "none", key="k")
    for data, options in ([folder / "1.csv", str(folder / "0.csv")], {}), (folder / "*.csv", {}), (folder, {"as_": "rows"}):
        hushdb.build(data, out=tmp_path / "table", key="k", force=True, protocol="simple", **options)
        assert hushdb.open(tmp_path / "table").get_many(["key 0", "key 1"]) == [b"value 0", b"value 1"]


@pytest.mark.parametrize("protocol", ["simple", "hybrid"])
def test_plans_and_tables_mean_the_same_by_the_memory_of_a_server(people, tmp_path, protocol):
    plan = polars.DataFrame(hushdb.plan(people, key="email", protocol=protocol, max_tiers=1))
    planned = plan.row(0, named=True)
    built = hushdb.build(people, out=tmp_path / "table", key="email", protocol=protocol, preset=planned["preset"],
                         columns=planned["columns"], max_tiers=1)
    # With so few keys, the balanced blocks have some slack.
    assert abs(built.server_bytes / planned["server_bytes"] - 1) < 0.15


def test_records_are_changed_and_deleted(updatable, people):
    path = updatable.path
    changed = hushdb.apply(path, polars.DataFrame({"email": ["user1@example.org", "new"], "name": ["One", "New"]}))
    assert changed.epoch != updatable.epoch and changed.changes["changes"] == 2
    deleted = hushdb.apply(path, delete=["user2@example.org"])
    assert deleted.changes["deleted"] == 1
    hushdb.apply(path, delete=polars.Series("email", ["user3@example.org"]))
    names = hushdb.open(path).get_many(["user1@example.org", "new", "user2@example.org", "user3@example.org", "user4@example.org"])
    assert names == [b"One", b"New", None, None, "Name 4, é".encode()]
    before = hushdb.inspect(path)
    kept = hushdb.apply(path, polars.DataFrame({"email": ["new"], "name": ["Newer"]}), keep_epochs=2)
    assert hushdb.open(path).get("new") == b"Newer"
    back = hushdb.rollback(path, before.epoch)
    assert hushdb.open(path).get("new") == b"New" and back.epoch != kept.epoch
    assert hushdb.rollback(path, kept.epoch).epoch == kept.epoch and hushdb.rollback(path, back.epoch[:12]).epoch == back.epoch
    folded = hushdb.compact(path, changes=7)
    assert (folded.changes["changes"], folded.changes["room"], folded.records) == (0, 7, 499)
    assert hushdb.open(path).get("new") == b"New"
    for wrong, kind, said in [
        (lambda: hushdb.apply(path), hushdb.InputError, "with delete"),
        (lambda: hushdb.apply(path, delete=["nobody"]), hushdb.InputError, "nobody"),
        (lambda: hushdb.apply(path, delete=[("a", "b")]), hushdb.OptionError, "1 columns"),
        (lambda: hushdb.apply(path.parent / "none", people), hushdb.InputError, "none"),
        (lambda: hushdb.compact(path, rooms=3), hushdb.OptionError, "rooms"),
        (lambda: hushdb.rollback(path, "zz"), hushdb.InputError, "is kept, or more than one"),
        (lambda: hushdb.push(path, "elsewhere"), hushdb.InputError, "s3://"),
    ]:
        with pytest.raises(kind, match=said):
            wrong()


def test_a_server_takes_up_what_is_put_in_place_of_a_table(updatable, people, caplog):
    path = updatable.path

    def comes(server, key, value):
        deadline = time.monotonic() + 20
        # Each look-up opens the table anew: a client of the epoch before is still answered by it for a while.
        while server.connect().table().get(key) != value:
            assert time.monotonic() < deadline
            time.sleep(0.05)

    with hushdb.serve(path, watch=True) as server:
        table = server.connect().table()
        assert table.get("new") is None
        hushdb.apply(path, polars.DataFrame({"email": ["new"], "name": ["New"]}))
        comes(server, "new", b"New")
        assert table.get("new") == b"New"
        # A new build replaces the table.
        hushdb.build(people.head(100), out=path, key="email", protocol="colpack", force=True)
        comes(server, "user200@example.org", None)
        assert table.get("user7@example.org") == "Name 7, é".encode()
        with caplog.at_level(logging.WARNING, "hushdb"):
            (path / "header.json").write_text("{}")
            deadline = time.monotonic() + 20
            while "is not taken up" not in caplog.text:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        assert table.get("user7@example.org") == "Name 7, é".encode()


def test_progress_has_stages_and_totals(people, tmp_path):
    told = []
    hushdb.build(people, out=tmp_path / "told", key="email", protocol="simple", on_progress=lambda *what: told.append(what))
    assert {unit for *_, unit in told} > {"note"} and all(stage for stage, *_ in told)
    stages = {}
    for stage, done, total, unit in told:
        if unit != "note":
            # A stage may be repeated, from its beginning.
            assert (done == 0 or done >= stages[stage][0]) and (total is None or done <= total)
            stages[stage] = (done, total)
    assert stages and any(done == total for done, total in stages.values()), stages

    class Bar:
        """A bar with the methods of tqdm that are used."""

        n, desc, total = 0, "", None

        def __init__(self):
            self.lines, self.shown = [], []

        def set_description(self, desc, refresh):
            self.desc = f"{desc}: "

        def reset(self):
            self.n = 0

        def update(self, more):
            self.n += more
            self.shown.append((self.desc, self.n, self.total))

        def refresh(self):
            pass

        def write(self, line):
            self.lines.append(line)

    bar = Bar()
    hushdb.build(people, out=tmp_path / "bar", key="email", protocol="simple", on_progress=bar)
    assert bar.lines and len({desc for desc, *_ in bar.shown}) > 2
    with pytest.raises(hushdb.WrongType, match="tqdm"):
        hushdb.build(people, out=tmp_path / "none", key="email", on_progress=7)


def test_errors_are_of_one_class_and_speak_python(people, tmp_path):
    twice = polars.concat([people, people])
    with pytest.raises(hushdb.HushError, match='on_duplicate="first" or on_duplicate="last", or .* on_duplicate="all"'):
        hushdb.build(twice, out=tmp_path / "x", key="email")
    hushdb.build(people, out=tmp_path / "x", key="email", protocol="frodo")
    with pytest.raises(hushdb.HushError, match="force=True"):
        hushdb.build(people, out=tmp_path / "x", key="email")
    with pytest.raises(hushdb.HushError, match="updatable=True"):
        hushdb.apply(tmp_path / "x", people)
    with pytest.raises(hushdb.HushError, match=r"LazyFrame has no rows yet: give it with \.collect\(\)"):
        hushdb.build(people.lazy(), out=tmp_path / "lazy", key="email")
    table = hushdb.open(tmp_path / "x")
    for wrong in (
        lambda: hushdb.build(7, out=tmp_path / "y"), lambda: hushdb.build(None, out=tmp_path / "y"),
        lambda: hushdb.build(people, out=tmp_path / "y", columns=object()), lambda: table.get_many("text"), lambda: table.get_many(7),
        lambda: table.lookup(people.lazy()), lambda: hushdb.plan(people.lazy(), key="email"),
    ):
        with pytest.raises(hushdb.HushError):
            wrong()


def test_the_package_has_the_program(people_table):
    for line in ([sys.executable, "-m", "hushdb"], [str(__import__("pathlib").Path(sys.executable).with_name("hushdb"))]):
        shown = subprocess.run([*line, "inspect", str(people_table)], capture_output=True, text=True)
        assert shown.returncode == 0 and "protocol" in shown.stdout, shown.stderr
        failed = subprocess.run([*line, "inspect", "/nowhere"], capture_output=True, text=True)
        assert failed.returncode == 2 and failed.stderr.startswith("error: ")
    version = subprocess.run([sys.executable, "-m", "hushdb", "--version"], capture_output=True, text=True)
    assert version.stdout.split() == ["hushdb", hushdb.__version__]
