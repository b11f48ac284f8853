"""Requests about policies of queues, which only nodes of disque-tx answer (client protocol, section
26.1). They are about the policies of the whole cluster, whichever node answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from disque_tx.client import replies
from disque_tx.client.requests import Name, Request, Word, encoded
from disque_tx.client.values import PolicySetting

#: A value as a program has it; a boolean is yes or no.
Value: TypeAlias = str | bytes | int | float | bool


def policy_set(pattern: Name, settings: Mapping[str, Value]) -> Request[None]:
    """QPOLICY SET: give the queues whose names match a pattern these settings, all or none.

    ``settings``: by name, as in ``{"max-deliveries": 5, "retry-on-timeout": True}``.

    :raises CommandFailed: there is no such setting, it cannot have this value, the table is full,
        or it cannot be saved; the text says which.
    """
    if not settings:
        raise ValueError("a policy needs at least one setting")
    words: list[Word] = []
    for name, value in settings.items():
        words += (name, ("yes" if value else "no") if isinstance(value, bool) else value)
    return Request(("QPOLICY", "SET", encoded(pattern), *words), replies.done)


def policy_del(pattern: Name, *settings: str) -> Request[int]:
    """QPOLICY DEL: take these settings from a pattern, all of them if none is named; returns how
    many went."""
    return Request(("QPOLICY", "DEL", encoded(pattern), *settings), replies.integer)


def policy_repair() -> Request[int]:
    """QPOLICY REPAIR: number the table of policies anew on all nodes, so that it can be changed
    again after a node has run its counters ahead; returns how many settings it has."""
    return Request(("QPOLICY", "REPAIR"), replies.integer)


def policy_list(pattern: Name | None = None) -> Request[dict[str, dict[str, str]]]:
    """QPOLICY LIST: the settings of every pattern, or of this one; values are texts."""
    words = () if pattern is None else (encoded(pattern),)
    return Request(("QPOLICY", "LIST", *words), _patterns, repeatable=True)


def policy_get(queue: Name) -> Request[dict[str, PolicySetting]]:
    """QPOLICY GET: the settings in force for a queue, by name, those of the configuration file of
    the node that answers among them."""
    return Request(("QPOLICY", "GET", encoded(queue)), _in_force, repeatable=True)


def _patterns(reply: Any) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for row in replies.array(reply):
        pattern, settings = _row(row, 2)
        values = replies.fields(settings).items()
        found[replies.text(pattern)] = {name: replies.text(value) for name, value in values}
    return found


def _in_force(reply: Any) -> dict[str, PolicySetting]:
    found: dict[str, PolicySetting] = {}
    for row in replies.array(reply):
        name, value, pattern = replies.texts(_row(row, 3))
        found[name] = PolicySetting(value, pattern)
    return found


def _row(reply: Any, size: int) -> list[Any]:
    row = replies.array(reply)
    if len(row) != size:
        raise replies.MalformedReply(f"a row of {size}", reply)
    return row
