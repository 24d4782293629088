"""Tests of the parameter sets that the binary prints, and of the committed estimates for them."""

import json
import pathlib
import re
import unittest

from harness import HushTest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/explanation/notes/security-estimates.md"


class Presets(HushTest):
    def setUp(self):
        super().setUp()
        result = self.hushdb("presets", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.document = json.loads(result.stdout)
        self.presets = {preset["name"]: preset for preset in self.document["presets"]}

    def secure(self):
        return [preset for name, preset in self.presets.items() if not name.startswith("INSECURE")]

    def test_it_lists_what_the_code_computes_with(self):
        colpack = self.presets["COLPACK_N2048_Q52"]
        self.assertEqual(colpack["protocols"], ["colpack-s", "colpack"])
        self.assertEqual([(problem["kind"], problem["n"]) for problem in colpack["problems"]], [("rlwe", 2048)] * 2)
        self.assertEqual([int(problem["q"]) for problem in colpack["problems"]], [1 << 32, 67104769 * 67084289])
        for problem in colpack["problems"]:
            self.assertEqual(problem["error"], {"distribution": "gaussian", "std": 3.2})
            self.assertEqual(problem["secret"]["distribution"], "ternary")
        kinds = [problem["kind"] for problem in self.presets["PACK_M31"]["problems"]]
        self.assertEqual(kinds, ["module-lwe", "rlwe"])

    def test_weak_sets_say_so(self):
        for name, preset in self.presets.items():
            bits = preset["security_bits"]
            if name.startswith("INSECURE"):
                self.assertEqual(bits, 0, name)
            elif bits < self.document["min_security_bits"]:
                self.assertIn(f"_SEC{int(bits)}", name)
            self.assertEqual(preset["problems"] == [], name.startswith("INSECURE") and name.endswith("PLAIN"), name)

    def test_the_table_has_a_line_for_every_problem(self):
        head, *lines = self.hushdb("presets").stdout.splitlines()
        self.assertRegex(head, r"^preset +bits +problem +n +log2 q +error +secret +protocols$")
        self.assertEqual(len(lines), sum(max(1, len(preset["problems"])) for preset in self.presets.values()))
        found, = (line for line in lines if line.startswith("ONION_M31 "))
        self.assertRegex(found, r"^ONION_M31 +148\.\d  rlwe +4096 +93\.0  gaussian 3\.2 +ternary +onion$")

    def test_the_committed_estimates_are_of_these_sets(self):
        """Fails after a change of a set or its claim, until scripts/security.py is run."""
        lines = PAGE.read_text().partition("## Other counts")[0].splitlines()
        rows = [re.split(r" *\| *", line.strip("| ")) for line in lines if line.startswith("|")]
        claims = {row[0].strip("`"): (row[1], row[4]) for row in rows if row[0].startswith("`")}
        shapes = {row[0]: tuple(row[1:5]) for row in rows if row[0].isdigit()}
        self.assertEqual(set(claims), {preset["name"] for preset in self.secure()})
        for preset in self.secure():
            claim, problems = claims[preset["name"]]
            self.assertEqual(claim, f"{preset['security_bits']:.1f}", preset["name"])
            numbers = re.findall(r"(\d+) \(([a-z-]+)\)", problems)
            own = [(problem["kind"], shape(problem)) for problem in preset["problems"]]
            self.assertEqual([(kind, shapes[number]) for number, kind in numbers], own, preset["name"])


def shape(problem):
    """Returns the cells of a problem on the page."""
    def spread(of):
        return f"gaussian {of['std']:g}" if of["distribution"] == "gaussian" else of["distribution"]

    return str(problem["n"]), f"{problem['log2_q']:.2f}", spread(problem["error"]), spread(problem["secret"])


if __name__ == "__main__":
    unittest.main()
