"""Negative vectors: malformed and boundary inputs of every format, each with the verdict that the documents give
(docs/reference/file-formats.md, Negative vectors). `judges` decides with decoders that are made after the documents alone."""

import json
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "vectors/negative"


class Refused(Exception):
    """An input that its format does not allow. `code` is the code of the error that programs tell apart."""

    def __init__(self, reason: str, code: str = "bad_answer"):
        super().__init__(reason)
        self.code = code


def check(holds: bool, reason: str, code: str = "bad_answer") -> None:
    """Raises `Refused` unless a condition holds."""
    if not holds:
        raise Refused(reason, code)


def octets(pieces: list, texts: dict[str, str]) -> bytes:
    """Returns the bytes that a list of pieces describes."""
    out = b""
    for piece in pieces:
        if isinstance(piece, str):
            out += piece.encode()
        elif "hex" in piece:
            out += bytes.fromhex(piece["hex"]) * piece.get("times", 1)
        elif "text" in piece:
            out += piece["text"].encode() * piece["times"]
        else:
            text, changes = texts[piece["of"]], piece.get("replace", [])
            for old, new in zip(changes[::2], changes[1::2], strict=True):
                assert old in text, f"{piece['of']} has no {old}"
                text = text.replace(old, new, 1)
            out += text.encode()
    return out


def report(folder: pathlib.Path = FOLDER) -> tuple[bool, list[str]]:
    """Judges all vectors. Returns whether all verdicts and codes are those of the files, and lines of text for people."""
    from negative import judges

    right, lines = True, []
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text())
        wrong = []
        for vector in document["vectors"]:
            code = vector.get("code", document["code"] if vector["verdict"] == "invalid" else None)
            expected = (vector["verdict"], code)
            judged = judge(judges.JUDGES[path.stem], vector, document)
            if judged[0] != expected[0] or (expected[1] and judged[1] != expected[1]):
                wrong.append(f"{path.stem}: {vector['name']}: {expected} in the file, judged {judged}")
        right &= not wrong
        lines += wrong or [f"negative {path.stem}: {len(document['vectors'])} judged alike"]
    return right, lines


def judge(decoder, vector: dict, document: dict) -> tuple[str, str | None, str]:
    """Returns the verdict, the code, and why."""
    texts, context = document["texts"], document["context"] | vector.get("context", {})
    if "descriptor" in context:
        context["descriptor"] = octets(context["descriptor"], texts)
    context["blobs"] = {name: octets(pieces, texts) for name, pieces in document["blobs"].items()}
    try:
        code = decoder(octets(vector["input"], texts), context)
    except Refused as refused:
        return "invalid", refused.code, str(refused)
    return "valid", code, ""
