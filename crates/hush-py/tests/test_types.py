"""Tests that look-ups return the columns and types of the built records, even if nothing is found."""

import datetime
import decimal
import json
import random
import uuid

import duckdb
import pandas
import polars
import pyarrow
import pytest

import hushdb

ROWS = 60
BERLIN = "Europe/Berlin"


def day(rng):
    return datetime.date(1, 1, 1) + datetime.timedelta(days=rng.randrange(3_600_000))


def moment(rng, unit):
    """Returns a random time between the years 1800 and 2200, in units of 1 / `unit` seconds since 1970."""
    return rng.randrange(-5_000_000_000, 7_000_000_000) * unit + rng.randrange(unit)


def clock(rng, unit):
    return rng.randrange(86_400 * unit)


def text(rng):
    return "".join(rng.choice('aé"\\\n\t,ß漢 0') for _ in range(rng.randrange(9)))


def raw(rng):
    return bytes(rng.choice([0, 31, 255, 65]) for _ in range(rng.randrange(5)))


def real(rng):
    return rng.choice([0.1, 1e300, -1e-300, float("inf"), float("-inf"), 5e-324, rng.random(), rng.gauss(0, 1e6), 1.0])


def number(low, high):
    return lambda rng: rng.choice([low, high, 0, rng.randint(low, high)])


def money(digits, places):
    return lambda rng: decimal.Decimal(rng.randint(-(10**digits) + 1, 10**digits - 1)).scaleb(-places, decimal.Context(prec=100))


# Every Arrow type of docs/reference/input-formats.md, with a function that makes a value of the type.
ARROW = {
    "bool": (pyarrow.bool_(), lambda rng: rng.random() < 0.5),
    **{f"int{bits}": (getattr(pyarrow, f"int{bits}")(), number(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (getattr(pyarrow, f"uint{bits}")(), number(0, 2**bits - 1)) for bits in (8, 16, 32, 64)},
    "float16": (pyarrow.float16(), lambda rng: rng.choice([0.5, -2.25, 65504.0, 6e-8, 0.3333])),
    "float32": (pyarrow.float32(), lambda rng: rng.choice([0.1, 3.4e38, -1.5, float("inf")])),
    "float64": (pyarrow.float64(), real),
    "decimal32": (pyarrow.decimal32(9, 2), money(9, 2)),
    "decimal64": (pyarrow.decimal64(18, 18), money(18, 18)),
    "decimal128": (pyarrow.decimal128(38, 2), money(38, 2)),
    "decimal256": (pyarrow.decimal256(76, 40), money(76, 40)),
    "string": (pyarrow.string(), text),
    "large_string": (pyarrow.large_string(), text),
    "string_view": (pyarrow.string_view(), text),
    "binary": (pyarrow.binary(), raw),
    "large_binary": (pyarrow.large_binary(), raw),
    "binary_view": (pyarrow.binary_view(), raw),
    "fixed_size_binary": (pyarrow.binary(3), lambda rng: bytes(rng.choice([0, 255, 31]) for _ in range(3))),
    "date32": (pyarrow.date32(), day),
    "date64": (pyarrow.date64(), day),
    "time32[s]": (pyarrow.time32("s"), lambda rng: clock(rng, 1)),
    "time32[ms]": (pyarrow.time32("ms"), lambda rng: clock(rng, 10**3)),
    "time64[us]": (pyarrow.time64("us"), lambda rng: clock(rng, 10**6)),
    "time64[ns]": (pyarrow.time64("ns"), lambda rng: clock(rng, 10**9)),
    "timestamp[s]": (pyarrow.timestamp("s"), lambda rng: moment(rng, 1)),
    "timestamp[ms]": (pyarrow.timestamp("ms"), lambda rng: moment(rng, 10**3)),
    "timestamp[us]": (pyarrow.timestamp("us"), lambda rng: moment(rng, 10**6)),
    "timestamp[ns,UTC]": (pyarrow.timestamp("ns", "UTC"), lambda rng: moment(rng, 10**9)),
    "timestamp[us,Berlin]": (pyarrow.timestamp("us", BERLIN), lambda rng: moment(rng, 10**6)),
    "uuid": (pyarrow.uuid(), lambda rng: uuid.UUID(int=rng.getrandbits(128)).bytes),
    "dictionary": (pyarrow.dictionary(pyarrow.int8(), pyarrow.string()), lambda rng: rng.choice(["", "a", "é"])),
    "list": (pyarrow.list_(pyarrow.decimal128(20, 3)), lambda rng: [money(20, 3)(rng), None]),
    "large_list": (pyarrow.large_list(pyarrow.binary()), lambda rng: [raw(rng) for _ in range(rng.randrange(3))]),
    "fixed_size_list": (pyarrow.list_(pyarrow.float64(), 2), lambda rng: [real(rng), real(rng)]),
    "list of structs": (
        pyarrow.list_(pyarrow.struct({"at": pyarrow.timestamp("us", "UTC"), "n": pyarrow.uint64()})),
        lambda rng: [{"at": datetime.datetime(2024, 2, 29, tzinfo=datetime.timezone.utc), "n": 2**64 - 1}, None],
    ),
    "map": (pyarrow.map_(pyarrow.int32(), pyarrow.string()), lambda rng: [(1, text(rng)), (-7, None)]),
    "null": (pyarrow.null(), lambda rng: None),
}


def column(own, make, rng, *, nulls=True):
    values = [None if nulls and rng.random() < 0.2 else make(rng) for _ in range(ROWS)]
    if pyarrow.types.is_dictionary(own):
        return pyarrow.array(values, own.value_type).dictionary_encode().cast(own)
    if own == pyarrow.uuid():
        return pyarrow.ExtensionArray.from_storage(own, pyarrow.array(values, pyarrow.binary(16)))
    return pyarrow.array(values, own)


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """Returns records of all types, and the table that is built from them."""
    rng = random.Random(5)
    columns = {"key": pyarrow.array([f"k{i}" for i in range(ROWS)]), **{name: column(*case, rng) for name, case in ARROW.items()}}
    table, folder = pyarrow.table(columns), tmp_path_factory.mktemp("types") / "all"
    hushdb.build(table, out=folder, key="key", protocol="frodo")
    return table, hushdb.open(folder)


def same(found, expected):
    """Compares two tables by value: dictionaries may number their values differently."""
    assert found.schema.names == expected.schema.names
    for name in expected.schema.names:
        assert found.schema.field(name).type == expected.schema.field(name).type, name
        assert str(found[name].to_pylist()) == str(expected[name].to_pylist()), name


def test_all_types_come_back_whatever_is_found(everything):
    table, looked_up = everything
    same(looked_up.lookup(table["key"]), table)
    some = pyarrow.chunked_array([["k3", "none"], ["k1"]])
    found = looked_up.lookup(some)
    assert [field.type for field in found.schema][1:] == [field.type for field in table.schema][1:]
    for name in found.schema.names[1:]:
        expected = table[name].to_pylist()
        assert str(found[name].to_pylist()) == str([expected[3], None, expected[1]]), name
    nothing = looked_up.lookup(pyarrow.array(["none"]))
    assert nothing.schema == found.schema
    assert looked_up.lookup(pyarrow.array([], pyarrow.string())).schema == found.schema


@pytest.mark.parametrize("name", [name for name in ARROW if name not in ("null",)])
def test_a_single_column_keeps_its_name_and_its_type(name, tmp_path):
    own, make = ARROW[name]
    rng = random.Random(name)
    table = pyarrow.table({"key": pyarrow.array(range(ROWS), pyarrow.int32()), name: column(own, make, rng)})
    hushdb.build(table, out=tmp_path / "table", key="key", protocol="frodo")
    looked_up = hushdb.open(tmp_path / "table")
    same(looked_up.lookup(table["key"]), table)
    assert looked_up.lookup(pyarrow.array([-1], pyarrow.int64()))[name].to_pylist() == [None]


KEYS = [name for name in ARROW if name not in ("null", "list", "large_list", "fixed_size_list", "list of structs", "map")]


@pytest.mark.parametrize("name", KEYS)
def test_keys_of_every_type_are_found(name, tmp_path):
    own, make = ARROW[name]
    keys = column(own, make, random.Random(name), nulls=False)
    table = pyarrow.table({"id": keys, "row": pyarrow.array(range(ROWS), pyarrow.uint8())})
    hushdb.build(table, out=tmp_path / "table", key="id", protocol="frodo", on_duplicate="last")
    looked_up = hushdb.open(tmp_path / "table")
    last = {str(key): row for row, key in enumerate(keys.to_pylist())}
    found = looked_up.lookup(table.select(["id"]))
    assert found.schema == table.schema
    assert found["row"].to_pylist() == [last[str(key)] for key in keys.to_pylist()]
    if "[ns" not in name and name != "dictionary":
        # Values of Python's own types are valid keys too.
        asked = keys.to_pylist()[:5]
        assert [got == str(last[str(key)]).encode() for got, key in zip(looked_up.get_many(asked), asked)] == [True] * 5


def test_get_gives_values_of_python(everything):
    table, looked_up = everything
    unlike = {"time64[ns]", "timestamp[ns,UTC]", "map"}  # the first two are text, because Python has no nanoseconds; a map is a dictionary
    for row in range(0, ROWS, 7):
        got = looked_up.get(f"k{row}")
        for name in table.schema.names[1:]:
            expected = table[name][row].as_py()
            if name == "date64" and expected is not None:
                expected = expected if not isinstance(expected, datetime.datetime) else expected.date()
            if name not in unlike:
                assert got[name] == expected, (name, got[name], expected)


def frames():
    """Returns a frame of each library, with the types that the library has."""
    rng = random.Random(3)
    count = range(ROWS)
    data = {
        "id": pyarrow.array(count, pyarrow.int64()), "u64": column(*ARROW["uint64"], rng), "money": column(*ARROW["decimal128"], rng),
        "day": column(*ARROW["date32"], rng), "at": column(*ARROW["timestamp[us]"], rng), "zoned": column(*ARROW["timestamp[us,Berlin]"], rng),
        "raw": column(*ARROW["binary"], rng), "x": column(*ARROW["float64"], rng), "n": column(*ARROW["int16"], rng),
        "yes": column(*ARROW["bool"], rng), "name": column(*ARROW["string"], rng),
    }
    table = pyarrow.table(data)
    frame = polars.DataFrame(table).with_columns(
        clock=polars.Series([datetime.time(1, 2, 3, i) for i in count]), kind=polars.Series(["a", "b"] * (ROWS // 2), dtype=polars.Categorical),
        tags=polars.Series([[i, None] for i in count], dtype=polars.List(polars.UInt8)))
    panda = table.to_pandas(types_mapper={pyarrow.int16(): pandas.Int16Dtype(), pyarrow.uint64(): pandas.UInt64Dtype(),
                                          pyarrow.bool_(): pandas.BooleanDtype()}.get)
    panda["kind"] = pandas.Categorical(["a", "b"] * (ROWS // 2))
    relation = duckdb.sql("SELECT *, (id * 2)::HUGEINT AS big, TIME '12:00:00' AS clock, id::VARCHAR::BLOB AS bytes FROM \"table\"")
    return {"polars": frame, "pandas": panda, "pyarrow": table, "duckdb": relation}


def test_polars_comes_back(tmp_path):
    frame = frames()["polars"]
    hushdb.build(frame, out=tmp_path / "table", key="id", protocol="frodo")
    table = hushdb.open(tmp_path / "table")
    found = table.lookup(frame["id"])
    assert found.schema == frame.schema and found.equals(frame)
    assert table.lookup(frame["id"].head(1)).schema == frame.schema
    assert table.lookup(polars.Series("id", [-1])).schema == frame.schema
    assert frame.join(table.lookup(frame["id"]), on="id").height == ROWS
    # Keys as text, in another order, filtered, or of another width: the result joins with the keys.
    for keys in (frame["id"].cast(polars.String), frame["id"].reverse(), frame.filter(polars.col("id") > 50)["id"], frame["id"].cast(polars.UInt8)):
        found = table.lookup(keys)
        assert found["money"].null_count() <= frame["money"].null_count() and found.width == frame.width
        back = keys.to_frame() if keys.dtype != polars.String else frame.select("id")
        assert back.join(found, on="id").height == len(keys)


def test_pandas_comes_back(tmp_path):
    frame = frames()["pandas"]
    hushdb.build(frame, out=tmp_path / "table", key="id", protocol="frodo")
    table = hushdb.open(tmp_path / "table")
    found = table.lookup(frame["id"])
    pandas.testing.assert_frame_equal(found, frame)
    some = frame[frame["id"] % 7 == 3]  # its index has gaps
    pandas.testing.assert_frame_equal(table.lookup(some["id"]), some, check_categorical=False)
    missing = table.lookup(pandas.Series([-1, 5], name="id"))
    # A categorical column has only the categories that were found.
    assert dict(missing.drop(columns="kind").dtypes) == dict(frame.drop(columns="kind").dtypes) and missing["u64"].isna()[0]
    assert len(frame.merge(table.lookup(some["id"]), on="id")) == len(some)


def test_an_index_of_pandas_is_no_key(tmp_path):
    frame = pandas.DataFrame({"email": [f"u{i}" for i in range(20)], "n": range(20)})
    filtered = frame[frame["n"] % 3 == 0]
    hushdb.build(filtered, out=tmp_path / "filtered", key="email", protocol="frodo")
    table = hushdb.open(tmp_path / "filtered")
    assert table.lookup(filtered["email"])["n"].to_list() == filtered["n"].to_list()
    assert list(table.lookup(filtered[["email"]]).columns) == ["email", "n"]
    named = filtered.set_index("email")
    hushdb.build(named, out=tmp_path / "named", key="email", protocol="frodo")
    again = hushdb.open(tmp_path / "named")
    assert again.lookup(named.index)["n"].to_list() == filtered["n"].to_list()
    # Tables of pyarrow may be made from pandas, with an index.
    made = pyarrow.Table.from_pandas(filtered, preserve_index=True)
    assert "__index_level_0__" in made.column_names
    hushdb.build(made, out=tmp_path / "made", key="email", protocol="frodo")
    assert hushdb.open(tmp_path / "made").lookup(made.select(["email", "__index_level_0__"])).column_names == ["email", "n"]
    hushdb.build(made, out=tmp_path / "index", key="__index_level_0__", protocol="frodo")
    assert hushdb.open(tmp_path / "index").get(3)["n"] == 3


def test_duckdb_comes_back(tmp_path):
    relation = frames()["duckdb"]
    expected = relation.to_arrow_table()
    hushdb.build(relation, out=tmp_path / "table", key="id", protocol="frodo")
    table = hushdb.open(tmp_path / "table")
    found = table.lookup(duckdb.sql("SELECT id FROM expected"))
    same(found, expected)
    joined = duckdb.sql("SELECT count(*) FROM expected JOIN found USING (id) WHERE expected.money IS NOT DISTINCT FROM found.money")
    assert joined.fetchall() == [(ROWS,)]


def test_null_is_not_the_empty_text(tmp_path):
    for own, empty, other in ((pyarrow.string(), "", "x"), (pyarrow.binary(), b"", b"\xff")):
        table = pyarrow.table({"k": ["a", "b", "c"], "v": pyarrow.array([None, empty, other], own)})
        folder = tmp_path / str(own)
        hushdb.build(table, out=folder, key="k", protocol="frodo")
        looked_up = hushdb.open(folder)
        same(looked_up.lookup(table["k"]), table)
        assert looked_up.get("a") == b"" and looked_up.get("b") == b""


def test_keys_of_the_wrong_columns_are_errors(people, tmp_path):
    hushdb.build(people, out=tmp_path / "one", key="email", protocol="frodo")
    hushdb.build(people, out=tmp_path / "two", key=["email", "name"], value="name", protocol="frodo")
    one, two = hushdb.open(tmp_path / "one"), hushdb.open(tmp_path / "two")
    first = tuple(people.row(1))
    assert two.get(first) == first[1].encode()
    for table, key in [(one, first), (one, "\x1f".join(first)), (two, first[0]), (two, (*first, "more")), (one, 7), (one, None), (two, (first[0], 7))]:
        with pytest.raises(hushdb.OptionError, match=r"the table's key is email \("):
            table.get(key)
        with pytest.raises(hushdb.OptionError):
            table.get_many([first[0] if table is one else first, key])
    for table, frame in [(one, people), (two, people.select("email")), (two, people.rename({"email": "mail"})), (one, people.select(polars.lit(1.5)))]:
        with pytest.raises(hushdb.OptionError, match="email"):
            table.lookup(frame)
    # Columns of keys are matched by name, in any order.
    assert two.lookup(people.select("name", "email").head(3))["name_found"].to_list() == people["name"].head(3).to_list()


def test_integers_are_keys_and_text_is_read(tmp_path):
    frame = polars.DataFrame({"id": [3039154, -7], "pop": [1052, 8022]})
    hushdb.build(frame, out=tmp_path / "table", key="id", protocol="frodo")
    table = hushdb.open(tmp_path / "table")
    assert table.get(3039154) == b"1052" and table.get("-07") == b"8022" and table.get(10**30) is None
    with pytest.raises(hushdb.OptionError, match="int64"):
        table.get("El Tarter")
    with pytest.raises(hushdb.OptionError, match="float was given"):
        table.get(1.0)


def test_columns_of_files_have_types(tmp_path):
    rows = [{"id": 1, "x": 1.5, "big": 2**63, "name": "", "any": [1]}, {"id": -2, "x": 2, "big": 1, "name": None, "any": "text"}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    hushdb.build(tmp_path / "rows.jsonl", out=tmp_path / "json", key="id", protocol="frodo")
    table = hushdb.open(tmp_path / "json")
    found = table.lookup(polars.Series("id", [1, -2]))
    assert found.schema == {"id": polars.Int64, "x": polars.Float64, "big": polars.UInt64, "name": polars.String, "any": polars.String}
    assert found["name"].to_list() == ["", None] and found["any"].to_list() == ["[1]", "text"]
    assert table.get_many([1, -2]) == [{name: value for name, value in row.items() if name != "id"} for row in rows]
    (tmp_path / "rows.csv").write_text("id,x\n1,1.50\n")
    hushdb.build(tmp_path / "rows.csv", out=tmp_path / "csv", key="id", protocol="frodo")
    assert hushdb.open(tmp_path / "csv").lookup(polars.Series("id", ["1"])).to_dicts() == [{"id": "1", "x": "1.50"}]


@pytest.mark.parametrize("own", [pyarrow.list_(pyarrow.int8(), 1 << 22), pyarrow.binary(1 << 22)], ids=str)
def test_nulls_of_large_fields_are_refused(tmp_path, own):
    """Checks the refusal of huge nulls: a server names the size of a field, and Arrow allocates all of it for a null."""
    frame = pyarrow.table({"key": list("abcde"), "value": pyarrow.nulls(5, own), "other": [1] * 5})
    hushdb.build(frame, out=tmp_path / "table", key="key")
    table = hushdb.open(tmp_path / "table")
    assert table.lookup(pyarrow.array(["a", "b"]))["value"].null_count == 2
    with pytest.raises(hushdb.HushError, match="look fewer keys up"):
        table.lookup(frame["key"])
