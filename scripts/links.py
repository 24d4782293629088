#!/usr/bin/env python3
"""Checks the committed Markdown pages: every link leads to a file, every anchor to a heading, and every page of `docs` begins with what
its reader can do after it."""

import os
import pathlib
import re
import subprocess
import sys

OPENING = re.compile(r"After this (page|note) |After a note |At the end of this tutorial |Find |Look up |Learn ")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page: pathlib.Path) -> set[str]:
    """Returns the anchors of a page's headings, in the form of GitHub and mdBook."""
    found, code = set(), False
    for line in page.read_text().splitlines():
        if line.startswith("```"):
            code = not code
        elif not code and (heading := re.match(r"#+ (.*)", line)):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"[`*]", "", heading[1])).lower()
            found.add(re.sub(r"[^\w\- ]", "", text).replace(" ", "-"))
    return found


def broken(page: pathlib.Path) -> list[str]:
    """Returns the links of a page whose file or heading does not exist."""
    wrong = []
    for number, line in enumerate(page.read_text().splitlines(), start=1):
        for target in LINK.findall(line):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = pathlib.Path(os.path.normpath(page.parent / path)) if path else page
            if not file.exists():
                wrong.append(f"{page}:{number}: {target}: there is no such file")
            elif anchor and file.suffix == ".md" and anchor not in anchors(file):
                wrong.append(f"{page}:{number}: {target}: there is no such heading")
    return wrong


if __name__ == "__main__":
    pages = [pathlib.Path(name) for name in subprocess.check_output(["git", "ls-files", "*.md"], text=True).splitlines()]
    problems = [problem for page in pages if page.exists() for problem in broken(page)]
    listed = set(LINK.findall(pathlib.Path("docs/SUMMARY.md").read_text()))
    of_book = {str(page.relative_to("docs")) for page in pages if page.parts[0] == "docs" and page.name != "SUMMARY.md"}
    problems += [f"docs/{page}: the book does not have it: add it to docs/SUMMARY.md" for page in sorted(of_book - listed)]
    for page in sorted(of_book):
        if not OPENING.match(pathlib.Path("docs", page).read_text().split("\n\n", 2)[1]):
            problems.append(f"docs/{page}: its first sentence does not say what a reader can do after it: begin as the other pages do")
    print("\n".join(problems) or f"links: {len(pages)} pages hold")
    sys.exit(bool(problems))
