"""Errors, split by who is at fault.

``LocalError``: this program broke one of its own rules. ``PeerError``: bytes or a message from
outside are not what they must be. ``CommandError``: a client asked for something that is refused;
the reply code is data on the exception. ``ConfigError``: a configuration that cannot be used.
"""

from __future__ import annotations


class DisqueError(Exception):
    """Base of every error this package raises on purpose."""


class LocalError(DisqueError):
    """An invariant of this program does not hold; the text says which."""


class PeerError(DisqueError):
    """Input from outside is malformed; the text is safe to show and to log.

    ``silent``: the connection is closed without an error reply.
    """

    def __init__(self, text: str, silent: bool = False) -> None:
        super().__init__(text)
        self.silent = silent


class CommandError(DisqueError):
    """A request is refused. The reply is ``-<code> <text>`` (client protocol, section 23).

    ``code``: first word of the reply. ``text``: the rest, may be empty for a bare code.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text

    def reply(self) -> bytes:
        """The error line without its dash and line end; never holds CR, LF or NUL.

        Bytes of a request travel through the text as latin-1.
        """
        line = self.code + " " + self.text if self.text else self.code
        line = line.replace("\r", " ").replace("\n", " ").replace("\0", " ")
        return line.encode("latin-1", "replace")


class ConfigError(DisqueError):
    """A configuration is refused; the text says what and where."""


def syntax_error() -> CommandError:
    """The reply to words in the wrong place."""
    return CommandError("ERR", "syntax error")
