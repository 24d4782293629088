"""Tests of look-ups in tables of servers and in folders."""

import asyncio
import datetime
import ipaddress
import socket
import threading
import time

import polars
import pytest

import hushdb


def test_a_key_is_found_and_another_is_not(server):
    with server.connect() as client:
        assert {table.name for table in client.tables} == {"people", "curves"}
        table = client.table("people")
        assert table.get("user7@example.org") == "Name 7, é".encode()
        assert table.get(b"user8@example.org") == "Name 8, é".encode()
        assert table.get("nobody@example.org") is None
        assert table.get_many(["user1@example.org", "nobody", "user1@example.org"]) == [b"Name 1, \xc3\xa9", None, b"Name 1, \xc3\xa9"]
        assert table.get_many([]) == []
        assert (table.facts["protocol"], table.facts["records"], table.facts["by_key"]) == ("colpack", 500, True)
        assert table.facts["security_bits"] >= 128
        stats = table.stats
        assert stats["queries"] == 6 and stats["bytes_up"] >= 6 * stats["query_bytes"] > 0
        assert "500 records, colpack" in repr(table)


def test_an_empty_token_in_the_environment_is_none(server, monkeypatch):
    monkeypatch.setenv("HUSHDB_TOKEN", "")
    with hushdb.connect(server.url) as client:
        assert client.table("people").get("nobody@example.org") is None


def test_values_of_several_columns_are_dictionaries(server, curves):
    table = server.connect().table("curves")
    assert table.fields == ["rank", "regulator", "cm", "note", "points"]
    wanted = {name: value for name, value in curves.row(9, named=True).items() if name != "label"}
    assert table.get("9a1") == wanted


@pytest.mark.parametrize("protocol", ["colpack", "onion", "exppack-s", "simple"])
def test_a_folder_is_looked_up_without_a_server(people, tmp_path, protocol):
    table = tmp_path / "table"
    hushdb.build(people, out=table, key="email", protocol=protocol)
    local = hushdb.open(table)
    assert local.facts["protocol"] == protocol
    assert local.get_many(["user499@example.org", "nobody"]) == ["Name 499, é".encode(), None]
    assert (local.name, local.stats) == (None, None)


def test_rows_of_sorted_tables_are_found(tmp_path):
    words = polars.DataFrame({"word": [f"w{i:04}" for i in range(2000)], "n": range(2000)})
    hushdb.build(words, out=tmp_path / "words", key="word", sorted="bytes")
    networks = polars.DataFrame({"net": ["10.0.0.0/8", "10.1.0.0/16"], "who": ["a", "b"], "n": [1, None]})
    hushdb.build(networks, out=tmp_path / "networks", range="net", sorted="ip")
    numbers = polars.DataFrame({"from": [0, 10], "to": [5, 19], "who": ["a", "b"]})
    hushdb.build(numbers, out=tmp_path / "numbers", range=["from", "to"], sorted="number")
    with hushdb.serve(tmp_path / "words", tmp_path / "networks", tmp_path / "numbers") as served, served.connect() as client:
        for table in (client.table("words"), hushdb.open(tmp_path / "words")):
            assert table.facts["records"] == 2000 and table.facts["by_key"]
            assert table.get("w0100") == b"100" and table.get("w") is None
            assert table.get("w01005", rows="at-or-below") == {"word": "w0100", "n": 100}
            assert table.get_many(["a", "x"], rows="at-or-above") == [{"word": "w0000", "n": 0}, None]
            assert table.get("w010", rows="prefix") == {"rows": [{"word": f"w010{i}", "n": 100 + i} for i in range(10)], "more": False}
            with pytest.raises(hushdb.OptionError, match="no ranges"):
                table.get("w", rows="in-range")
            with pytest.raises(hushdb.OptionError, match="expected one of"):
                table.get("w", rows="near")
        table = client.table("networks")
        assert table.get(ipaddress.ip_address("10.1.2.3")) == {"who": "b", "n": None}
        assert asyncio.run(table.get_async("10.1.2.3", rows="in-range")) == {"net": "10.1.0.0/16", "who": "b", "n": None}
        assert client.table("numbers").get_many([5, 6, 19]) == [b"a", None, b"b"]
        with pytest.raises(hushdb.OptionError, match="give an IP address"):
            table.get("10.1")


def test_queries_are_prepared(people, tmp_path):
    hushdb.build(people, out=tmp_path / "simple", key="email", protocol="simple")
    hushdb.build(people, out=tmp_path / "colpack", key="email", protocol="colpack")
    assert hushdb.open(tmp_path / "simple").prepare(3) == 0
    with hushdb.serve(tmp_path / "simple", tmp_path / "colpack") as served:
        table = served.connect().table("simple")
        assert asyncio.run(table.prepare_async(3)) == 3
        with pytest.raises(hushdb.OptionError, match="at least 0"):
            table.prepare(-1)
        assert table.get_many(["user7@example.org", "nobody"]) == ["Name 7, é".encode(), None]
        assert table.stats["prepared"] == 1 and table.stats["seconds"]["prepare"] > 0
        with pytest.raises(hushdb.OptionError, match="queries of colpack cannot be prepared"):
            served.connect().table("colpack").prepare(1)


def test_positions_and_keys_of_several_columns(people, tmp_path):
    hushdb.build(people, out=tmp_path / "rows", value="name", protocol="frodo")
    rows = hushdb.open(tmp_path / "rows")
    assert rows.get(3) == "Name 3, é".encode()
    with pytest.raises(hushdb.OptionError, match="500"):
        rows.get(500)
    with pytest.raises(hushdb.OptionError):
        rows.get("a key")
    hushdb.build(people, out=tmp_path / "both", key=["email", "name"], value="name", protocol="frodo")
    assert hushdb.open(tmp_path / "both").get(("user3@example.org", "Name 3, é")) == "Name 3, é".encode()
    for wrong in (1.5, None, ["a"]):
        with pytest.raises(hushdb.OptionError, match="a position is a whole number"):
            rows.get(wrong)


def test_it_can_be_awaited_and_leaves_other_threads_free(server):
    async def look_up():
        async with await hushdb.connect_async(server.url) as client:
            table = await client.table_async("people")
            one, many = await asyncio.gather(table.get_async("user1@example.org"), table.get_many_async(["nobody", "user2@example.org"]))
            return one, many

    assert asyncio.run(look_up()) == ("Name 1, é".encode(), [None, "Name 2, é".encode()])
    # A server that accepts a connection and never answers blocks this call and no other.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        ended = []
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"

        def ask():
            with pytest.raises(TimeoutError) as raised:
                hushdb.connect(url, timeout=2)
            ended.append(raised.type)

        asking = threading.Thread(target=ask)
        asking.start()
        began, turns = time.monotonic(), 0
        while asking.is_alive() and time.monotonic() - began < 1:
            turns += 1
        assert turns > 10_000
        asking.join()
    assert ended == [hushdb.TimedOut]


def test_errors_have_classes_and_say_what_to_do(server, people_table, tmp_path):
    with pytest.raises(hushdb.ConnectionFailed, match="is the server running"):
        hushdb.connect("http://127.0.0.1:1")
    with pytest.raises(ConnectionError):
        hushdb.connect("http://127.0.0.1:1")
    with pytest.raises(hushdb.OptionError, match="give one such as"):
        hushdb.connect("not a url")
    with pytest.raises(hushdb.OptionError, match="seconds above 0"):
        hushdb.connect(server.url, timeout=0)
    with pytest.raises(hushdb.OptionError, match="client_cert and client_key"):
        hushdb.connect(server.url, client_cert="x")
    with pytest.raises(hushdb.OptionError, match="cannot read"):
        hushdb.connect(server.url, ca_cert=tmp_path / "none.pem")
    with pytest.raises(hushdb.OptionError, match="it has a space"):
        hushdb.connect(server.url, token="two words")
    client = server.connect()
    with pytest.raises(hushdb.NoSuchTable, match="it has") as raised:
        client.table("nothing")
    assert isinstance(raised.value, LookupError) and isinstance(raised.value, hushdb.HushError)
    with pytest.raises(hushdb.NoSuchTable):
        client.table()
    with pytest.raises(hushdb.Untrusted) as raised:
        server.connect(epoch="00" * 32).table("people")
    assert raised.value.code == "other_epoch"
    with pytest.raises(hushdb.InputError, match="no header.json"):
        hushdb.open(tmp_path)
    with pytest.raises(hushdb.OptionError, match="name the folders"):
        hushdb.serve()
    for name in ("..", "a/b", ".x", "a" * 65):
        with pytest.raises(hushdb.OptionError, match="is not a name"):
            hushdb.serve(tables={name: people_table})
    with pytest.raises(hushdb.OptionError, match=r"max_queries cannot be '257': 257 is not in 1..=256"):
        hushdb.serve(people_table, max_queries=257)
    client.close()
    with pytest.raises(hushdb.OptionError, match="closed"):
        client.table("people")
    with hushdb.serve(people_table) as other:
        table = other.connect().table()
    with pytest.raises(hushdb.ConnectionFailed):
        table.get("user1@example.org")


def test_progress_is_told(people, tmp_path):
    hushdb.build(people, out=tmp_path / "hints", key="email", protocol="simple")
    told = []
    with hushdb.serve(tmp_path / "hints") as hints:
        table = hints.connect(on_progress=lambda *what: told.append(what)).table()
        assert table.get("user0@example.org") == "Name 0, é".encode()
    assert {(stage, unit) for stage, _, _, unit in told} == {("hint", "bytes")}
    assert told[0][1] == 0 and told[-1][1] == told[-1][2] == told[0][2] > 0


def test_keys_have_the_normal_form_of_the_table(tmp_path):
    frame = polars.DataFrame({"k": [" Zoe\u0308", "BOB"], "v": ["1", "2"]})
    built = hushdb.build(frame, out=tmp_path / "table", key="k", normalize=["lower", "nfc", "trim"], protocol="simple")
    assert built.facts["schema"]["normalize"] == ["trim", "lower", "nfc"]
    table = hushdb.open(tmp_path / "table")
    assert table.get_many(["ZO\u00cb", "bob ", "zoe"]) == [b"1", b"2", None]
    found = table.lookup(polars.Series("k", ["Bob", "zo\u00eb"]))
    assert found["k"].to_list() == ["Bob", "zo\u00eb"] and found["v"].to_list() == ["2", "1"]
    # The normal form of a time has a T.
    timed = frame.with_columns(at=datetime.datetime(2024, 2, 29, 12))
    hushdb.build(timed, out=tmp_path / "timed", key=["k", "at"], normalize="lower", protocol="simple")
    assert hushdb.open(tmp_path / "timed").get(("Bob", datetime.datetime(2024, 2, 29, 12))) == b"2"
    with pytest.raises(hushdb.OptionError, match="expected some of: lower, nfc, trim"):
        hushdb.build(frame, out=tmp_path / "none", key="k", normalize="rot13")
