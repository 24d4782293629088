"""Archives whose bytes depend only on their files and one date."""

import gzip
import io
import pathlib
import tarfile


def write(path: pathlib.Path, folder: str, date: int, files: dict[str, bytes]) -> None:
    """Packs `files` as members of `folder`, with `date` as their time. Files that begin like programs become executable."""
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=date) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for name in sorted(files):
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size, member.mtime, member.uname, member.gname = len(files[name]), date, "root", "root"
            member.mode = 0o755 if files[name].startswith(b"\x7fELF") else 0o644
            tar.addfile(member, io.BytesIO(files[name]))
