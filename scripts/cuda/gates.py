"""Judges compiled kernels by crates/hush-cuda/kernels/gates.toml, whose head defines the rules."""

import fnmatch
import itertools
import pathlib

try:
    import tomllib
except ModuleNotFoundError:  # before Python 3.11
    from pip._vendor import tomli as tomllib

import reports

LIMITS = ("registers", "spills", "stack", "local", "shared")
LISTS = ("present", "absent", "order")
TARGETS = ("sm_90a", "sm_80", "sm_100", "sm_120")
UNITS = {
    "registers": "registers",
    "spills": "bytes spilled",
    "stack": "bytes of stack",
    "local": "accesses of local memory",
    "shared": "bytes of shared memory",
}
LOCAL = ("LDL", "STL")  # spills, or arrays indexed at run time


def load(path: pathlib.Path) -> dict[str, dict]:
    """Returns the rules: pattern of kernel names -> rule.

    Raises ValueError for an invalid rule.
    """
    rules = tomllib.loads(path.read_text())
    for pattern, rule in rules.items():
        if not isinstance(rule, dict):
            raise ValueError(f"{path.name}: {pattern} is not a table")
        for part in (rule, *(rule.get(target, {}) for target in TARGETS)):
            if unknown := part.keys() - {*LIMITS, *LISTS, *TARGETS}:
                raise ValueError(f"{path.name}: {pattern}: unknown {', '.join(sorted(unknown))}")
            for opcode in (opcode for opcodes in part.get("order", []) for opcode in opcodes):
                if opcode.split(".")[0] not in reports.ORDERED:
                    raise ValueError(f"{path.name}: {pattern}: reports have no order of {opcode}")
    return rules


def rule_of(rules: dict[str, dict], kernel: str, target: str) -> dict:
    """Returns the limits of a kernel: later rules replace limits and add to lists; rules for a target replace those for all."""
    rule: dict = {name: [] for name in LISTS}
    matching = [part for pattern, part in rules.items() if fnmatch.fnmatchcase(kernel, pattern)]
    for part in matching + [part.get(target, {}) for part in matching]:
        rule |= {limit: part[limit] for limit in LIMITS if limit in part}
        for name in LISTS:
            rule[name] = rule[name] + part.get(name, [])
    return rule


def has(opcodes: dict[str, int], wanted: str) -> list[str]:
    """Returns the opcodes that match `wanted`."""
    return [opcode for opcode in opcodes if names(wanted, opcode)]


def count(opcodes: dict[str, int], *wanted: str) -> int:
    """Returns the number of instructions whose opcodes match any of `wanted`."""
    return sum(opcodes[opcode] for name in wanted for opcode in has(opcodes, name))


def names(wanted: str, opcode: str) -> bool:
    """Returns whether an opcode has the wanted mnemonic, and all wanted modifiers in any order. LDG.128 matches LDG.E.128.CONSTANT."""
    mnemonic, *modifiers = wanted.split(".")
    found, *others = opcode.split(".")
    return found == mnemonic and set(modifiers) <= set(others)


def follow(order: list[str], wanted: list[str]) -> bool:
    """Returns whether the wanted opcodes follow one another somewhere in `order`: each one or more times, with no other wanted opcode
    between."""
    named = [next((name for name in wanted if names(name, opcode)), None) for opcode in order]
    steps = [name for name, _ in itertools.groupby(name for name in named if name)]
    return any(steps[at : at + len(wanted)] == wanted for at in range(len(steps)))


def judge_kernel(kernel: dict, rule: dict) -> list[str]:
    """Returns the faults of one kernel, given its report."""
    figures = kernel | {"local": count(kernel.get("opcodes", {}), *LOCAL)}
    wrong = [
        f"{figures[limit]} {UNITS[limit]}, at most {rule[limit]}"
        for limit in LIMITS
        if limit in rule and figures[limit] > rule[limit]
    ]
    if "opcodes" in kernel:
        counts = kernel["opcodes"]
        wrong += [f"no {wanted}" for wanted in rule["present"] if not has(counts, wanted)]
        for unwanted in rule["absent"]:
            if there := count(counts, unwanted):
                wrong.append(f"{there} of {unwanted}, which must be absent")
        wrong += [f"not in this order: {', '.join(wanted)}" for wanted in rule["order"] if not follow(kernel["order"], wanted)]
    return wrong


def judge(modules: dict[str, dict[str, dict]], rules: dict[str, dict]) -> list[str]:
    """Returns the faults of all kernels: modules is name -> target -> report."""
    wrong, owners = [], {}
    for module, targets in modules.items():
        for target, report in targets.items():
            for name, kernel in report["kernels"].items():
                if owners.setdefault(name, module) != module:
                    wrong.append(f"{module}.cu: {name}: a kernel of {owners[name]}.cu has the same name")
                if target in TARGETS:
                    figures = judge_kernel(kernel, rule_of(rules, name, target))
                    wrong += [f"{module}.cu: {name}: {target}: {figure}" for figure in figures]
    unused = [pattern for pattern in rules if not fnmatch.filter(owners, pattern) and pattern != "*"]
    return wrong + [f"gates.toml: no kernel is called {pattern}" for pattern in unused]
