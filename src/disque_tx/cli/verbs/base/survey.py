"""The state of each node of a cluster, by its own answers, and of the queues that wait longest."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Any, Final

import attrs

from disque_tx.cli.verbs.base.members import Members
from disque_tx.client.blocking import Disque
from disque_tx.client.errors import ClientError, Refused
from disque_tx.client.requests.replies import fields
from disque_tx.client.values import ClusterNode
from disque_tx.diagnosis.answers import (
    QUARTER_S,
    WORKERS_MAX,
    hour_of,
    merged_failures,
    more_than_before,
    usual_waits,
    with_versions,
)
from disque_tx.diagnosis.facts import (
    LONGEST_MAX,
    QUEUES_MAX,
    FailureFacts,
    QueueFacts,
    Survey,
    SurveyedNode,
)
from disque_tx.diagnosis.queues import letter_places
from disque_tx.worker.base.status import worker_of

#: Rounds of asking nodes that others have listed.
_ROUNDS: Final = 5
#: More than any cluster has. A server that is no Disque node might list any number.
_NODES_MAX: Final = 1000
_NOWHERE: Final = frozenset(("handshake", "noaddr"))


def basic_view(node: Disque) -> SurveyedNode:
    """The ID and the table of a node, without its figures."""
    own = node.cluster_my_id()
    table = {other.id: other for other in node.cluster_nodes()}
    return SurveyedNode(str(node.address()), own, table, node.info("server"), 0, 0, 0.0)


def view(node: Disque, now_s: Callable[[], float] = time.time) -> SurveyedNode:
    """The whole state of a node."""
    clock_s = _ahead_s(node, now_s)
    return attrs.evolve(
        basic_view(node),
        info=_info(node),
        maxmemory=_maxmemory(node),
        paused=_paused(node),
        clock_s=clock_s,
    )


def _info(node: Disque) -> dict[str, str]:
    """INFO, and the sections that are only shown by name."""
    sections = (None, "eventlog", "listening", "cluster", "copies", "discovery")
    return {name: value for section in sections for name, value in node.info(section).items()}


def _ahead_s(node: Disque, now_s: Callable[[], float]) -> float:
    """How far its clock is ahead of ours, assuming that TIME took the same time both ways."""
    before_s = now_s()
    try:
        seconds, microseconds = node.execute("TIME")
        return int(seconds) + int(microseconds) / 1e6 - (before_s + now_s()) / 2
    except (Refused, ValueError, TypeError, OverflowError):
        return 0.0


def _maxmemory(node: Disque) -> int:
    try:
        _, value = node.execute("CONFIG", "GET", "maxmemory")
        return int(value)
    except (Refused, ValueError, TypeError):
        # CONFIG may be disabled by rename-command.
        return 0


def _paused(node: Disque) -> int:
    stats = map(node.queue_stat, islice(node.queue_scan(), QUEUES_MAX))
    return sum(1 for stat in stats if stat is not None and stat.pause != "none")


def survey(
    members: Members,
    addresses: Iterable[str],
    look: Callable[[Disque], SurveyedNode] = view,
    discover: bool = True,
) -> Survey:
    """Ask these nodes, then those that they list, and so on.

    ``discover``: false to ask only these.

    :raises NobodyAnswers: none of them answered.
    """
    found = Survey({}, {})
    asked: set[str] = set()
    to_ask = set(addresses)
    for _ in range(_ROUNDS if discover else 1):
        answers = members.ask(to_ask, look) if not asked else members.try_to_ask(to_ask, look)
        asked |= to_ask
        for answer in answers.of.values():
            found.views.setdefault(answer.id, answer)
        found.silent.update(answers.silent)
        to_ask = _named(found.views.values(), set(found.views)) - asked
        if not to_ask or len(asked) > _NODES_MAX:
            break
    return found


def _named(views: Iterable[SurveyedNode], known: set[str]) -> set[str]:
    """The addresses of nodes that others list and that are not known yet."""
    return {
        place(node)
        for view in views
        for node in view.others
        if node.id not in known and not node.flags & _NOWHERE
    }


def place(node: ClusterNode) -> str:
    """A node's address as ``host:port``: CLUSTER NODES has no brackets around IPv6."""
    host, _, port = node.address.rpartition(":")
    return f"[{host}]:{port}" if ":" in host else node.address


_SETTING: Final = "dead-queue"
_ALERT: Final = "alert-wait"


def whole_survey(members: Members, addresses: Iterable[str], discover: bool = True) -> Survey:
    """The state of a cluster, its queues included; of queues nothing if only originals answer.

    :raises NobodyAnswers: no node answered.
    """
    found = survey(members, addresses, discover=discover)
    first = next(iter(found.views.values())).address
    seen = members.try_to_ask([first], _queues).of.get(first)
    if seen is None:
        return found
    queues, letters = seen
    if not found.silent:
        queues = members.try_to_ask([first], partial(_with_growth, queues, letters)).of.get(
            first, queues
        )
    failures = members.try_to_ask([first], _failures).of.get(first, ())
    known = attrs.evolve(found, queues=queues, letter_queues=letters, now_s=time.time())
    return attrs.evolve(known, failures=failures)


def _asked(node: Disque, *words: bytes | str) -> list[list[Any]]:
    """What each node of the cluster answers to a question; nothing if this one does not know it."""
    try:
        reply = fields(node.execute("ASK", "CLUSTER", *words))
    except ClientError:
        return []
    return [answer for _node, answer in reply.get("answers", []) if isinstance(answer, list)]


def _failures(node: Disque) -> tuple[FailureFacts, ...]:
    answers = _asked(node, "TROUBLES", str(LONGEST_MAX))
    found = merged_failures((row for rows in answers for row in rows), worker_of)
    if not any(one.worker for one in found):
        return found
    workers = _asked(node, "WORKERS", "0", str(WORKERS_MAX))
    return with_versions(found, (row for answer in workers for row in answer[-1]))


def _queues(node: Disque) -> tuple[tuple[QueueFacts, ...], frozenset[str]]:
    """The queues that wait longest, over all nodes, and what policies name for dead letters."""
    try:
        page = node.list_queues(None, "oldest", LONGEST_MAX, None, cluster=True)
        settings = node.policy_list().values()
    except Refused:
        return (), frozenset()
    timed = any(_ALERT in each for each in settings)
    names = [row.name for row in page.queues]
    usual = usual_waits(
        len(names), _asked(node, "USUAL", *map(os.fsencode, names)) if names else []
    )
    queues = tuple(
        QueueFacts(
            row.name,
            row.queued,
            row.oldest_ms / 1000,
            row.blocked_clients,
            row.in_flight,
            row.backoff,
            row.out_per_s,
            _pause(node, row.name) if row.queued else "none",
            _alert_wait_s(node, row.name) if timed else 0,
            usual_s,
        )
        for row, usual_s in zip(page.queues, usual, strict=True)
    )
    return queues, frozenset(each[_SETTING] for each in settings if each.get(_SETTING))


def _with_growth(
    queues: tuple[QueueFacts, ...], letters: frozenset[str], node: Disque
) -> tuple[QueueFacts, ...]:
    """The same, with the growth of the first queues for dead letters."""
    first, last = hour_of(time.time())
    known = list(queues)
    for place, queue in letter_places(queues, letters):
        name = os.fsencode(queue.name)
        answers = _asked(node, "HISTORY", str(QUARTER_S), str(first), str(last), name)
        if answers:
            grown = more_than_before(queue.queued, first, answers)
            known[place] = attrs.evolve(queue, grown=grown)
    return tuple(known)


def _alert_wait_s(node: Disque, name: str) -> int:
    setting = node.policy_get(name).get(_ALERT)
    return int(setting.value) if setting and setting.value.isdecimal() else 0


def _pause(node: Disque, name: str) -> str:
    stat = node.queue_stat(name)
    return "none" if stat is None else stat.pause
