"""From a data frame to private look-ups, as in a notebook."""

import pathlib
import tempfile

import polars

import hushdb

# %% Records
people = polars.DataFrame({
    "email": [f"user{i}@example.org" for i in range(10_000)],
    "city": [("Oslo", "Lima", "Accra", "Hanoi")[i % 4] for i in range(10_000)],
    "visits": [i % 97 for i in range(10_000)],
})

# %% Which table?
plan = hushdb.plan(people, key="email")
print(polars.DataFrame(plan).select("chosen", "protocol", "bytes_up", "bytes_down", "server_bytes", "seconds").head())

with tempfile.TemporaryDirectory() as folder:
    # %% A table
    table = pathlib.Path(folder) / "people"
    hushdb.build(people, out=table, key="email")

    # %% A server in this process, and a client of it
    with hushdb.serve(table) as server, server.connect() as client:
        found = client.table().lookup(people["email"].sample(5, seed=1))
        print(found)
        assert found["city"].null_count() == 0
        print(client.table().get("nobody@example.org"))
