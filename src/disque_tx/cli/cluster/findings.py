"""``disque cluster check``: problems of a cluster, with advice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import Final

import attrs

from disque_tx.cli.cluster.nodeview import QUEUES_MAX, Survey, SurveyedNode
from disque_tx.client.errors import printable

#: From this part of maxmemory on, a node keeps no new jobs itself.
_MEMORY_SHARE: Final = 0.75
_CLOCKS_S: Final = 2.0

_PROBLEM: Final = "problem"
_NOTE: Final = "note"


@attrs.frozen
class Finding:
    """Something that the check has found. ``severity``: problem or note. ``node``: its address, or
    ``cluster``. ``what``: a description. ``advice``: what to do."""

    severity: str
    node: str
    what: str
    advice: str


def findings(survey: Survey) -> list[Finding]:
    """All findings, problems first."""
    found = [finding for check in _OF_ALL for finding in check(survey)]
    for view in survey.views.values():
        found += [finding for check in _OF_EACH for finding in check(view)]
    return sorted(found, key=lambda finding: finding.severity != _PROBLEM)


def is_problem(finding: Finding) -> bool:
    """Whether it is a problem, not only a note."""
    return finding.severity == _PROBLEM


# -- the nodes together --------------------------------------------------------------------------


def _unreachable(survey: Survey) -> Iterator[Finding]:
    for address, why in survey.silent.items():
        yield Finding(
            _PROBLEM,
            address,
            f"{'refuses' if _lives(why) else 'does not answer'}: {why}",
            next(advice for part, advice in _ADVICE if part in why),
        )


_FORGET: Final = "if it is gone for good, disque cluster forget"
#: Part of a reason → advice; the first match is used.
_ADVICE: Final = (
    ("NOAUTH", "It runs and requires a password: set DISQUE_PASSWORD."),
    ("invalid password", "It runs and has another password: set DISQUE_PASSWORD."),
    ("WRONGPASS", "It runs and has another password: set DISQUE_PASSWORD."),
    ("no password is set", "It runs without a password, unlike the other nodes: set one there."),
    ("DENIED", "It runs in protected mode: set a password there, or ask it on its own machine."),
    ("max number of clients", "It runs but accepts no more clients: raise maxclients."),
    ("LOADING", "It runs and reads its log: wait."),
    ("LEAVING", "It is shutting down: wait, or start it again."),
    ("SSL", "It runs, and TLS fails: check the certificates, --cacert and --tls."),
    ("Connection closed by server", "It may require TLS: try with --tls."),
    ("is not understood", "Another server listens there: check the address."),
    ("refused", f"Start it; {_FORGET}."),
    ("imed out", f"Check whether it hangs, and the network in between; {_FORGET}."),
    ("imeout", f"Check whether it hangs, and the network in between; {_FORGET}."),
    ("no reply", f"Check whether it hangs, and the network in between; {_FORGET}."),
    ("", f"Check the node and the network in between; {_FORGET}."),
)
#: Parts of reasons that only a running node gives.
_ANSWERS: Final = ("NOAUTH", "password", "WRONGPASS", "DENIED", "max number of clients", "LOADING")


def _lives(why: str) -> bool:
    return any(part in why for part in _ANSWERS)


def _disagreements(survey: Survey) -> Iterator[Finding]:
    everybody = set().union(*(view.met for view in survey.views.values()))
    for view in survey.views.values():
        for missing in sorted(everybody - view.met):
            where = survey.views[missing].address if missing in survey.views else missing
            yield Finding(
                _PROBLEM,
                view.address,
                f"does not know {where}, which other nodes know",
                "Wait a minute; then disque cluster meet, or disque cluster forget if it should be"
                " gone.",
            )


def _clocks(survey: Survey) -> Iterator[Finding]:
    clocks = sorted((view.clock_s, view.address) for view in survey.views.values())
    apart_s = clocks[-1][0] - clocks[0][0]
    if apart_s > _CLOCKS_S:
        yield Finding(
            _PROBLEM,
            clocks[-1][1],
            f"its clock is {apart_s:.1f} s ahead of that of {clocks[0][1]}",
            "Synchronise the clocks with NTP: jobs expire and are sorted by them.",
        )


def _versions(survey: Survey) -> Iterator[Finding]:
    versions = {view.info.get("disque_version", "?") for view in survey.views.values()}
    if len(versions) > 1:
        asked = ", ".join(sorted(map(printable, versions)))
        yield Finding(_PROBLEM, "cluster", f"versions differ: {asked}", "Upgrade the older nodes.")


def _names(survey: Survey) -> Iterator[Finding]:
    names = {view.info.get("cluster_name", "") for view in survey.views.values()}
    if len(names) > 1:
        listed = ", ".join(sorted(printable(name) or "none" for name in names))
        yield Finding(
            _PROBLEM,
            "cluster",
            f"the nodes have different values of cluster-name: {listed}",
            "Set one name on all nodes: those of another name refuse to introduce each other.",
        )


# -- each node -----------------------------------------------------------------------------------

_BAD_FLAGS: Final = {
    "fail": "Check that node; or disque cluster forget if it is gone for good.",
    "fail?": "Check that node and the network in between.",
    "handshake": "Wait a minute; if it stays, the bus port (the port + 10000) cannot be reached.",
    "noaddr": "The node there was reset or has another ID now: disque cluster forget.",
}


def _flags(view: SurveyedNode) -> Iterator[Finding]:
    for node in view.others:
        place = f"{printable(node.address)} ({node.id[:8]})"
        bad = node.flags & set(_BAD_FLAGS)
        for flag in sorted(bad):
            yield Finding(_PROBLEM, view.address, f"reports {place}: {flag}", _BAD_FLAGS[flag])
        if not bad and not node.connected:
            yield Finding(
                _PROBLEM,
                view.address,
                f"has no link to {place}",
                "Check whether the bus port (the port + 10000) there can be reached.",
            )


def _bus(view: SurveyedNode) -> Iterator[Finding]:
    bus = view.listening("bus")
    if bus and all(map(_is_loopback, bus)) and not _is_loopback(view.address):
        yield Finding(
            _PROBLEM,
            view.address,
            f"listens for other nodes on {printable(', '.join(bus))} only, so other hosts cannot"
            " connect",
            "Set cluster-bus-tls, or cluster-insecure on a network that strangers cannot reach.",
        )


def _is_loopback(address: str) -> bool:
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _duplicate_ids(view: SurveyedNode) -> Iterator[Finding]:
    if view.info.get("cluster_standing_aside") == "yes":
        what = "stands aside: a process that was started earlier has its ID"
        yield Finding(
            _PROBLEM,
            view.address,
            what,
            "Stop it, remove its nodes file and its log, start it again, and disque cluster meet.",
        )
    elif view.number("cluster_twins"):
        what = "receives messages of two processes with one node ID; its log says from where"
        yield Finding(
            _PROBLEM,
            view.address,
            what,
            "A nodes file was copied: stop the copy, remove"
            " its nodes file and its log, start it again.",
        )


def _discovery(view: SurveyedNode) -> Iterator[Finding]:
    error = view.info.get("discovery_error", "")
    if error:
        yield Finding(
            _PROBLEM,
            view.address,
            f"finds no nodes by {printable(error)}",
            "Correct cluster-discovery, the name or the file. Known nodes stay members, but new"
            " ones, and those with new addresses, are not found.",
        )
    if view.number("discovery_addresses_ignored"):
        yield Finding(
            _NOTE,
            view.address,
            f"ignores {view.number('discovery_addresses_ignored')} addresses that discovery found",
            "They are more than 1,000, or no addresses of nodes: correct the name or the file.",
        )


def _leaving(view: SurveyedNode) -> Iterator[Finding]:
    if "leaving" in view.flags:
        yield Finding(
            _NOTE,
            view.address,
            f"is leaving, with {view.number('registered_jobs')} jobs still there",
            "Stop it when it has no jobs; or CLUSTER LEAVING no.",
        )


#: Why copies are not made, by INFO's ``copies_obstacle`` → advice.
_OBSTACLES: Final = {
    "no-node": "There is no other node that could keep them: add one.",
    "no-answer": "The nodes that were asked keep none: look at their memory.",
    "paused": "replicate-again-rate is 0: raise it with CONFIG SET.",
}


def _copies(view: SurveyedNode) -> Iterator[Finding]:
    lacking = view.number("jobs_lacking_copies")
    if lacking:
        obstacle = view.info.get("copies_obstacle", "")
        eta_s = view.number("copies_eta_seconds")
        yield Finding(
            _PROBLEM,
            view.address,
            f"{lacking} of its jobs have fewer copies than they were added with",
            _OBSTACLES.get(obstacle, f"They are being made: wait about {eta_s} s."),
        )


def _original(view: SurveyedNode) -> Iterator[Finding]:
    if "eventlog_enabled" not in view.info:
        yield Finding(
            _NOTE,
            view.address,
            "runs the original Disque, which lacks fixes",
            "See docs/how-to/move-from-disque.md.",
        )


def _memory(view: SurveyedNode) -> Iterator[Finding]:
    used = view.number("used_memory")
    if view.maxmemory and used > _MEMORY_SHARE * view.maxmemory:
        yield Finding(
            _PROBLEM,
            view.address,
            f"uses {used * 100 // view.maxmemory} % of maxmemory",
            "Let workers catch up, add nodes, or raise maxmemory.",
        )


def _paused(view: SurveyedNode) -> Iterator[Finding]:
    if view.paused:
        yield Finding(
            _NOTE,
            view.address,
            f"{view.paused} of its first {QUEUES_MAX} queues are paused",
            "PAUSE queue none, if this is not intended.",
        )


def _log(view: SurveyedNode) -> Iterator[Finding]:
    for field, what in (
        ("aof_last_write_status", "cannot write its log"),
        ("aof_last_bgrewrite_status", "could not rewrite its log"),
        ("eventlog_status", "cannot write its event log"),
    ):
        status = view.info.get(field, "ok")
        if status != "ok":
            advice = "Check its disk; its log says more."
            yield Finding(_PROBLEM, view.address, f"{what}: {printable(status)}", advice)
    if view.number("eventlog_dropped"):
        what = f"dropped {view.number('eventlog_dropped')} events"
        yield Finding(_PROBLEM, view.address, what, "The disk is too slow for the event log.")


def _loading(view: SurveyedNode) -> Iterator[Finding]:
    if view.number("loading"):
        yield Finding(_PROBLEM, view.address, "is still loading its log", "Wait.")


_OF_ALL: Final[tuple[Callable[[Survey], Iterator[Finding]], ...]] = (
    _unreachable,
    _disagreements,
    _clocks,
    _versions,
    _names,
)
_OF_EACH: Final[tuple[Callable[[SurveyedNode], Iterator[Finding]], ...]] = (
    _flags,
    _bus,
    _duplicate_ids,
    _discovery,
    _leaving,
    _copies,
    _original,
    _memory,
    _paused,
    _log,
    _loading,
)
