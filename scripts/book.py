#!/usr/bin/env python3
"""Builds the documentation as a book in target/book: stages the pages, then runs mdBook. Links to files outside the book become text."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
STAGE = ROOT / "target/book-source"
BESIDE = ["README.md", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md"]
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
SETTINGS = """[book]
title = "HushDB"
src = "pages"
language = "en"

[build]
build-dir = "../book"
create-missing = false

[output.html]
default-theme = "light"
preferred-dark-theme = "navy"
"""


def place(path: str) -> pathlib.Path | None:
    """Returns the path in the book of a file of the repository, or None if the book does not have it."""
    if path in BESIDE:
        return pathlib.Path(path)
    return pathlib.Path(path).relative_to("docs") if path.startswith("docs/") else None


def staged(source: pathlib.Path, page: pathlib.Path) -> str:
    """Returns the text of the file `source` with its links rewritten for `page`, its path in the book."""

    def link(found: re.Match) -> str:
        text, target = found.groups()
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target) or not path:
            return found[0]
        there = place(os.path.normpath(os.path.join(source.parent, path)))
        if there is None:
            return text
        return f"[{text}]({os.path.relpath(there, page.parent)}{'#' * bool(anchor)}{anchor})"

    return LINK.sub(link, (ROOT / source).read_text())


def main() -> None:
    shutil.rmtree(STAGE, ignore_errors=True)
    files = [pathlib.Path(name) for name in BESIDE] + [path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*") if path.is_file()]
    for source in files:
        page = place(str(source))
        target = STAGE / "pages" / page
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            target.write_text(staged(source, page))
        else:
            shutil.copy(ROOT / source, target)
    summary = STAGE / "pages/SUMMARY.md"
    summary.write_text(summary.read_text().replace("- [Architecture]", "- [Contributing](CONTRIBUTING.md)\n- [Security policy](SECURITY.md)\n- [Changes](CHANGELOG.md)\n- [Architecture]"))
    (STAGE / "book.toml").write_text(SETTINGS)
    subprocess.run([sys.argv[1], "build", STAGE], check=True)
    print(f"{ROOT / 'target/book/index.html'}")


if __name__ == "__main__":
    main()
