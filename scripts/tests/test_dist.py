"""Tests `make dist`: the archive depends only on its files, and the check of the program finds what it needs."""

import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "scripts"), str(ROOT / "scripts/dist")]

import archive
import glibc
import program
import provenance
import targets
import wheel


class Dist(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = pathlib.Path(scratch.name)

    def test_the_same_files_give_the_same_archive(self):
        files = {"b": b"\x7fELF..", "a": b"text"}
        for name, given in (("one", files), ("other", dict(reversed(files.items())))):
            archive.write(self.dir / name, "folder", 1_700_000_000, given)
        self.assertEqual((self.dir / "one").read_bytes(), (self.dir / "other").read_bytes())
        with tarfile.open(self.dir / "one") as tar:
            members = [(member.name, member.mode, member.mtime, member.uid) for member in tar.getmembers()]
        self.assertEqual(members, [("folder/a", 0o644, 1_700_000_000, 0), ("folder/b", 0o755, 1_700_000_000, 0)])

    @unittest.skipUnless(shutil.which("readelf"), "no readelf here")
    def test_a_program_that_needs_a_newer_library_is_none(self):
        needy = pathlib.Path(sys.executable).resolve()
        self.assertTrue(glibc.too_new(needy, "2.1"))
        self.assertEqual(glibc.too_new(needy, "99.0"), [])
        command = [sys.executable, ROOT / "scripts/glibc.py"]
        said = subprocess.run([*command, "2.1", needy], capture_output=True, text=True)
        self.assertEqual(said.returncode, 1)
        self.assertRegex(said.stderr, r"(?m)^error: \S+ needs \w+@GLIBC_2\.\d\S*, which is later than 2\.1$")
        self.assertEqual(subprocess.run([*command, "99.0", needy]).returncode, 0)
        with self.assertRaisesRegex(program.NoProgram, "--version says 'Python"):
            program.check(needy, targets.TARGETS[0], "0.2.0")

    def test_wheels_are_made_by_the_version_that_the_package_names(self):
        wanted = re.search(r"maturin==[\d.]+", (ROOT / "crates/hush-py/pyproject.toml").read_text())[0]
        self.assertIn(f"{wanted} ", wheel.REQUIREMENTS.read_text())

    def test_a_wheel_gets_licences_and_has_no_paths_of_the_machine(self):
        path, licence = self.dir / "x-1-py3-none-any.whl", self.dir / "LICENSE"
        licence.write_text("text")
        with zipfile.ZipFile(path, "w") as files:
            files.writestr("x-1.dist-info/sboms/x.json", f"path+file://{ROOT}/crates/x")
            files.writestr("x-1.dist-info/RECORD", "x-1.dist-info/sboms/x.json,sha256=old,9\nx-1.dist-info/RECORD,,\n")
        wheel.complete(path, [licence])
        with zipfile.ZipFile(path) as files:
            bill = files.read("x-1.dist-info/sboms/x.json")
            names = files.namelist()
            listed = files.read("x-1.dist-info/RECORD").decode().splitlines()
        self.assertEqual(bill, b"path+file:///hushdb/crates/x")
        self.assertEqual(names, [f"x-1.dist-info/{name}" for name in ("sboms/x.json", "licenses/LICENSE", "RECORD")])
        self.assertEqual([line.split(",")[0] for line in listed], names)
        self.assertEqual(listed[1], "x-1.dist-info/licenses/LICENSE,sha256=mC2ePrmW9VnmM_TRlN7zdh2Qn1o7ZH0ahR_q1nwyydE,4")

    def test_the_package_has_the_user_that_its_scripts_make(self):
        # cargo-deb writes a line that calls systemd-sysusers with the name of the source, so that the package keeps this name.
        assets = tomllib.loads((ROOT / "crates/hushdb/Cargo.toml").read_text())["package"]["metadata"]["deb"]["assets"]
        self.assertIn(["../../deploy/systemd/hushdb.sysusers.conf", "usr/lib/sysusers.d/", "644"], assets)

    def test_the_provenance_names_every_file_with_its_hash(self):
        (self.dir / "a.tar.gz").write_bytes(b"content")
        statement = provenance.make("0" * 40, ["page"], {"x86_64-unknown-linux-gnu": "rustc 1"}, [self.dir / "a.tar.gz"])
        digest = hashlib.sha256(b"content").hexdigest()
        self.assertEqual(statement["subject"], [{"name": "a.tar.gz", "digest": {"sha256": digest}}])
        pinned = {entry["name"] for entry in statement["predicate"]["buildDefinition"]["resolvedDependencies"]}
        self.assertEqual(pinned, {"hushdb", *provenance.PINS})


if __name__ == "__main__":
    unittest.main()
