"""Errors of work queues: one class for each case that a program may want to handle differently.

Texts say what happened, where, and what to do; they never contain passwords, nor data of items.
"""

from __future__ import annotations

from typing import ClassVar, Final

from disque_tx.client.errors import printable
from disque_tx.errors import DisqueError


class WorkQueueError(DisqueError):
    """Base of every error of work queues."""


class BadRedisUrl(WorkQueueError, ValueError):
    """This is not the URL of a Redis server."""


class NotJson(WorkQueueError, ValueError):
    """The data of an item is not JSON, or a value cannot be represented as JSON."""


class NotOnDisque(WorkQueueError):
    """Redis can do this and Disque cannot; the text says what to do instead."""


class MoveRefused(WorkQueueError):
    """Items are not moved, or no more of them, because some might be duplicated; the text says
    why."""


class RedisLost(WorkQueueError):
    """A Redis server cannot be reached, or the connection failed.

    ``address``: of the server. ``sent``: whether a command was sent, and may have been executed.
    """

    def __init__(self, address: str, reason: str, sent: bool) -> None:
        self.address = address
        self.sent = sent
        doubt = " The command may or may not have been executed." if sent else ""
        super().__init__(
            f"The Redis server at {address} cannot be used: {printable(reason).rstrip('.')}.{doubt}"
            " Check its address, and that it runs."
        )


class RedisRefused(WorkQueueError):
    """A Redis server answered with an error.

    ``code``: the first word of the reply. ``address``: of the server.
    """

    advice: ClassVar[str] = ""

    def __init__(self, address: str, code: str, line: str) -> None:
        self.address = address
        self.code = code
        super().__init__(f"The Redis server at {address} refused: {line}{self.advice}")


class PasswordRefused(RedisRefused):
    """The password is missing, wrong, or its user may not do this."""

    advice = " Check the user and the password in the URL, and what the user may do."


class WrongKeyType(RedisRefused):
    """A key of the work queue holds a value of another type."""

    advice = (
        " Another program uses a key of this work queue for something else: see TYPE of"
        " <prefix>:queue, <prefix>:processing and <prefix>:item:<id>, or use another prefix."
    )


_BY_CODE: Final[dict[str, type[RedisRefused]]] = {
    "NOAUTH": PasswordRefused,
    "NOPERM": PasswordRefused,
    "WRONGPASS": PasswordRefused,
    "WRONGTYPE": WrongKeyType,
}


def refusal(address: str, line: str) -> RedisRefused:
    """The exception for an error reply; ``line``: the reply without its dash.

    Old servers put words of their own before the code of an error inside a script.
    """
    text = printable(line)
    code = text.partition(" ")[0]
    kind = _BY_CODE.get(code)
    if kind is None:
        kind = WrongKeyType if "WRONGTYPE" in text else RedisRefused
    return kind(address, code, text if text.endswith(".") else f"{text}.")
