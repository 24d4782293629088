"""Judges what is in deploy/, with the tools of those who run it: `make deploy-check`. Takes the program and helm."""

import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "scripts"))

import pins

REQUIREMENTS = ROOT / "scripts/deploy/requirements.txt"


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("hushdb", type=pathlib.Path)
    arguments.add_argument("helm", type=pathlib.Path)
    options = arguments.parse_args()
    try:
        name = f"deploy-{sys.implementation.cache_tag}"  # wheels are for one Python
        tools = pins.cached(name, REQUIREMENTS.read_bytes(), fetch)
    except pins.PipError as error:
        print(f"deploy: {error}", file=sys.stderr)
        return 1
    sys.path.insert(0, str(tools))
    import chart, image, kuberay, unit, watching  # noqa: E401: their packages are importable only now

    wrong = []
    for check in (
        lambda: chart.check(options.helm.resolve(), options.hushdb.resolve()),
        kuberay.check,
        lambda: image.check(tools / "bin/hadolint"),
        unit.check,
        watching.check,
    ):
        said, problems = check()
        print(f"deploy: {said}", flush=True)
        wrong += problems
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    return bool(wrong)


def fetch(folder: pathlib.Path) -> None:
    print("deploy: fetching schemas of Kubernetes and linters (about 20 MiB, once)", flush=True)
    pins.pip("install", REQUIREMENTS, "--target", folder / "tree")


if __name__ == "__main__":
    sys.exit(main())
