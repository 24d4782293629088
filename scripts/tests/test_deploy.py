"""Checks that deploy/ agrees with the program: names of metrics and settings, times, versions. `make deploy-check` does the checks that
need tools."""

import json
import pathlib
import re
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm/hushdb"
METRICS = (ROOT / "crates/hush-server/src/metrics/list.rs").read_text()
SUFFIXES = {"Counter": ["_total"], "Gauge": [""], "Info": ["_info"], "Histogram": ["_bucket", "_sum", "_count"]}
# The metrics of other programs.
FOREIGN = {"up", "probe_ssl_earliest_cert_expiry", "container_memory_working_set_bytes"}
# The parts of a query that are not metrics, in the order of their removal: text (routes have braces), labels, ranges, groups, functions,
# operators.
BESIDE = [r'"[^"]*"', r"\{[^}]*\}", r"\[[^\]]*\]", r"\b(by|on|ignoring) *\([^)]*\)", r"\bgroup_left\b", r"\b[a-z_]+ *(?=\()", r"\b(and|or)\b"]


def metrics(query):
    """Returns the names of the metrics in a query of Prometheus."""
    for pattern in BESIDE:
        query = re.sub(pattern, " ", query)
    return set(re.findall(r"[a-z][a-z_]+", query))


def family(name):
    """Returns a name without the suffix that a histogram adds."""
    return re.sub(r"_(bucket|sum|count)$", "", name)


def registered():
    """Returns the exported names of all metrics: a counter has a suffix, and a histogram has three."""
    listed = re.findall(r'^    metric\("(\w+)", (\w+)', METRICS, re.M)
    return {f"{name}{suffix}" for name, kind in listed for suffix in SUFFIXES[kind]}


def drain_seconds():
    config = (ROOT / "crates/hush-server/src/config.rs").read_text()
    return int(re.search(r"drain_timeout: Duration::from_secs\((\d+)\)", config)[1])


def settings():
    """Returns the keys of docs/reference/hushdb.toml. A test of the program checks that the file is complete."""
    example = (ROOT / "docs/reference/hushdb.toml").read_text()
    return set(tomllib.loads("\n".join(re.findall(r"^#:(.*)", example, re.M))))


class Deploy(unittest.TestCase):
    def assert_exported(self, names, where):
        for name in names:
            self.assertTrue(name in registered() or family(name) in FOREIGN, f"{where}: nothing exports {name}")

    def test_metrics_of_the_dashboard(self):
        text = (DEPLOY / "grafana/hushdb.json").read_text()
        dashboard = json.loads(text)
        shown = set()
        for panel in dashboard["panels"]:
            for target in panel.get("targets", []):
                shown |= metrics(target["expr"])
        for variable in dashboard["templating"]["list"]:
            shown |= set(re.findall(r"label_values\((\w+)", variable.get("definition", "")))
        self.assert_exported(shown, "dashboard")
        self.assertLessEqual(set(map(family, registered())), set(map(family, shown)), "exported, and not shown")

    def test_metrics_of_the_alerts(self):
        text = (DEPLOY / "prometheus/alerts.yml").read_text()
        queries = re.findall(r"^        expr: (?:>-\n((?:          .*\n)+)|(.*))", text, re.M)
        self.assertEqual(len(queries), text.count("- alert:"))
        for query in queries:
            names = metrics("".join(query))
            self.assertTrue(names, query)
            self.assert_exported(names, "alerts")

    def test_a_server_that_stops_has_time_to_answer(self):
        unit = (DEPLOY / "systemd/hushdb.service").read_text()
        self.assertGreater(int(re.search(r"^TimeoutStopSec=(\d+)$", unit, re.M)[1]), drain_seconds())
        pod = (CHART / "templates/statefulset.yaml").read_text()
        grace = re.search(r'add \.Values\.drainSeconds \(index \.Values\.config "drain-timeout" \| default (\d+)\) \d+ ', pod)
        self.assertEqual(int(grace[1]), drain_seconds())

    def test_the_chart_knows_the_settings(self):
        schema = json.loads((CHART / "values.schema.json").read_text())
        made = set(schema["properties"]["config"]["propertyNames"]["not"]["enum"])
        self.assertLessEqual(made, settings())
        helpers = (CHART / "templates/_helpers.tpl").read_text()
        for key in made:
            self.assertIn(f'"{key}"', helpers)
        values = "".join(path.read_text() for path in [CHART / "values.yaml", *(CHART / "ci").glob("*.yaml")])
        given = re.findall(r"^config:\n((?:  .*\n)+)", values, re.M)
        for key in re.findall(r"^  (?:# )?([a-z-]+): ", "".join(given), re.M):
            self.assertIn(key, settings() - made)

    def test_versions(self):
        version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
        chart = (CHART / "Chart.yaml").read_text()
        self.assertIn(f"\nappVersion: {version}\n", chart)
        toolchain = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
        self.assertIn(f"FROM rust:{toolchain}-", (DEPLOY / "Containerfile").read_text())


if __name__ == "__main__":
    unittest.main()
