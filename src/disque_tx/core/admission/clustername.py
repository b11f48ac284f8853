"""The name of the cluster: nodes of another name, or with another password, are not introduced.

Two clusters must not become one because an address was reused, or because a name in the DNS lists
the nodes of both. So PING, PONG and MEET carry a mark of the name, and one of the password, and who
knows the sender not yet compares them (cluster protocol, section 21.9):

1. Names must be equal. Originals, and versions before this one, have no name; nor has a node on
   which none was set.
2. Passwords must be equal if both nodes sent a mark, which only nodes with discovery do.
3. Nodes that are in the table already stay there, whatever their name: so a cluster is named, or
   renamed, one node at a time.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from mypy_extensions import i64

from disque_tx.messages.bus import Message

#: Bytes of the mark of a name; bits of the mark of a password, which stand behind it.
_NAME_BYTES: Final = 4
_PASSWORD_BITS: Final = 16
PASSWORD_MARK_MAX: Final = (1 << _PASSWORD_BITS) - 1
#: Refused nodes that are kept for the log.
_SEEN_MAX: Final = 100


class ClusterName:
    """``name``: empty for none. ``mark``: what is sent of name and password. ``refused``: how many
    messages of nodes of other clusters were refused; ``seen``: ID and address of their senders,
    each once, for whoever writes the log and clears this."""

    __slots__ = ("name", "mark", "refused", "seen")

    def __init__(self) -> None:
        self.name: bytes = b""
        self.mark: i64 = 0
        self.refused: i64 = 0
        self.seen: dict[bytes, bytes] = {}

    def set(self, name: bytes, password_mark: i64) -> None:
        """``password_mark``: 0 for none, up to ``PASSWORD_MARK_MAX``."""
        self.name = name
        self.mark = (name_mark(name) << _PASSWORD_BITS) | password_mark

    def is_same(self, message: Message) -> bool:
        """Whether the sender of a PING, PONG or MEET may be of this cluster."""
        theirs: i64 = message.cluster if message.epoch != 0 else 0
        ours = self.mark
        if theirs >> _PASSWORD_BITS != ours >> _PASSWORD_BITS:
            return False
        password = theirs & PASSWORD_MARK_MAX
        mine = ours & PASSWORD_MARK_MAX
        return password == 0 or mine == 0 or password == mine

    def refuse(self, node_id: bytes, ip: bytes) -> None:
        """A node of another cluster was refused."""
        self.refused += 1
        if len(self.seen) < _SEEN_MAX:
            self.seen[node_id] = ip


def name_mark(name: bytes) -> i64:
    """The mark of a name; 0 only for none."""
    if not name:
        return 0
    digest = blake2b(name, digest_size=_NAME_BYTES).digest()
    return max(int.from_bytes(digest, "big"), 1)
