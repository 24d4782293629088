"""Finds blocks of prose that do not open with a subject: doc comments, docstrings, and paragraphs of documents. Readers meet a block
alone, by search or in a tooltip, so a block cannot depend on the one before."""

import pathlib
import re
import subprocess

BARE = re.compile(r"(?:What|The same|Of|As|That|Those|It|Its|They|Their|These|Who|Whose|None|One)\b")
# The lines of a comment block, or the opening of a block, by the kind of file.
RUST = re.compile(r"\s*//[/!](?!/) ?(.*)")
CPP = re.compile(r"\s*//+!? ?(.*)")
JAVADOC = re.compile(r"/\*\*\s*\*?\s*([^\n]*)")
DOCSTRING = re.compile(r'(?:\A|:\n\s*|\n\n)\s*"""([^\n]*)')
ITEM = re.compile(r"\s*(?:[-*]|\d+\.) ")
COMMENTED = {".rs": RUST, ".cu": CPP, ".cuh": CPP, ".h": CPP, ".cpp": CPP, ".hpp": CPP}
MATCHED = {".ts": JAVADOC, ".mjs": JAVADOC, ".kt": JAVADOC, ".py": DOCSTRING, ".pyi": DOCSTRING}


def commented(text: str, line_of: re.Pattern) -> list[tuple[int, str]]:
    """Returns the first line of each run of comment lines, with its number."""
    found, inside = [], False
    for number, line in enumerate(text.split("\n"), start=1):
        comment = line_of.match(line)
        if comment and comment[1].strip() and not inside:
            found.append((number, comment[1]))
            inside = True
        elif not comment:
            inside = False
    return found


def matched(text: str, block: re.Pattern) -> list[tuple[int, str]]:
    """Returns the first line of each block that `block` finds, with its number."""
    return [(text.count("\n", 0, found.start(1)) + 1, found[1]) for found in block.finditer(text)]


def paragraphs(text: str) -> list[tuple[int, str]]:
    """Returns the first line of each paragraph and list item of a Markdown page, with its number."""
    found, code, before = [], False, ""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith("```"):
            code = not code
        elif not code and line.strip() and (not before.strip() or ITEM.match(line)):
            found.append((number, ITEM.sub("", line, count=1)))
        before = line
    return found


def blocks(path: pathlib.Path) -> list[tuple[int, str]]:
    """Returns the opening line of each block of prose in a file, with its number."""
    if path.suffix == ".md":
        return paragraphs(path.read_text())
    if line_of := COMMENTED.get(path.suffix):
        return commented(path.read_text(), line_of)
    if block := MATCHED.get(path.suffix):
        return matched(path.read_text(), block)
    return []


def bare_openings() -> tuple[int, list[str]]:
    """Returns the number of blocks in the committed files, and the blocks that do not open with a subject."""
    committed = map(pathlib.Path, subprocess.check_output(["git", "ls-files"], text=True).splitlines())
    total, bare = 0, []
    for path in committed:
        if not path.exists():
            continue
        found = blocks(path)
        total += len(found)
        bare += [f"{path}:{number}: {line}" for number, line in found if BARE.match(line)]
    return total, bare


if __name__ == "__main__":
    total, bare = bare_openings()
    print("\n".join(bare))
    print(f"{len(bare)} of {total} blocks do not open with a subject")
