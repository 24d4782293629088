"""install.sh takes a release whose signature and checksum are right, by either verifier, and nothing else."""

import functools
import hashlib
import http.server
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "scripts"), str(ROOT / "scripts/dist")]

import archive

INSTALL = ROOT / "install.sh"
FORGED = "signature of SHA256SUMS is not by the release key"
TOOLS = ["base64", "cat", "chmod", "cp", "curl", "getconf", "grep", "gzip", "head", "mkdir", "mktemp", "mv", "openssl", "rm", "sed", "sh",
         "sha256sum", "sort", "tail", "tar", "tr", "uname", "wc"]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Install(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = pathlib.Path(scratch.name)
        self.release = self.dir / "release"
        self.release.mkdir()
        self.public = self.make_key("key")
        self.write_release("9.8.7")
        # The same tools without minisign, so that OpenSSL verifies.
        self.bin = self.dir / "bin"
        self.bin.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool))

    def make_key(self, name):
        subprocess.run(["minisign", "-G", "-W", "-p", self.dir / f"{name}.pub", "-s", self.dir / name], check=True, capture_output=True)
        return (self.dir / f"{name}.pub").read_text().splitlines()[1]

    def write_release(self, version, says=None):
        """Writes a release whose program says that it is of the version `says`."""
        names = ("LICENSE", "LICENSES-OF-PARTS", "README.md", "hushdb.service", "hushdb.sysusers.conf", "hushdb.toml")
        files = {"hushdb": f"#!/bin/sh\necho hushdb {says or version}\n".encode(), **{name: name.encode() for name in names}}
        self.archive = self.release / f"hushdb-{version}-{os.uname().machine}-linux-gnu2.28.tar.gz"
        archive.write(self.archive, self.archive.name.removesuffix(".tar.gz"), 1_700_000_000, files, programs={"hushdb"})
        digest = hashlib.sha256(self.archive.read_bytes()).hexdigest()
        other = f"{'0' * 64}  {self.archive.name}.other"
        self.sign(f"{digest}  {self.archive.name}\n{other}\n", version)

    def sign(self, sums, version="9.8.7", *options, key="key"):
        """Writes checksums, and signs them."""
        path = self.release / "SHA256SUMS"
        path.write_text(sums)
        command = ["minisign", "-S", "-s", self.dir / key, "-m", path, "-t", f"hushdb {version} {'a' * 40}", *options]
        subprocess.run(command, check=True, capture_output=True)

    def install(self, *args, path=None):
        env = {"PATH": path or os.environ["PATH"], "HOME": str(self.dir / "home"), "HUSHDB_RELEASE_PUBLIC_KEY": self.public}
        return subprocess.run([INSTALL, *args], capture_output=True, text=True, env=env, cwd=self.dir, timeout=60)

    def both(self, url=None):
        """Yields the result of each verifier."""
        for path in (None, str(self.bin)):
            shutil.rmtree(self.dir / "to", ignore_errors=True)
            with self.subTest(path=path):
                yield self.install("--from", url or str(self.release), "--to", str(self.dir / "to"), path=path)

    def refused(self, words):
        for result in self.both():
            self.assertEqual(result.returncode, 1, result.stdout)
            self.assertIn(words, result.stderr)
            self.assertFalse((self.dir / "to").exists(), "something was installed")

    def test_a_release_is_installed_from_a_web_server_and_over_an_older_one(self):
        handler = functools.partial(Quiet, directory=self.release)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            url = f"http://127.0.0.1:{server.server_port}/"
            for result in self.both(url):
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn(f"installed hushdb 9.8.7: {self.dir}/to/bin/hushdb\n", result.stdout)
                self.assertIn("is not in PATH", result.stdout)
                said = subprocess.check_output([self.dir / "to/bin/hushdb"], text=True)
                self.assertEqual(said, "hushdb 9.8.7\n")
                self.assertTrue((self.dir / "to/share/doc/hushdb/LICENSES-OF-PARTS").exists())
            self.write_release("9.8.8")
            self.assertEqual(self.install("--from", url, "--to", str(self.dir / "to")).returncode, 0)
            self.assertEqual(subprocess.check_output([self.dir / "to/bin/hushdb"], text=True), "hushdb 9.8.8\n")
            missing = self.install("--from", f"{url}none")
            self.assertEqual(missing.returncode, 1)
            self.assertIn(f"cannot fetch {url}none/SHA256SUMS", missing.stderr)
            server.shutdown()

    def test_the_home_folder_is_the_default_and_folders_may_be_relative(self):
        result = self.install("--from", str(self.release))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue((self.dir / "home/.local/bin/hushdb").exists())
        result = self.install("--from", "release", "--to", "a b/c")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue((self.dir / "a b/c/bin/hushdb").exists())

    def test_other_checksums_are_refused(self):
        with (self.release / "SHA256SUMS").open("a") as sums:
            sums.write(f"{'1' * 64}  more\n")
        self.refused(FORGED)

    def test_another_archive_is_refused(self):
        with self.archive.open("ab") as file:
            file.write(b"more")
        self.refused("has another checksum than SHA256SUMS says")

    def test_another_key_is_refused(self):
        self.make_key("other")
        self.sign((self.release / "SHA256SUMS").read_text(), key="other")
        self.refused(FORGED)

    def test_other_forms_of_a_signature_are_refused(self):
        path = self.release / "SHA256SUMS.minisig"
        good = path.read_text()
        comment, signature, trusted, last = good.splitlines()
        lines = [
            good.replace("hushdb 9.8.7", "hushdb 9.9.9"),
            good.replace("\n", "\r\n"),
            good + "more\n",
            f"{signature}\n{trusted}\n{last}\n",
            f"\n{signature}\n{trusted}\n{last}\n",
            f"{comment}\n\n{trusted}\n{last}\n",
            f"{comment}\n{signature}\n{trusted}\n{last[:40]}\n",
            "",
        ]
        for text in lines:
            path.write_text(text)
            self.refused(FORGED)
        # The legacy form has no hash.
        self.sign((self.release / "SHA256SUMS").read_text(), "9.8.7", "-l")
        self.refused(FORGED)

    def test_an_older_release_is_refused_unless_it_is_wanted(self):
        to = str(self.dir / "to")
        self.assertEqual(self.install("--from", str(self.release), "--to", to).returncode, 0)
        self.write_release("9.8.0")
        result = self.install("--from", str(self.release), "--to", to)
        self.assertIn("hushdb 9.8.7 is installed, and the release has 9.8.0, which is older", result.stderr)
        self.assertEqual(subprocess.check_output([f"{to}/bin/hushdb"], text=True), "hushdb 9.8.7\n")
        self.assertEqual(self.install("--from", str(self.release), "--to", to, "--older").returncode, 0)
        self.assertEqual(subprocess.check_output([f"{to}/bin/hushdb"], text=True), "hushdb 9.8.0\n")
        self.assertEqual(os.listdir(f"{to}/bin"), ["hushdb"])

    def test_a_program_of_another_version_is_not_installed(self):
        self.write_release("9.8.7", says="1.2.3")
        result = self.install("--from", str(self.release), "--to", str(self.dir / "to"))
        self.assertIn("the program says hushdb 1.2.3, and the release is 9.8.7", result.stderr)
        self.assertEqual(os.listdir(self.dir / "to/bin"), [])

    def test_a_release_without_this_machine_is_refused(self):
        self.sign(f"{'0' * 64}  hushdb-9.8.7-other-linux-gnu2.28.tar.gz\n")
        self.refused(f"the release 9.8.7 has no program for {os.uname().machine}")

    def test_a_file_that_is_too_long_is_refused(self):
        (self.release / "SHA256SUMS").write_bytes(b"0" * 200_000)
        self.refused("SHA256SUMS is longer than 100000 bytes")

    def test_what_is_wrong_with_a_command_is_said(self):
        for args, words in [
            ((), "which release?"),
            (("--from",), "--from needs a value"),
            (("--form", "x"), "unknown option --form"),
            (("--from", "/nowhere"), "cannot fetch /nowhere/SHA256SUMS"),
        ]:
            result = self.install(*args)
            self.assertEqual(result.returncode, 1, args)
            self.assertIn(words, result.stderr)
        (self.bin / "openssl").unlink()
        result = self.install("--from", str(self.release), path=str(self.bin))
        self.assertIn("install minisign or OpenSSL 3", result.stderr)
        (self.bin / "sort").unlink()
        result = self.install("--from", str(self.release), path=str(self.bin))
        self.assertIn("this script needs sort", result.stderr)

    def test_the_key_is_that_of_the_repository(self):
        self.assertIn(f"\nkey={(ROOT / 'deploy/release.pub').read_text().splitlines()[1]} #", INSTALL.read_text())


if __name__ == "__main__":
    unittest.main()
