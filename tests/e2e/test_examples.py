"""Tests that each Rust example does what its first lines say."""

import subprocess
import unittest

from harness import BINARY, HushTest


def example(name, *args):
    """Runs an example, which is beside the program, and returns its output."""
    path = BINARY.parent / "examples" / name
    return subprocess.run([path, *args], capture_output=True, text=True, check=True).stdout


class Examples(HushTest):
    def setUp(self):
        super().setUp()
        self.people = self.csv([("alice@example.org", "Alice"), ("bob@example.org", "Bob")], "email,name", "people.csv")

    def test_look_up_asks_a_server(self):
        with self.serve(self.build(self.people, "--key", "email", name="people")) as (url, _):
            self.assertEqual(example("look_up", url, "bob@example.org"), "Bob\n")
            self.assertEqual(example("look_up", url, "mallory@example.org", "people"), "not found\n")

    def test_build_and_answer_needs_no_server(self):
        self.assertEqual(example("build_and_answer", self.people, "email", "alice@example.org"), "Alice\n")
        self.assertEqual(example("build_and_answer", self.people, "email", "mallory@example.org"), "not found\n")


if __name__ == "__main__":
    unittest.main()
