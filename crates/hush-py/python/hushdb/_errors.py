"""What can go wrong. Every message says what to do."""

from __future__ import annotations

import re


class HushError(Exception):
    """The base of all errors of this package."""


class OptionError(HushError, ValueError):
    """What a call was given is none that it takes: a key of the wrong kind, an unknown option, a file that cannot be read."""


class WrongType(OptionError, TypeError):
    """A key, or an option, of a type that the call does not take."""


class InputError(HushError, ValueError):
    """Records that cannot be read, or a folder that holds no table."""


class ConnectionFailed(HushError, ConnectionError):
    """The server is not reached, or the way to it is not safe."""


class TimedOut(HushError, TimeoutError):
    """The server did not answer in time."""


class NotAllowed(HushError, PermissionError):
    """The server asks for a token, or for another one."""


class NoSuchTable(HushError, LookupError):
    """The server has no table of this name, or several and none was named."""


class ServerBusy(HushError):
    """The server is loading a table, or has more to do than it can: the call was tried again before this was raised."""


class Untrusted(HushError):
    """The table is not one that this client accepts: too weak, of another epoch, or not signed by whom it trusts."""


_FLAGS = {"force", "header", "no_header", "force_size", "updatable", "hidden", "follow_links", "no_cache", "insecure", "recalibrate"}
_CHOICES = "files|rows|first|last|error|cpu|cuda|none|zstd|colpack(?:-s)?|hybrid|onion|tfhe|simple|frodo|double|band\\d+|fuse\\d"
_OPTION = re.compile(rf"--([a-z][a-z-]*[a-z])(?:[ =]((?:\d[\d,.]*\d|\d|{_CHOICES})(?![\w-])|[A-Z]{{2,}}\b))?")
_COMMAND = re.compile(r"'hushdb (build|apply|compact|push|inspect|plan)((?: [^']*)?)'")


def in_python(text: str) -> str:
    """A message with options of the command line as Python has them: `--on-duplicate last` is `on_duplicate="last"`."""
    return _COMMAND.sub(_call, _OPTION.sub(_option, text))


def _option(found: re.Match[str]) -> str:
    name, value = found[1].replace("-", "_"), found[2]
    # A word of Python.
    name = "as_" if name == "as" else name
    if name in _FLAGS:
        return f"{name}=True"
    if value is None:
        return name
    return f"{name}={value}" if value[0].isdigit() and "," not in value or value.isupper() else f'{name}="{value}"'


def _call(found: re.Match[str]) -> str:
    return f"hushdb.{found[1]}({', '.join(['..', *found[2].split()])})"


def raised(kind: type[HushError], text: str) -> HushError:
    """The exception of this class with a message of the program."""
    return kind(in_python(text))
