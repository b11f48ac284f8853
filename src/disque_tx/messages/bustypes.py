"""The types of messages on the cluster bus: number, name, and the feature that a node needs to know
it (cluster protocol, sections 3 and 21).

How each is written and read is in ``wire.bus.formats``, and who it is for in ``core.inbox``. A new
type is a line in each of the three.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

# Feature bits (section 21.1).
CAN_TABLES: Final = 1
CAN_BULK: Final = 2
CAN_KEYS: Final = 4
CAN_QUERY: Final = 8
CAN_MATCH: Final = 16
CAN_LOADED: Final = 128
CAN_REPAIR: Final = 256
CAN_ASK: Final = 512
CAN_DEMAND: Final = 1024
CAN_NAME: Final = 2048
CAN_HEAL: Final = 4096
CAN_HAND_OVER: Final = 8192
CAN_SETTLE: Final = 16384
CAN_LIST: Final = 32768
ALL_FEATURES: Final = (
    CAN_TABLES
    | CAN_BULK
    | CAN_KEYS
    | CAN_QUERY
    | CAN_MATCH
    | CAN_LOADED
    | CAN_REPAIR
    | CAN_ASK
    | CAN_DEMAND
    | CAN_NAME
    | CAN_HEAL
    | CAN_HAND_OVER
    | CAN_SETTLE
    | CAN_LIST
)

# The types of the original (section 3).
PING: Final = 0
PONG: Final = 1
MEET: Final = 2
FAIL: Final = 3
REPLJOB: Final = 4
GOTJOB: Final = 5
ENQUEUE: Final = 6
QUEUED: Final = 7
SETACK: Final = 8
WILLQUEUE: Final = 9
GOTACK: Final = 10
DELJOB: Final = 11
NEEDJOBS: Final = 12
YOURJOBS: Final = 13
WORKING: Final = 14
PAUSE: Final = 15
#: The first type that is ours: the original ignores them, and is never sent one.
OWN_TYPES: Final = 32
#: About tables that all nodes have alike: see ``messages.tables``.
TABLE_CHANGE: Final = 32
TABLE_DIGEST: Final = 33
TABLE_PULL: Final = 34
BULK: Final = 35
#: About keys of jobs: see ``messages.keys``.
KEY_RESERVE: Final = 36
KEY_ANSWER: Final = 37
KEY_COPY: Final = 38
KEY_CHECK: Final = 39
#: Jobs of queues that match are wanted.
NEEDMATCH: Final = 40
#: A question about queues, and the answer.
QUERY: Final = 44
REPORT: Final = 45
#: Demand that stands until it changes: see ``messages.demands``.
DEMAND: Final = 46
#: A node that had failed for long is forgotten.
FORGET: Final = 47
#: Copies that are made again: see ``messages.holders``.
HOLDERS: Final = 48
#: Jobs of a node that leaves: see ``messages.handover``.
HANDOVER: Final = 49


class MessageType:
    """``feature``: the bit that says that a node knows this type; 0 if every node does."""

    __slots__ = ("feature", "name", "number")

    def __init__(self, number: i64, name: str, feature: i64 = 0) -> None:
        self.number: i64 = number
        self.name: str = name
        self.feature: i64 = feature


TYPES: Final = (
    MessageType(PING, "PING"),
    MessageType(PONG, "PONG"),
    MessageType(MEET, "MEET"),
    MessageType(FAIL, "FAIL"),
    MessageType(REPLJOB, "REPLJOB"),
    MessageType(GOTJOB, "GOTJOB"),
    MessageType(ENQUEUE, "ENQUEUE"),
    MessageType(QUEUED, "QUEUED"),
    MessageType(SETACK, "SETACK"),
    MessageType(WILLQUEUE, "WILLQUEUE"),
    MessageType(GOTACK, "GOTACK"),
    MessageType(DELJOB, "DELJOB"),
    MessageType(NEEDJOBS, "NEEDJOBS"),
    MessageType(YOURJOBS, "YOURJOBS"),
    MessageType(WORKING, "WORKING"),
    MessageType(PAUSE, "PAUSE"),
    MessageType(TABLE_CHANGE, "TABLE CHANGE", CAN_TABLES),
    MessageType(TABLE_DIGEST, "TABLE DIGEST", CAN_TABLES),
    MessageType(TABLE_PULL, "TABLE PULL", CAN_TABLES),
    MessageType(BULK, "BULK", CAN_BULK),
    MessageType(KEY_RESERVE, "KEY RESERVE", CAN_KEYS),
    MessageType(KEY_ANSWER, "KEY ANSWER", CAN_KEYS),
    MessageType(KEY_COPY, "KEY COPY", CAN_KEYS),
    MessageType(KEY_CHECK, "KEY CHECK", CAN_KEYS),
    MessageType(NEEDMATCH, "NEEDMATCH", CAN_MATCH),
    MessageType(QUERY, "QUERY", CAN_QUERY),
    MessageType(REPORT, "REPORT", CAN_QUERY),
    MessageType(DEMAND, "DEMAND", CAN_DEMAND),
    MessageType(FORGET, "FORGET", CAN_NAME),
    MessageType(HOLDERS, "HOLDERS", CAN_HEAL),
    MessageType(HANDOVER, "HANDOVER", CAN_HAND_OVER),
)
#: Those of the original, by number.
TYPE_NAMES: Final = tuple([one.name for one in TYPES if one.number < OWN_TYPES])
_BY_NUMBER: Final = {int(one.number): one for one in TYPES}


def type_name(kind: i64) -> str:
    """The name of a message type, for people."""
    found = _BY_NUMBER.get(int(kind))
    return found.name if found is not None else f"type {kind}"
