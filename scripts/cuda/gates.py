"""Judges compiled kernels by crates/hush-cuda/kernels/gates.toml, whose head says what a rule may hold."""

import fnmatch
import pathlib

try:
    import tomllib
except ModuleNotFoundError:  # before Python 3.11
    from pip._vendor import tomli as tomllib

LIMITS = ("registers", "spills", "stack", "shared")
LISTS = ("present", "absent")
TARGETS = ("sm_90a", "sm_80")
UNITS = {"registers": "registers", "spills": "bytes spilled", "stack": "bytes of stack", "shared": "bytes of shared memory"}


def load(path: pathlib.Path) -> dict[str, dict]:
    """The rules: pattern of kernel names -> rule.

    Raises ValueError for a rule that is not one.
    """
    rules = tomllib.loads(path.read_text())
    for pattern, rule in rules.items():
        if not isinstance(rule, dict):
            raise ValueError(f"{path.name}: {pattern} is not a table")
        for part in (rule, *(rule.get(target, {}) for target in TARGETS)):
            if unknown := part.keys() - {*LIMITS, *LISTS, *TARGETS}:
                raise ValueError(f"{path.name}: {pattern}: unknown {', '.join(sorted(unknown))}")
    return rules


def rule_of(rules: dict[str, dict], kernel: str, target: str) -> dict:
    """What holds for a kernel: later rules replace limits and add to lists; what is for a target replaces what is for all."""
    rule: dict = {"present": [], "absent": []}
    matching = [part for pattern, part in rules.items() if fnmatch.fnmatchcase(kernel, pattern)]
    for part in matching + [part.get(target, {}) for part in matching]:
        rule |= {limit: part[limit] for limit in LIMITS if limit in part}
        for name in LISTS:
            rule[name] = rule[name] + part.get(name, [])
    return rule


def has(opcodes: dict[str, int], wanted: str) -> list[str]:
    """The opcodes that `wanted` names: the same mnemonic, with all its modifiers in any order. LDG.128: LDG.E.128.CONSTANT."""
    mnemonic, *modifiers = wanted.split(".")
    split = {opcode: opcode.split(".") for opcode in opcodes}
    return [op for op, parts in split.items() if parts[0] == mnemonic and set(modifiers) <= set(parts[1:])]


def judge_kernel(kernel: dict, rule: dict) -> list[str]:
    """What is wrong with one kernel, given its report."""
    wrong = [
        f"{kernel[limit]} {UNITS[limit]}, at most {rule[limit]}"
        for limit in LIMITS
        if limit in rule and kernel[limit] > rule[limit]
    ]
    if "opcodes" in kernel:
        counts = kernel["opcodes"]
        wrong += [f"no {wanted}" for wanted in rule["present"] if not has(counts, wanted)]
        for unwanted in rule["absent"]:
            if there := sum(counts[opcode] for opcode in has(counts, unwanted)):
                wrong.append(f"{there} of {unwanted}, which must be absent")
    return wrong


def judge(modules: dict[str, dict[str, dict]], rules: dict[str, dict]) -> list[str]:
    """What is wrong with all of them: modules is name -> target -> report."""
    wrong, owners = [], {}
    for module, reports in modules.items():
        for target, report in reports.items():
            for name, kernel in report["kernels"].items():
                if owners.setdefault(name, module) != module:
                    wrong.append(f"{module}.cu: {name}: a kernel of {owners[name]}.cu has the same name")
                if target in TARGETS:
                    figures = judge_kernel(kernel, rule_of(rules, name, target))
                    wrong += [f"{module}.cu: {name}: {target}: {figure}" for figure in figures]
    unused = [pattern for pattern in rules if not fnmatch.filter(owners, pattern) and pattern != "*"]
    return wrong + [f"gates.toml: no kernel is called {pattern}" for pattern in unused]
