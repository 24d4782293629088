"""Runs every block of the tutorials, in order, as a reader would, and compares the output with the pages."""

import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

PAGES = pathlib.Path(__file__).parents[3] / "docs/tutorial"
BLOCK = re.compile(r"^```(sh|python|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page):
    """Returns the code blocks of a page, each with its language."""
    return BLOCK.findall((PAGES / page).read_text())


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def end(group):
    """Ends the remaining processes of a page, and waits for them: a cluster ends with the server that started it."""
    deadline = time.monotonic() + 60
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGTERM)
        while time.monotonic() < deadline:
            os.killpg(group, 0)
            time.sleep(0.1)
        os.killpg(group, signal.SIGKILL)


def run(page, folder):
    """Runs the page's blocks as one program, and returns the output."""
    language = next(language for language, _ in blocks(page))
    program = "".join(text for of, text in blocks(page) if of == language)
    program = program.replace("127.0.0.1:7700", f"127.0.0.1:{free_port()}")
    command = ["bash", "-euo", "pipefail", "-c", program] if language == "sh" else [sys.executable, "-c", program]
    programs = pathlib.Path(sys.executable).parent
    env = {**os.environ, "HOME": str(folder), "PATH": f"{programs}:{os.environ['PATH']}"}
    out = folder / "printed"
    # The output goes to a file: servers of a page outlive its program, and would keep a pipe open.
    with out.open("w") as file:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        status = process.wait(timeout=180)
    finally:
        end(process.pid)
    assert status == 0, (page, out.read_text())
    return out.read_text()


@pytest.mark.parametrize("page", ["leaked-passwords.md", "changing-table.md", "python.md", "several-machines.md"])
def test_the_tutorial_does_what_it_says(page, tmp_path):
    if page == "several-machines.md":
        pytest.importorskip("ray")
    printed, at = run(page, tmp_path), 0
    shown = [line for language, text in blocks(page) if language == "text" for line in text.splitlines()]
    assert shown, page
    # `hushdb get` prints a line end after a value only on a terminal.
    for line in shown:
        assert line in printed[at:], (line, printed)
        at = printed.index(line, at) + len(line)


def test_every_tutorial_is_tested():
    pages = {path.name for path in PAGES.glob("*.md")} - {"README.md"}
    assert pages == {"leaked-passwords.md", "changing-table.md", "python.md", "several-machines.md"}
