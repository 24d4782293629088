"""Checks the Helm chart. Rendered for every file of values in its folder ci/, each object is valid in Kubernetes, and a server accepts each
hushdb.toml."""

import json
import pathlib
import subprocess
import tempfile

import kubernetes_validate
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy/helm/hushdb"
KUBERNETES = ("1.30.0", "1.36.0")
# Kinds of extensions of Kubernetes, which have no schema here.
FOREIGN = {"ServiceMonitor"}
# Whole files of values that the chart must refuse, and words of the message.
LEAST = {"tables": {"volume": {"emptyDir": {}}, "folders": ["people"]}}
REFUSED = [
    ({}, "tables.folders: name the folders"),
    ({"tables": {"folders": ["people"]}}, "tables.volume: say which volume"),
    (LEAST, "who may ask?"),
    ({**LEAST, "config": {"open": True}, "tokens": {"secret": "tokens"}}, "choose one"),
    ({**LEAST, "config": {"open": True}, "tls": {"clientCa": "ca.crt"}}, "set tls.secret"),
    ({**LEAST, "config": {"open": True, "compact-at": 80}}, "set tables.writable"),
    ({**LEAST, "config": {"open": True, "listen": "0.0.0.0:1"}}, "listen"),
    ({**LEAST, "config": {"open": True}, "replica": 2}, "replica"),
    ({"tables": {**LEAST["tables"], "writable": True}, "config": {"open": True}, "replicas": 2}, "must not share a volume"),
]


def check(helm: pathlib.Path, hushdb: pathlib.Path) -> tuple[str, list[str]]:
    """Checks the chart. Returns a summary, and the faults."""
    wrong, count = [], 0
    with tempfile.TemporaryDirectory(prefix="hushdb-chart-") as scratch:
        machine = Machine(pathlib.Path(scratch), hushdb)
        for values in sorted((CHART / "ci").glob("*.yaml")):
            for version in KUBERNETES:
                lint = run(helm, "lint", "--strict", "--quiet", "--kube-version", version, CHART, "--values", values)
                rendered = run(helm, "template", "test", CHART, "--kube-version", version, "--values", values)
                wrong += [f"{values.name}: {done.stderr.strip()}" for done in (lint, rendered) if done.returncode]
                objects = [thing for thing in yaml.safe_load_all(rendered.stdout) if thing]
                count += len(objects)
                wrong += [f"{values.name}: {problem}" for thing in objects for problem in invalid(thing, version)]
            settings = [thing["data"]["hushdb.toml"] for thing in objects if thing["kind"] == "ConfigMap"]
            wrong += [f"{values.name}: {problem}" for text in settings for problem in machine.refuses(text)]
        for values, words in REFUSED:
            refused = run(helm, "template", "test", CHART, "--kube-version", KUBERNETES[0], "--values", "-", input=json.dumps(values))
            if refused.returncode == 0 or words not in refused.stderr:
                wrong.append(f"chart: {values} should be refused with '{words}': {refused.stderr.strip() or 'it is not'}")
    return f"chart: {count} objects of Kubernetes {' and '.join(KUBERNETES)}, {len(REFUSED)} refusals", wrong


def invalid(thing: dict, version: str) -> list[str]:
    if thing["kind"] in FOREIGN:
        return []
    try:
        kubernetes_validate.validate(thing, version, strict=True)
    except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as error:
        return [f"{thing['kind']} {thing['metadata']['name']}: {error}"]
    return []


class Machine:
    """A folder with the files of a pod: tables, a certificate, tokens."""

    def __init__(self, folder: pathlib.Path, hushdb: pathlib.Path):
        self.folder, self.hushdb = folder, hushdb
        for name in ("tables", "state", "tls", "tokens"):
            (folder / name).mkdir()
        records = folder / "people.csv"
        records.write_text("key,value\n" + "".join(f"k{number},v{number}\n" for number in range(100)))
        for name in ("people", "domains"):
            self.made(hushdb, "build", records, "--key", "key", "--out", folder / "tables" / name, "--protocol", "frodo")
        cert = ("-subj", "/CN=localhost", "-keyout", folder / "tls/tls.key", "-out", folder / "tls/tls.crt")
        self.made("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1", *cert)
        (folder / "tls/ca.crt").write_bytes((folder / "tls/tls.crt").read_bytes())
        self.made(hushdb, "token", "create", "--tokens", folder / "tokens/tokens.json", "--name", "test")
        (folder / "tokens/tokens").write_bytes((folder / "tokens/tokens.json").read_bytes())

    def made(self, *command: object) -> None:
        result = run(*command)
        if result.returncode:
            raise SystemExit(f"deploy: {command[1]}: {result.stderr.strip()}")

    def refuses(self, text: str) -> list[str]:
        """Returns the objections of `hushdb config check` to settings of a pod."""
        file = self.folder / "hushdb.toml"
        file.write_text(text.replace("/var/lib/hushdb/", f"{self.folder}/").replace("/etc/hushdb/", f"{self.folder}/"))
        result = run(self.hushdb, "config", "check", file)
        return [result.stderr.strip()] if result.returncode else []


def run(*command: object, input: str | None = None) -> subprocess.CompletedProcess:
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, input=input)
