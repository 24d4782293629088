"""Tests of `hushdb.plan`."""

import json

import polars
import pytest

import hushdb

# To measure this machine takes a minute of what is compiled for tests.
MACHINE = {"version": 1, "name": "a machine", "level": "portable", "threads": 2, "times": {"floors": {
    "bytes": 1e10, "multiply_adds": 1e11, "products": 1e9, "butterflies": 1e9}}}


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    path = tmp_path_factory.mktemp("machine") / "machine.json"
    path.write_text(json.dumps(MACHINE))
    return path


@pytest.fixture(scope="module")
def plan(machine):
    return hushdb.plan(records=100_000, size=200, key=True, machine=machine)


def test_a_plan_is_a_frame(plan):
    frame = polars.DataFrame(plan)
    assert frame["chosen"].sum() == 1 and frame["protocol"][0] in ("colpack", "colpack-s", "simple", "frodo")
    assert (frame["security_bits"] >= 128).all() and ((frame["server_bytes"] > 100_000 * 200) | (frame["protocol"] == "download")).all()
    assert len(polars.DataFrame(plan.all())) > len(frame)
    assert "hushdb build .. --protocol" in str(plan)
    assert plan._repr_html_().count("<tr>") == len(frame) + 1


def test_a_plan_is_drawn(plan, tmp_path):
    assert plan.plot()._repr_svg_().lstrip().startswith("<svg")
    plan.plot(tmp_path / "plan.png")
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(hushdb.OptionError, match="svg"):
        plan.plot(tmp_path / "plan.gif")


def test_a_frame_is_planned_for(people, machine):
    goals = hushdb.plan(people, key="email", protocol="colpack", max_tiers=1, machine=machine)
    assert set(polars.DataFrame(goals)["protocol"]) == {"colpack"}
    with pytest.raises(hushdb.OptionError, match="goal"):
        hushdb.plan(records=10, size=10, goal="speed")
    with pytest.raises(hushdb.OptionError, match="required"):
        hushdb.plan()
