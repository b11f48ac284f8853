"""What a client with the read-only password may do: read everything but passwords, and change
nothing but its own connection."""

from __future__ import annotations

from typing import Final

from disque_tx.commands.base.arguments import MASK
from disque_tx.core.counting.asked import READING
from disque_tx.errors import CommandError

#: Scans, with which BUSYLOOP is a change, too: it blocks the node.
_SCANS: Final = (b"qscan", b"jscan")
#: Commands that read, for any words behind them.
_READING: Final = frozenset(
    (
        b"ping",
        b"info",
        b"time",
        b"command",
        b"show",
        b"qlen",
        b"qpeek",
        b"qstat",
        b"qcount",
        b"qlist",
        b"waitjob",
    )
)
#: Commands that only read with one of these second words.
_READING_PARTS: Final = {
    b"client": frozenset((b"list",)),
    b"cluster": frozenset((b"info", b"nodes", b"myid")),
    b"config": frozenset((b"get",)),
    b"qpolicy": frozenset((b"list", b"get")),
    b"schedule": frozenset((b"list", b"get")),
    b"slowlog": frozenset((b"get", b"len")),
    b"latency": frozenset((b"latest", b"history", b"graph", b"doctor")),
}
#: What changes the client's own connection alone, by which it can get more rights, too.
_OWN: Final = frozenset((b"auth", b"hello"))
_OWN_CLIENT: Final = frozenset((b"setname", b"getname", b"reply"))
#: Parameters that are passwords, or contain some.
_SECRETS: Final = frozenset((b"requirepass", b"readonly-password", b"workqueue-redis"))


def reads(name: bytes, argv: list[bytes]) -> bool:
    """Whether the request only reads. ``name``: the command's original name in lower case."""
    if name in _READING or (name == b"hello" and len(argv) == 1):
        return True
    if name in _SCANS:
        return b"busyloop" not in [word.lower() for word in argv]
    if name == b"ask":
        return len(argv) > 2 and argv[2].upper() in READING
    if name == b"actions":
        return len(argv) < 3  # with more words it is told of an action
    if name == b"cluster" and len(argv) == 2 and argv[1].lower() == b"leaving":
        return True  # with a third word it is a change
    parts = _READING_PARTS.get(name)
    return parts is not None and len(argv) > 1 and argv[1].lower() in parts


def check_reader(name: bytes, argv: list[bytes]) -> None:
    """Raise ``CommandError`` for a request that a client with the read-only password may not make;
    ``name`` as in :func:`reads`."""
    if reads(name, argv) or name in _OWN:
        return
    if name == b"client" and len(argv) > 1 and argv[1].lower() in _OWN_CLIENT:
        return
    raise no_permission()


def no_permission() -> CommandError:
    """The error for everything that changes something."""
    return CommandError("NOPERM", "The read-only password does not allow this.")


def shown_to_readers(name: bytes, value: bytes) -> bytes:
    """The value of a parameter; of passwords only whether they are set."""
    return MASK if value and name in _SECRETS else value
