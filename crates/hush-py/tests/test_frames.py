"""Tests of data frames as inputs and results."""

import os

import duckdb
import pandas
import polars
import pyarrow
import pytest

import hushdb


def frames(frame):
    """Returns the rows of `frame` as a frame of each library."""
    table = frame.to_arrow()
    return {
        "polars": frame, "pandas": frame.to_pandas(), "pyarrow": table, "reader": pyarrow.RecordBatchReader.from_batches(
            table.schema, table.to_batches(max_chunksize=64)), "duckdb": duckdb.sql("SELECT * FROM frame"),
    }


@pytest.mark.parametrize("library", ["polars", "pandas", "pyarrow", "reader", "duckdb"])
def test_tables_are_built_of_frames(curves, tmp_path, library):
    frame = curves.drop("points") if library == "pandas" else curves
    hushdb.build(frames(frame)[library], out=tmp_path / "table", key="label", protocol="frodo")
    table = hushdb.open(tmp_path / "table")
    for row in (0, 8, 499):
        wanted = {name: value for name, value in frame.row(row, named=True).items() if name != "label"}
        assert table.get(f"{row}a1") == wanted


def test_tables_of_frames_and_of_files_are_the_same(people, tmp_path):
    people.write_csv(tmp_path / "people.csv")
    hushdb.build(tmp_path / "people.csv", out=tmp_path / "file", key="email", protocol="frodo")
    hushdb.build(people, out=tmp_path / "frame", key="email", protocol="frodo")
    keys = people["email"].to_list()
    assert hushdb.open(tmp_path / "file").get_many(keys) == hushdb.open(tmp_path / "frame").get_many(keys)


def test_a_frame_comes_back_in_its_own_library(server, people):
    table = server.connect().table("people")
    wanted = polars.Series("who", ["user3@example.org", "nobody", None, "user4@example.org"])
    for keys, frame in [
        (wanted, polars.DataFrame), (wanted.to_pandas(), pandas.DataFrame), (wanted.to_arrow(), pyarrow.Table),
        (wanted.to_frame(), polars.DataFrame), (pyarrow.chunked_array([wanted.to_arrow()[:2], wanted.to_arrow()[2:]]), pyarrow.Table),
    ]:
        found = table.lookup(keys)
        assert isinstance(found, frame)
        found = polars.DataFrame(found)
        assert found.columns[1] == "name" and found.columns[0] in ("who", "email")
        assert found["name"].to_list() == ["Name 3, é", None, None, "Name 4, é"]
        assert found[found.columns[0]].to_list() == wanted.to_list()
    assert table.lookup(wanted, text=False)["name"].to_list()[0] == "Name 3, é".encode()
    assert table.stats["queries"] == 6 * 3


def test_columns_have_types(server, curves):
    table = server.connect().table("curves")
    labels = curves["label"].sample(40, seed=7)
    found = table.lookup(labels)
    assert found.schema["rank"] == polars.Int64 and found.schema["regulator"] == polars.Float64
    assert found.schema["cm"] == polars.Boolean and found.schema["note"] == polars.String
    expected = labels.to_frame().join(curves, on="label", how="left", maintain_order="left")
    assert found.equals(expected)
    nothing = table.lookup(polars.Series("label", ["no", "none"]))
    assert nothing.shape == (2, 6) and nothing["rank"].null_count() == 2
    assert table.lookup(polars.Series("label", [], dtype=polars.String)).shape == (0, 6)


def test_positions_come_from_whole_numbers(people, tmp_path):
    hushdb.build(people, out=tmp_path / "rows", value="name", protocol="frodo")
    table = hushdb.open(tmp_path / "rows")
    for kind in (polars.Int64, polars.UInt32, polars.Int8):
        assert table.lookup(polars.Series("row", [5, None, 0], dtype=kind))["name"].to_list() == ["Name 5, é", None, "Name 0, é"]


def test_what_is_no_frame_is_refused(server, people, tmp_path):
    table = server.connect().table("people")
    with pytest.raises(hushdb.OptionError, match="get_many"):
        table.lookup(["user1@example.org"])
    with pytest.raises(hushdb.OptionError, match="__arrow_c_stream__"):
        table.lookup(7)
    with pytest.raises(hushdb.OptionError, match="cast the column first"):
        table.lookup(polars.Series("key", [1.5]))
    with pytest.raises(hushdb.OptionError, match="__arrow_c_stream__"):
        hushdb.build(7, out=tmp_path / "x", key="k")


@pytest.mark.skipif(os.environ.get("FEATURES") == "emulator", reason="the library of tests has these sets")
def test_sets_without_security_are_refused(people, tmp_path):
    with pytest.raises(hushdb.OptionError, match="has no security"):
        hushdb.build(people, out=tmp_path / "table", key="email", preset="INSECURE_RING_N256")


def test_builds_say_what_is_wrong(people, tmp_path):
    out = tmp_path / "table"
    for options, kind, said in [
        ({"key": "mail"}, hushdb.InputError, "mail"),
        ({"key": "email", "protocol": "fast"}, hushdb.OptionError, "unknown protocol 'fast'"),
        ({"key": "email", "colums": 7}, hushdb.OptionError, "colums"),
    ]:
        with pytest.raises(kind, match=said):
            hushdb.build(people, out=out, **options)
        assert not out.exists()
    hushdb.build(people, out=out, key="email", protocol="frodo")
    with pytest.raises(hushdb.InputError, match="exists already"):
        hushdb.build(people, out=out, key="email", protocol="frodo")
    twice = polars.concat([people, people])
    with pytest.raises(hushdb.InputError, match="user0@example.org"):
        hushdb.build(twice, out=tmp_path / "twice", key="email", protocol="frodo")
    hushdb.build(twice, out=tmp_path / "twice", key="email", protocol="frodo", on_duplicate="last")
    reader = pyarrow.RecordBatchReader.from_batches(people.to_arrow().schema, people.to_arrow().to_batches())
    hushdb.build(reader, out=tmp_path / "read", key="email", protocol="frodo")
    with pytest.raises(hushdb.HushError):
        hushdb.build(reader, out=tmp_path / "again", key="email", protocol="frodo")
