"""The errors of this package. Every message says what to do."""

from __future__ import annotations


class HushError(Exception):
    """The base of all errors of this package. ``code`` is a word for programs: docs/reference/clients.md lists all."""

    code = "client_failed"


class OptionError(HushError, ValueError):
    """An argument is invalid: a key of the wrong kind, an unknown option, a file that cannot be read."""

    code = "options"


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
