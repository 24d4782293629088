"""Tests that the gates find faults that are planted in reports and in the tools' output."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import gates
import reports

PTXAS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'fold' for 'sm_90a'
ptxas info    : Function properties for fold
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 2 barriers, 512 bytes smem, 384 bytes cmem[0]
ptxas info    : Function properties for _Z6calleejPj
    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Compiling entry function 'plain' for 'sm_90a'
ptxas info    : Function properties for plain
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers
"""
SASS = """\
	.section	.text.fold,"ax",@progbits
fold:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;
        /*0020*/             @!UP0 UIADD3 UR4, UR4, 0x1, URZ ;
        /*0030*/               @P1 IMMA.16832.U8.S8 R8, R4.ROW, R6.COL, R8 ;
        /*0040*/                   IMMA.16832.U8.S8 R8, R4.ROW, R6.COL, R8 ;
.L_x_0:
        /*0050*/                   BRA `(.L_x_0);
	.section	.text.plain,"ax",@progbits
        /*0000*/                   EXIT ;
"""
DEFAULT = {"*": {"spills": 0, "stack": 0, "local": 0}}
CLEAN = {"registers": 40, "spills": 0, "stack": 0, "shared": 0, "barriers": 1, "opcodes": {"IMMA.16832.U8.S8": 2}, "order": []}


def judged(rules: dict, **planted: object) -> list[str]:
    report = {"file": "fold.sm_90a.cubin", "kernels": {"fold": CLEAN | planted}}
    return gates.judge({"lwe_fold": {"sm_90a": report}}, DEFAULT | rules)


class Reports(unittest.TestCase):
    def test_resources(self):
        fold, plain = reports.resources(PTXAS).values()
        self.assertEqual(fold, {"registers": 40, "spills": 16, "stack": 8, "shared": 512, "barriers": 2})
        self.assertEqual(plain, {"registers": 10, "spills": 0, "stack": 0, "shared": 0, "barriers": 0})

    def test_opcodes(self):
        fold, plain = reports.opcodes(SASS).values()
        expected = {"LDC": 1, "LDG.E.128.CONSTANT": 1, "UIADD3": 1, "IMMA.16832.U8.S8": 2, "BRA": 1}
        self.assertEqual(reports.counts(fold), expected)
        self.assertEqual(plain, ["EXIT"])
        opcodes = ["LDC", "WARPGROUP.ARRIVE", "IGMMA.S8.U8", "UMOV", "IGMMA.S8.U8", "WARPGROUP.DEPBAR.LE"]
        self.assertEqual(reports.order(opcodes), ["WARPGROUP.ARRIVE", "IGMMA.S8.U8", "WARPGROUP.DEPBAR.LE"])

    def test_entries(self):
        self.assertEqual(reports.entries(".visible .entry fold(\n.func other(\n.visible .entry plain(\n"), ["fold", "plain"])


class Gates(unittest.TestCase):
    def test_clean(self):
        self.assertEqual(judged({"fold": {"registers": 40, "present": ["IMMA.U8"]}}), [])

    def test_spills_and_stack(self):
        self.assertEqual(judged({}, spills=16), ["lwe_fold.cu: fold: sm_90a: 16 bytes spilled, at most 0"])
        self.assertEqual(judged({}, stack=8), ["lwe_fold.cu: fold: sm_90a: 8 bytes of stack, at most 0"])
        self.assertEqual(judged({"fold": {"stack": 8}}, stack=8), [])

    def test_registers(self):
        wrong = ["lwe_fold.cu: fold: sm_90a: 40 registers, at most 32"]
        self.assertEqual(judged({"fo*": {"registers": 32}}), wrong)
        self.assertEqual(judged({"fo*": {"registers": 32}, "fold": {"registers": 64}}), [])
        self.assertEqual(judged({"fold": {"registers": 64, "sm_90a": {"registers": 32}}}), wrong)
        self.assertEqual(judged({"fold": {"registers": 64, "sm_80": {"registers": 32}}}), [])

    def test_opcodes(self):
        self.assertEqual(judged({"fold": {"present": ["IGMMA"]}}), ["lwe_fold.cu: fold: sm_90a: no IGMMA"])
        self.assertEqual(judged({"fold": {"present": ["IMMA.S8.SAT"]}}), ["lwe_fold.cu: fold: sm_90a: no IMMA.S8.SAT"])
        planted = {"BAR.SYNC": 3, "BAR": 1}
        wrong = ["lwe_fold.cu: fold: sm_90a: 4 of BAR, which must be absent"]
        self.assertEqual(judged({"fold": {"absent": ["BAR"]}}, opcodes=planted), wrong)

    def test_local_memory(self):
        planted = {"STL.64": 3, "LDL": 1, "LDLX": 1}
        self.assertEqual(judged({}, opcodes=planted), ["lwe_fold.cu: fold: sm_90a: 4 accesses of local memory, at most 0"])
        self.assertEqual(judged({"fold": {"sm_90a": {"local": 4}}}, opcodes=planted), [])

    def test_order(self):
        rule = {"fold": {"order": [["SYNCS.PHASECHK", "WARPGROUP.ARRIVE", "IGMMA", "WARPGROUP.DEPBAR"]]}}
        wrong = ["lwe_fold.cu: fold: sm_90a: not in this order: SYNCS.PHASECHK, WARPGROUP.ARRIVE, IGMMA, WARPGROUP.DEPBAR"]
        wait, arrive, product, done = "SYNCS.PHASECHK.TRYWAIT", "WARPGROUP.ARRIVE", "IGMMA.S8.U8", "WARPGROUP.DEPBAR.LE"
        self.assertEqual(judged(rule, order=[done, wait, "STS", wait, arrive, product, done, wait]), [])
        for planted in (
            [wait, product, done],
            [wait, arrive, done, product],
            [wait, arrive, product, arrive, product, done],
            [],
        ):
            self.assertEqual(judged(rule, order=planted), wrong)

    def test_rules_for_nothing(self):
        self.assertEqual(judged({"fould": {}}), ["gates.toml: no kernel is called fould"])

    def test_two_kernels_of_one_name(self):
        report = {"file": "", "kernels": {"fold": CLEAN}}
        wrong = gates.judge({"a": {"sm_80": report}, "b": {"sm_80": report}}, DEFAULT)
        self.assertEqual(wrong, ["b.cu: fold: a kernel of a.cu has the same name"])

    def test_misspelt_rules(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "gates.toml"
            for text in ("[fold]\nregister = 3\n", "[fold.sm_80]\nspill = 0\n", "spills = 0\n", "[fold]\norder = [[\"IMAD\"]]\n"):
                path.write_text(text)
                with self.assertRaises(ValueError):
                    gates.load(path)


if __name__ == "__main__":
    unittest.main()
