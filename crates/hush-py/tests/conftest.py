"""Tables and folders that tests share."""

import polars
import pytest

import hushdb

COUNT = 500


@pytest.fixture(autouse=True, scope="session")
def own_folders(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("HUSHDB_TOKEN", raising=False)
        # Clusters of tests start on a disk that is 95 % full too, which Ray takes for broken by default.
        patch.setenv("RAY_local_fs_capacity_threshold", "0.995")
        yield


@pytest.fixture(scope="session")
def people():
    """Returns records with a key and values of one column."""
    return polars.DataFrame({"email": [f"user{i}@example.org" for i in range(COUNT)], "name": [f"Name {i}, é" for i in range(COUNT)]})


@pytest.fixture(scope="session")
def curves():
    """Returns records with values of several columns, of several types."""
    return polars.DataFrame({
        "label": [f"{i}a1" for i in range(COUNT)], "rank": [i % 4 for i in range(COUNT)], "regulator": [i / 8 for i in range(COUNT)],
        "cm": [i % 2 == 0 for i in range(COUNT)], "note": [None if i % 3 else f"note {i}" for i in range(COUNT)],
        "points": [[i, -i] for i in range(COUNT)],
    })


def built(frame, folder, **options):
    hushdb.build(frame, out=folder, **options)
    return folder


@pytest.fixture(scope="session")
def people_table(people, tmp_path_factory):
    return built(people, tmp_path_factory.mktemp("tables") / "people", key="email", protocol="colpack")


@pytest.fixture(scope="session")
def curves_table(curves, tmp_path_factory):
    return built(curves, tmp_path_factory.mktemp("tables") / "curves", key="label", protocol="frodo")


@pytest.fixture(scope="session")
def server(people_table, curves_table):
    with hushdb.serve(people_table, tables={"curves": curves_table}) as server:
        yield server
