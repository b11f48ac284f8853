"""The messages about keys of jobs: who has a key, until when.

Cluster protocol, section 21.6. The messages are sent to nodes that have shown ``CAN_KEYS`` only.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disque_tx.messages.bus import Message
from disque_tx.messages.records import KeyEntry

#: The longest key, in bytes; there is no empty one.
KEY_BYTES_MAX: Final = 512
#: The most entries in one message.
ENTRIES_MAX: Final = 100

# States of a key.
FREE: Final = 0  # no job has it
RESERVED: Final = 1  # for a job that is being made
HELD: Final = 2  # a job has it
ENDED: Final = 3  # its job is done, and the key is kept for a while (FOR)
STATES: Final = 4

# Answers to KEY RESERVE.
GRANTED: Final = 0
TAKEN: Final = 1  # by the job in the answer
BUSY: Final = 2  # by a job that is being made, or the node does not know yet: ask again
FULL: Final = 3  # the node is out of memory
EACH: Final = 4  # the states of the entries are the answers for the keys, in their order

# Flags of KEY COPY and KEY CHECK, in ``status``.
LAST: Final = 1  # the receiver has all now that concerns it
ASK: Final = 2  # and should send what concerns the sender
DONE: Final = 4  # the jobs of the entries are done for certain; an entry may have no key
ANSWER: Final = 1  # of KEY CHECK: this is the answer


@mypyc_attr(acyclic=True)
class KeyMessage(Message):
    """KEY RESERVE: reserve the keys of the entries for their jobs. KEY ANSWER: the answer,
    ``status``. KEY COPY: entries that the receiver shall have. KEY CHECK: which of these jobs exist
    at the receiver, and the answer. ``number``: of the question, chosen by who asks."""

    __slots__ = ("entries", "number", "status")

    def __init__(self, kind: i64, number: i64, status: i64, entries: list[KeyEntry]) -> None:
        super().__init__(kind)
        self.number: i64 = number
        self.status: i64 = status
        self.entries: list[KeyEntry] = entries
