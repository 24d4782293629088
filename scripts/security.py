#!/usr/bin/env python3
"""Estimates the security of every parameter set, as the code defines it, with the lattice-estimator.

    git clone https://github.com/malb/lattice-estimator && git -C lattice-estimator checkout 27a581bb
    make build && python3 scripts/security.py --estimator lattice-estimator

Needs Sage (Debian: `apt install sagemath`). The sets are those that `hushdb presets --json` lists; a process estimates a lattice
problem with one attack after the other. Writes the figures of docs/explanation/notes/security-estimates.md, and fails if a set claims more than was found,
or has less than 128 bits and does not say so in its name. With --check nothing is written: it fails if the tables of a page differ
from what was found. All of it takes a core about an hour; with --results a run goes on where the last one stopped.
"""

import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/explanation/notes/security-estimates.md"
PINNED = "27a581bb8e9d49f5e9e2db315bd48ac769d5f5f5"
ATTACKS = ["usvp", "bdd", "bdd_hybrid", "dual", "dual_hybrid", "arora_gb"]
# Other cost models for the primal attacks.
MODELS = ["core_svp", "core_svp_quantum", "quantum"]
# Attacks on many queries under one matrix, which is reduced once. EXTRA: the bits by which the reduction may cost more than an attack on
# one query. TARGETS: log2 of the number of queries for which the total cost is minimal.
EXTRA, TARGETS = (4, 8, 12), (20, 40)
MANY = [f"after_{bits}" for bits in EXTRA] + [f"targets_{targets}" for targets in TARGETS]
UNUSUAL = ["bdd_mitm_hybrid", "coded_bkw"]  # slow, and far more costly than the others: only on request
ROUNDING = 0.05  # claims have one digit behind the point


def estimate(problem: dict, names: list[str], estimator: str) -> None:
    """Prints a line of JSON with the cost of each of these attacks on a problem. Runs in Sage."""
    sys.path.insert(0, estimator)
    from estimator import LWE, ND
    from estimator.gb import arora_gb
    from estimator.lwe_bkw import coded_bkw
    from estimator.lwe_dual import dual, matzov
    from estimator.lwe_guess import guess_composition
    from estimator.lwe_primal import PrimalHybrid, primal_bdd, primal_hybrid, primal_usvp
    from estimator.reduction import ADPS16, MATZOV, RC
    from sage.all import log, oo

    def distribution(of: dict):
        kinds = {
            "binary": lambda: ND.Uniform(0, 1),
            "ternary": lambda: ND.UniformMod(3),
            "gaussian": lambda: ND.DiscreteGaussian(of["std"]),
        }
        return kinds[of["distribution"]]()

    dual_model = {"red_cost_model": RC.MATZOV}
    model = {**dual_model, "red_shape_model": "gsa"}

    def reduced(lwe):
        """Yields, for each block size, the cost of reducing the matrix, and the cost of a query after it: one sieve and one lift."""
        lwe = lwe.normalize()
        for beta in range(primal_bdd(lwe, **model)["beta"] - 20, 1000):
            of = PrimalHybrid.beta_params(beta=beta, params=lwe, **model)
            if "bkz_cost" in of and "svp_cost" in of:
                yield of["bkz_cost"]["rop"], of["svp_cost"]["rop"] / of["babai_probability"]
                if of["eta"] <= 2:
                    return

    def after(extra):
        """Returns the cost of a query if the reduction of the matrix may cost 2^extra times an attack on one query."""

        def cost(lwe):
            most = primal_bdd(lwe, **model)["rop"] * 2**extra
            return {"rop": min(query for reduction, query in reduced(lwe) if reduction <= most)}

        return cost

    def together(targets):
        """Returns the least cost of the reduction of the matrix and 2^targets queries."""
        return lambda lwe: {"rop": min(reduction + 2**targets * query for reduction, query in reduced(lwe))}

    def primal(cost_model):
        return lambda lwe: min(
            (attack(lwe, red_cost_model=cost_model, red_shape_model="gsa") for attack in (primal_usvp, primal_bdd)),
            key=lambda cost: cost["rop"],
        )

    attacks = {
        "core_svp": lambda lwe: primal_usvp(lwe, red_cost_model=ADPS16("classical"), red_shape_model="gsa"),
        "core_svp_quantum": lambda lwe: primal_usvp(lwe, red_cost_model=ADPS16("quantum"), red_shape_model="gsa"),
        "quantum": primal(MATZOV("quantum")),
        **{f"after_{bits}": after(bits) for bits in EXTRA},
        **{f"targets_{targets}": together(targets) for targets in TARGETS},
        "usvp": lambda lwe: primal_usvp(lwe, **model),
        "bdd": lambda lwe: primal_bdd(lwe, **model),
        "bdd_hybrid": lambda lwe: primal_hybrid(lwe, mitm=False, babai=False, **model),
        "bdd_mitm_hybrid": lambda lwe: primal_hybrid(lwe, mitm=True, babai=True, **model),
        "dual": lambda lwe: dual(lwe, **dual_model),
        "dual_hybrid": lambda lwe: matzov(lwe, **dual_model),
        "arora_gb": lambda lwe: guess_composition(arora_gb)(lwe.updated(m=problem["max_samples"])),
        "coded_bkw": coded_bkw,
    }
    lwe = LWE.Parameters(
        n=problem["n"], q=int(problem["q"]), Xs=distribution(problem["secret"]), Xe=distribution(problem["error"])
    )
    for name in names:
        cost = attacks[name](lwe)
        bits = float(log(cost["rop"], 2)) if cost["rop"] < oo else None
        print(json.dumps({"attack": name, "bits": bits, "cost": repr(cost)}), flush=True)


def applies(attack: str, problem: dict) -> bool:
    """Returns whether an attack applies to a problem. Arora-GB needs bounded errors; only problems with such errors limit samples."""
    return attack != "arora_gb" or problem["max_samples"]


def key(problem: dict) -> str:
    """Returns the values on which the estimate depends, as text. The ring structure is left out: no known attack uses it."""
    return json.dumps([problem[name] for name in ("n", "q", "secret", "error", "max_samples")])


class Estimate(typing.NamedTuple):
    """A problem, its number on the page, and the bits of every attack on it."""

    number: int
    problem: dict
    bits: dict


def problems_of(presets: list[dict]) -> dict:
    """Returns the distinct problems of all presets, by key."""
    return {key(problem): problem for preset in presets for problem in preset["problems"]}


class Estimator:
    """A runner of the estimator that keeps results in a file, so that an interrupted run can resume."""

    def __init__(self, folder: str, commit: str, python: list[str], attacks: list[str], results: pathlib.Path | None):
        self.folder, self.commit, self.python, self.attacks, self.results = folder, commit, python, attacks, results
        self.known = {}
        if results and results.exists():
            for line in map(json.loads, results.read_text().splitlines()):
                if line["commit"] == commit:
                    self.known.setdefault(line["problem"], {})[line["attack"]] = line["bits"]

    def estimates(self, problem: dict) -> dict:
        """Returns the bits of every attack on a problem. A separate process estimates the attacks that the file does not have."""
        wanted = [attack for attack in self.attacks if applies(attack, problem)]
        found = dict(self.known.get(key(problem), {}))
        missing = [attack for attack in wanted if attack not in found]
        if missing:
            command = [*self.python, __file__, "--estimator", self.folder, "--attacks", ",".join(missing)]
            environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
            process = subprocess.Popen(
                [*command, "--problem", json.dumps(problem)], stdout=subprocess.PIPE, text=True, env=environment
            )
            for line in process.stdout:
                if line.startswith("{"):
                    result = json.loads(line)
                    found[result["attack"]] = result["bits"]
                    self.keep(problem, result)
            if process.wait() or not set(missing) <= set(found):
                sys.exit(f"the estimator failed for {describe(problem)}")
        return {attack: found[attack] for attack in wanted}

    def keep(self, problem: dict, result: dict) -> None:
        print(f"{describe(problem)}: {result['attack']}: {result['cost']}", file=sys.stderr, flush=True)
        if self.results:
            with self.results.open("a") as file:
                file.write(json.dumps({"commit": self.commit, "problem": key(problem), **result}) + "\n")


def describe(problem: dict) -> str:
    error, secret = spread(problem["error"]), spread(problem["secret"])
    return f"n = {problem['n']}, log2 q = {problem['log2_q']:.1f}, {error} error, {secret} secret"


def spread(of: dict) -> str:
    return f"gaussian {of['std']:g}" if of["distribution"] == "gaussian" else of["distribution"]


def least(found: dict) -> tuple[float, str]:
    """Returns the bits and the name of the cheapest attack on a single query, in classical operations."""
    known = [attack for attack in found if attack in (*ATTACKS, *UNUSUAL)]
    return min((found[attack], attack) for attack in known if found[attack] is not None)


def judge(preset: dict, bits: float, least_bits: float) -> list[str]:
    """Returns the faults in the claim and the name of a preset, which has `bits` bits by the estimate."""
    name, claim, wrong = preset["name"], preset["security_bits"], []
    if claim > bits + ROUNDING:
        wrong.append(f"{name} claims {claim:.1f} bits and has {bits:.1f}")
    if min(bits, claim) < least_bits and f"_SEC{math.floor(claim)}" not in name:
        wrong.append(f"{name} has {min(bits, claim):.1f} bits and does not say so")
    return wrong


def table(rows: list[list[str]]) -> str:
    head, *body = rows
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *body])


def page(presets: list[dict], found: dict, attacks: list[str], versions: str) -> str:
    def problems() -> list[list[str]]:
        names = [attack for attack in attacks if attack in (*ATTACKS, *UNUSUAL)]
        rows = [["problem", "n", "log2 q", "error", "secret", *(attack.replace("_", " ") for attack in names), "least"]]
        for number, of, bits in found.values():
            shape = [f"{number}", f"{of['n']}", f"{of['log2_q']:.2f}", spread(of["error"]), spread(of["secret"])]
            cells = ["-" if bits.get(attack) is None else f"{bits[attack]:.1f}" for attack in names]
            rows.append([*shape, *cells, f"**{least(bits)[0]:.1f}**"])
        return rows

    def claims() -> list[list[str]]:
        rows = [["set", "claims", "has", "by", "its problems"]]
        for preset in presets:
            bits, attack = weakest(preset, found)
            own = ", ".join(f"{found[key(problem)].number} ({problem['kind']})" for problem in preset["problems"])
            rows.append([f"`{preset['name']}`", f"{preset['security_bits']:.1f}", f"{bits:.1f}", attack.replace("_", " "), own])
        return rows

    def models() -> list[list[str]]:
        rows = [["problem", "least", "core-SVP", "quantum core-SVP", "quantum circuit"]]
        return rows + [[f"{number}", *cells(bits, least(bits)[0], MODELS)] for number, _, bits in found.values()]

    def many() -> list[list[str]]:
        head = ["problem", "a query", *(f"after 2^{bits} times that" for bits in EXTRA), *(f"2^{of} queries" for of in TARGETS)]
        return [head, *([f"{number}", *cells(bits, bits["bdd"], MANY)] for number, _, bits in found.values())]

    def cells(bits: dict, first: float, names: list[str]) -> list[str]:
        return [f"{of:.1f}" for of in (first, *(bits[name] for name in names))]

    if not {*MODELS, *MANY} <= set(attacks):
        return "\n\n".join(map(table, (claims(), problems())))
    core_svp = [min(found[key(problem)].bits["core_svp"] for problem in preset["problems"]) for preset in presets]
    lower = [weakest(preset, found)[0] - bits for preset, bits in zip(presets, core_svp)]
    text, tables = PAGE.read_text(), iter((claims(), problems(), models(), many()))
    text = re.sub(r"(?:^\|.*\n)+", lambda _: table(next(tables)) + "\n", text, flags=re.MULTILINE)
    text = re.sub(r"by the .*?\. Cost model", f"by the {versions}. Cost model", text)
    return re.sub(r"that is .*? bits less", f"that is {min(lower):.1f} to {max(lower):.1f} bits less", text)


def weakest(preset: dict, found: dict) -> tuple[float, str]:
    return min(least(found[key(problem)].bits) for problem in preset["problems"])


def output(*command: str | pathlib.Path) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def sage() -> list[str]:
    """Returns the command that runs Sage's Python."""
    found = shutil.which("sage")
    if not found:
        sys.exit("Sage is not installed: `apt install sagemath` on Debian, or https://www.sagemath.org")
    return [found, "-python"]


def estimator_version(estimator: pathlib.Path) -> str:
    if not (estimator / "estimator/lwe.py").is_file():
        sys.exit(f"{estimator} is no lattice-estimator: git clone https://github.com/malb/lattice-estimator")
    commit = output("git", "-C", estimator, "rev-parse", "HEAD")
    if commit != PINNED:
        print(f"the page is of commit {PINNED[:8]}; this is {commit[:8]}", file=sys.stderr)
    changed = output("git", "-C", estimator, "status", "--porcelain", "--untracked-files=no")
    return commit[:8] + (" (with changes)" if changed else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--estimator", required=True, type=pathlib.Path, help="a checkout of the lattice-estimator")
    parser.add_argument("--hushdb", default=ROOT / "target/release/hushdb", type=pathlib.Path, help="the binary")
    parser.add_argument("--preset", help="estimate this one, and write nothing")
    parser.add_argument("--check", type=pathlib.Path, metavar="FILE", help="compare with the tables of a page, and write nothing")
    parser.add_argument("--jobs", default=os.cpu_count(), type=int, help="problems at a time")
    parser.add_argument("--attacks", default=",".join(ATTACKS + MODELS + MANY), help=f"these alone, and write nothing; also {', '.join(UNUSUAL)}")
    parser.add_argument("--results", type=pathlib.Path, metavar="FILE", help="keep results there, and estimate nothing that it has")
    parser.add_argument("--problem", help=argparse.SUPPRESS)
    args = parser.parse_args()
    estimator = str(args.estimator.resolve())
    attacks = args.attacks.split(",")
    if unknown := set(attacks) - {*ATTACKS, *UNUSUAL, *MODELS, *MANY}:
        parser.error(f"no such attack: {', '.join(sorted(unknown))}")
    if args.problem:
        return estimate(json.loads(args.problem), attacks, estimator)

    commit, python = estimator_version(args.estimator), sage()
    if not args.hushdb.is_file():
        sys.exit(f"{args.hushdb} is not there: `make build`, or name another with --hushdb")
    document = json.loads(output(args.hushdb, "presets", "--json"))
    secure = [preset for preset in document["presets"] if not preset["name"].startswith("INSECURE")]
    presets = [preset for preset in secure if args.preset in (None, preset["name"])]
    if not presets:
        sys.exit(f"there is no set {args.preset} that claims anything: see `hushdb presets`")
    numbers = {known: number for number, known in enumerate(problems_of(secure), start=1)}
    problems = problems_of(presets)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        bits = pool.map(Estimator(estimator, commit, python, attacks, args.results).estimates, problems.values())
        found = {known: Estimate(numbers[known], *of) for known, *of in zip(problems, problems.values(), bits)}

    version = output(*python, "-c", "import sage.version; print(sage.version.version)")
    text = page(presets, found, attacks, f"lattice-estimator, commit {commit}, with Sage {version}")
    print("\n\n".join(block for block in text.split("\n\n") if block.startswith("|")))
    least_bits = document["min_security_bits"]
    wrong = [line for preset in presets for line in judge(preset, weakest(preset, found)[0], least_bits)]
    if args.check:
        def rows(of: str) -> list[str]:
            return [line for line in of.splitlines() if line.startswith("|")]

        if not set(rows(text)) <= set(rows(args.check.read_text())):
            wrong.append(f"{args.check} has other figures")
    elif not args.preset and attacks == ATTACKS + MODELS + MANY:
        PAGE.write_text(text)
    sys.exit("\n".join(wrong) or 0)


if __name__ == "__main__":
    main()
