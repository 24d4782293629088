"""Tests of the judges of negative vectors: what is planted in the files is found, and the files are those of the cases."""

import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import environment

environment.enter()

import negative
from negative import cases, ed25519


class Files(unittest.TestCase):
    def test_files_are_those_of_the_cases(self):
        written = {path.name: path.read_text() for path in negative.FOLDER.glob("*.json")}
        self.assertEqual(written, {f"{own.name}.json": own.text() for own in cases.all_cases()}, "python3 scripts/vectors --write")

    def test_every_file_has_both_verdicts(self):
        for path in negative.FOLDER.glob("*.json"):
            verdicts = {vector["verdict"] for vector in json.loads(path.read_text())["vectors"]}
            self.assertEqual(verdicts, {"valid", "invalid"}, path.name)

    def test_a_wrong_verdict_and_a_wrong_code_are_found(self):
        with tempfile.TemporaryDirectory() as temporary:
            for path in sorted(negative.FOLDER.glob("*.json")):
                copy = pathlib.Path(temporary) / path.name
                document = json.loads(path.read_text())
                document["vectors"] = document["vectors"][:1]
                self.assertEqual((copy.write_text(json.dumps(document)) > 0, negative.report(copy.parent)[0]), (True, True))
                vector = document["vectors"][0]
                vector["verdict"] = {"valid": "invalid", "invalid": "valid"}[vector["verdict"]]
                copy.write_text(json.dumps(document))
                self.assertFalse(negative.report(copy.parent)[0], path.name)
                copy.unlink()


class Signatures(unittest.TestCase):
    def test_the_second_example_of_the_rfc(self):
        """RFC 8032, section 7.1."""
        seed = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
        public, signature = ed25519.sign(seed, b"\x72")
        self.assertEqual(public.hex(), "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
        self.assertEqual(signature.hex()[:64], "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da")
        self.assertTrue(ed25519.verify(public, b"\x72", signature))
        self.assertFalse(ed25519.verify(public, b"\x73", signature))


if __name__ == "__main__":
    unittest.main()
