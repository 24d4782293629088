"""The errors of this package. Every message says what to do."""

from __future__ import annotations


class HushError(Exception):
    """The base of all errors of this package. ``code`` is a word for programs: docs/reference/clients.md lists all codes."""

    code = "client_failed"


class OptionError(HushError, ValueError):
    """An argument is invalid: a key of the wrong kind, an unknown option, a file that cannot be read."""

    code = "options"


class WrongType(OptionError, TypeError):
    """A key or an option has a type that the call does not take."""


class InputError(HushError, ValueError):
    """Records cannot be read, or a folder holds no table."""


class ConnectionFailed(HushError, ConnectionError):
    """The server cannot be reached, or the connection to it is not safe."""


class TimedOut(HushError, TimeoutError):
    """The server did not answer in time."""


class NotAllowed(HushError, PermissionError):
    """The server requires a token, or rejects the given one."""


class NoSuchTable(HushError, LookupError):
    """The server has no table of this name, or has several and no name was given."""


class ServerBusy(HushError):
    """The server is loading a table, or is overloaded. The call was retried before this was raised."""


class Untrusted(HushError):
    """This client does not accept the table: it is too weak, has another epoch, or is not signed by a trusted key."""
