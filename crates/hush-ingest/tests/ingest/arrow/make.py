"""Makes the vectors of this folder, with writers that are not this program's: pyarrow 26.0.1 and polars 2.1.0."""

import datetime

import polars as pl
import pyarrow as pa

utc = datetime.timezone.utc
k, n, x, c = ["a", "b", "é"], [1, None, 3], [0.5, None, 1e21], ["red", "blue", "red"]
d = [datetime.date(2024, 2, 29), None, datetime.date(1969, 12, 31)]
t = [datetime.datetime(2024, 2, 29, 12, 0, 0, 250000, utc), None, datetime.datetime(1970, 1, 1, tzinfo=utc)]
l = [[1, 2], None, []]

words, times = pa.array(c).dictionary_encode(), pa.array(t, pa.timestamp("us", "Europe/Berlin"))
table = pa.table({"k": k, "n": n, "x": x, "c": words, "d": d, "t": times, "l": pa.array(l, pa.list_(pa.int32()))})
with pa.ipc.new_stream("pyarrow.arrows", table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
    writer.write_table(table, max_chunksize=2)

words, times = pl.Series(c, dtype=pl.Categorical), pl.Series(t, dtype=pl.Datetime("us", "UTC"))
pl.DataFrame({"k": k, "n": n, "x": x, "c": words, "d": d, "t": times, "l": l}).write_ipc("polars.arrow", compression="zstd")
