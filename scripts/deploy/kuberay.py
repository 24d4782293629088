"""Checks KubeRay's manifest: its objects and the pods of its groups are valid in Kubernetes, and the pods have no needless rights.
KubeRay's own kinds have no schema here."""

import pathlib
import re

import yaml
from chart import KUBERNETES, invalid

FILE = pathlib.Path(__file__).resolve().parents[2] / "deploy/kuberay/hushdb.yaml"
BY_DIGEST = re.compile(r"\S+@sha256:[0-9a-f]{64}")


def check() -> tuple[str, list[str]]:
    """Checks the manifest. Returns a summary, and the faults."""
    objects = list(yaml.safe_load_all(FILE.read_text()))
    [cluster] = [thing for thing in objects if thing["kind"] == "RayCluster"]
    groups = {"head": cluster["spec"]["headGroupSpec"]}
    groups |= {group["groupName"]: group for group in cluster["spec"]["workerGroupSpecs"]}
    pods = {name: pod(name, group["template"]) for name, group in groups.items()}
    others = [thing for thing in objects if thing is not cluster]
    wrong = [problem for thing in [*others, *pods.values()] for version in KUBERNETES for problem in invalid(thing, version)]
    for name, thing in pods.items():
        wrong += [f"{name}: {problem}" for problem in problems(thing["spec"])]
        if not any(selects(policy, thing) for policy in others if policy["kind"] == "NetworkPolicy"):
            wrong.append(f"{name}: no NetworkPolicy is for it")
    servers = groups["servers"]
    if servers["replicas"] < 2 or "readinessProbe" not in pods["servers"]["spec"]["containers"][0]:
        wrong.append("servers: one that is not ready is to leave another one that answers")
    return f"KubeRay: {len(others)} objects, pods of {', '.join(pods)}", [f"{FILE.name}: {problem}" for problem in wrong]


def pod(name: str, template: dict) -> dict:
    """Returns the pod that KubeRay makes from a group's template."""
    metadata = {**template["metadata"], "name": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def problems(spec: dict) -> list[str]:
    """Returns the needless rights of a pod, as texts."""
    said = [] if spec.get("securityContext", {}).get("runAsNonRoot") else ["it may run as root"]
    for container in spec["containers"]:
        if container.get("securityContext", {}).get("capabilities") != {"drop": ["ALL"]}:
            said.append(f"{container['name']} has capabilities")
        if not BY_DIGEST.fullmatch(container["image"]):
            said.append(f"{container['image']} is no image by its digest")
    return said


def selects(policy: dict, thing: dict) -> bool:
    return policy["spec"]["podSelector"]["matchLabels"].items() <= thing["metadata"]["labels"].items()
