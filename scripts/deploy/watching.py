"""Checks the dashboard and the alerts: every query is valid in Prometheus. scripts/tests checks that their metrics exist."""

import json
import pathlib

import promql_parser
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
ALERTS = ROOT / "deploy/prometheus/alerts.yml"
DASHBOARD = ROOT / "deploy/grafana/hushdb.json"
SAID = {"severity"}, {"summary", "action"}


def check() -> tuple[str, list[str]]:
    """Checks all queries. Returns a summary, and the faults."""
    wrong, queries = [], []
    for rule in (rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]):
        queries.append((rule["alert"], rule["expr"]))
        if (rule["labels"].keys(), rule["annotations"].keys()) != SAID:
            wrong.append(f"{rule['alert']}: an alert has a severity, a summary, and an action")
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        queries += [(panel["title"], target["expr"].replace("$__rate_interval", "5m")) for target in panel.get("targets", [])]
    for name, query in queries:
        try:
            promql_parser.parse(query)
        except ValueError as error:
            wrong.append(f"{name}: {error}")
    return f"dashboard and alerts: {len(queries)} queries", wrong
