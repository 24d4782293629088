"""The author of the negative vectors: each case is stated once, with the verdict of the documents. `write` writes the files anew."""

import json
import re

import blake3

from negative import FOLDER

Piece = str | dict


def hexa(content: bytes, times: int = 1) -> Piece:
    return {"hex": content.hex()} | ({"times": times} if times > 1 else {})


def runs(content: bytes) -> list[Piece]:
    """Returns bytes as pieces, of which the long ones are one byte many times."""
    found = re.finditer(rb"(?s)(.)\1{31,}|.+?(?=(.)\2{31,}|$)", content)
    return [hexa(run[0][:1], len(run[0])) if run[1] else hexa(run[0]) for run in found]


def texts_of(text: str, times: int) -> Piece:
    return {"text": text, "times": times}


def of(name: str, *changes: str) -> Piece:
    """Returns the text `name` of the file, with the first occurrence of each old text replaced by the new one behind it."""
    return {"of": name} | ({"replace": list(changes)} if changes else {})


class Cases:
    """The cases of a format."""

    def __init__(self, name: str, texts: dict[str, str] | None = None, invalid: str | None = None, **context):
        """`context` is that of all cases of the format, and `invalid` the code of most that are invalid."""
        self.code = invalid
        self.name, self.texts, self.context, self.blobs, self.vectors = name, texts or {}, context, {}, []

    def valid(self, name: str, reason: str, *pieces: Piece, **more) -> None:
        self.add("valid", name, reason, pieces, **more)

    def invalid(self, name: str, reason: str, *pieces: Piece, **more) -> None:
        self.add("invalid", name, reason, pieces, **more)

    def add(self, verdict: str, name: str, reason: str, pieces: tuple[Piece, ...], code: str | None = None, **context) -> None:
        assert all(vector["name"] != name for vector in self.vectors), name
        vector = {"name": name, "input": list(pieces)} | ({"context": context} if context else {})
        self.vectors.append(vector | {"verdict": verdict, "reason": reason} | ({"code": code} if code else {}))

    def share(self, *contents: bytes) -> None:
        """Adds files that a server of any case of the file has."""
        self.blobs |= {hash_of(content): runs(content) for content in contents}

    def text(self) -> str:
        """Returns the file: a vector a line."""
        own = {"format": self.name, "code": self.code, "context": self.context, "texts": self.texts, "blobs": self.blobs}
        compact = lambda value: json.dumps(value, separators=(",", ":"))
        head = "".join(f"{compact(name)}:{compact(value)},\n" for name, value in own.items())
        return "{" + head + '"vectors":[\n' + ",\n".join(map(compact, self.vectors)) + "\n]}\n"


def hash_of(content: bytes) -> str:
    return blake3.blake3(content).hexdigest()


def all_cases() -> list[Cases]:
    from negative import cases_descriptor, cases_files, cases_messages

    return [*cases_messages.cases(), cases_descriptor.cases(), *cases_files.cases()]


def write() -> list[str]:
    """Writes the files that are not as the cases have them, and returns their names."""
    changed = []
    for cases in all_cases():
        path = FOLDER / f"{cases.name}.json"
        if not path.exists() or path.read_text() != cases.text():
            path.write_text(cases.text())
            changed.append(path.name)
    return changed
