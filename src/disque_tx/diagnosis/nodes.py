"""What is wrong with the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import Final

from disque_tx.client.errors import printable
from disque_tx.client.values import ClusterNode
from disque_tx.diagnosis.facts import QUEUES_MAX, Survey, SurveyedNode
from disque_tx.diagnosis.finding import NOTE, PROBLEM, Check, Finding

#: From this part of maxmemory on, a node keeps no new jobs itself.
_MEMORY_SHARE: Final = 0.75
_CLOCKS_S: Final = 2.0
#: How many nodes a finding names.
_NAMED: Final = 3
#: The page of the console about nodes.
NODES_PAGE: Final = "#/nodes"

# -- the nodes together --------------------------------------------------------------------------


def _unreachable(survey: Survey) -> Iterator[Finding]:
    for address, why in survey.silent.items():
        yield Finding(
            PROBLEM,
            address,
            f"{'refuses' if _lives(why) else 'does not answer'}: {why}",
            next(advice for part, advice in _ADVICE if part in why),
            _last_heard_s(survey, address),
            NODES_PAGE,
        )


def _last_heard_s(survey: Survey, address: str) -> float | None:
    """When another node had the last answer of the node at this address."""
    known = [
        node.pong_received_ms / 1000
        for view in survey.views.values()
        for node in view.others
        if node.address == address and node.pong_received_ms
    ]
    return max(known, default=None)


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
                PROBLEM,
                view.address,
                f"does not know {where}, which other nodes know",
                "Wait a minute; then disque cluster meet, or disque cluster forget if it should be"
                " gone.",
            )


def _clocks(survey: Survey) -> Iterator[Finding]:
    clocks = sorted((view.clock_s, view.address) for view in survey.views.values())
    apart_s = clocks[-1][0] - clocks[0][0] if clocks else 0.0
    if apart_s > _CLOCKS_S:
        yield Finding(
            PROBLEM,
            clocks[-1][1],
            f"its clock is {apart_s:.1f} s ahead of that of {clocks[0][1]}",
            "Synchronise the clocks with NTP: jobs expire and are sorted by them.",
        )


def _versions(survey: Survey) -> Iterator[Finding]:
    """``disque_version`` is that of the original in all releases of this package."""
    views = survey.views.values()
    versions = {view.info.get("disque_tx_version", "") for view in views} - {""}
    if len(versions) > 1:
        asked = ", ".join(sorted(map(printable, versions)))
        what = f"versions of disque-tx differ: {asked}"
        yield Finding(PROBLEM, "cluster", what, "Upgrade the older nodes.", link=NODES_PAGE)


# -- each node -----------------------------------------------------------------------------------

#: Flag of another node → what that means, and what to do.
_BAD_FLAGS: Final = {
    "fail": ("is down", "Check that node; or disque cluster forget if it is gone for good."),
    "fail?": ("may be down", "Check that node and the network in between."),
    "handshake": (
        "is not a member yet",
        "Wait a minute; if it stays, its bus port cannot be reached: the port + 10000, or its"
        " cluster-bus-port.",
    ),
    "noaddr": (
        "has no known address",
        "The node there was reset or has another ID now: disque cluster forget.",
    ),
}


def _flags(survey: Survey) -> Iterator[Finding]:
    """What nodes report of others; once for each, however many report it."""
    reports: dict[tuple[str, str], list[tuple[SurveyedNode, ClusterNode]]] = {}
    for view in survey.views.values():
        for node in view.others:
            if node.address not in survey.silent:
                for flag in node.flags & _BAD_FLAGS.keys():
                    reports.setdefault((node.id, flag), []).append((view, node))
    for (_node_id, flag), found in sorted(reports.items()):
        means, advice = _BAD_FLAGS[flag]
        node = found[0][1]
        who = ", ".join(sorted(view.address for view, _ in found)[:_NAMED])
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        heard_s = max(node.pong_received_ms for _, node in found) / 1000
        yield Finding(
            PROBLEM,
            printable(node.address),
            f"({node.id[:8]}) {means}: {who}{more} {'report' if len(found) > 1 else 'reports'}"
            f" {flag}",
            advice,
            heard_s or None,
            NODES_PAGE,
        )


def _links(view: SurveyedNode, survey: Survey) -> Iterator[Finding]:
    for node in view.others:
        bad = node.flags & _BAD_FLAGS.keys()
        if not bad and not node.connected and node.address not in survey.silent:
            yield Finding(
                PROBLEM,
                view.address,
                f"has no link to {printable(node.address)} ({node.id[:8]})",
                "Check whether the bus port there can be reached: the port + 10000, or its"
                " cluster-bus-port.",
                link=NODES_PAGE,
            )


def _bus(view: SurveyedNode, survey: Survey) -> Iterator[Finding]:
    bus = view.listening("bus")
    if bus and all(map(_is_loopback, bus)) and not _is_loopback(view.address):
        yield Finding(
            PROBLEM,
            view.address,
            f"listens for other nodes on {printable(', '.join(bus))} only, so other hosts cannot"
            " connect",
            "Set cluster-bus-tls, or cluster-insecure on a network that strangers cannot reach.",
        )


def _is_loopback(address: str) -> bool:
    host = address.rpartition(":")[0].strip("[]")
    if not host:
        return True  # only its port is known: it has not met any other node
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _duplicate_ids(view: SurveyedNode, survey: Survey) -> Iterator[Finding]:
    if view.info.get("cluster_standing_aside") == "yes":
        what = "stands aside: a process that was started earlier has its ID"
        yield Finding(
            PROBLEM,
            view.address,
            what,
            "Stop it, remove its nodes file and its log, start it again, and disque cluster meet.",
        )
    elif view.number("cluster_twins"):
        what = "receives messages of two processes with one node ID; its log says from where"
        yield Finding(
            PROBLEM,
            view.address,
            what,
            "A nodes file was copied: stop the copy, remove"
            " its nodes file and its log, start it again.",
        )


def _leaving(view: SurveyedNode, survey: Survey) -> Iterator[Finding]:
    if "leaving" in view.flags:
        yield Finding(
            NOTE,
            view.address,
            f"is leaving, with {view.number('registered_jobs')} jobs still there",
            "Stop it when it has no jobs; or CLUSTER LEAVING no.",
        )


def _original(view: SurveyedNode, survey: Survey) -> Iterator[Finding]:
    if not {"eventlog_enabled", "disque_tx_version"} & view.info.keys():
        yield Finding(
            NOTE,
            view.address,
            "runs the original Disque, which lacks fixes",
            "See docs/how-to/move-from-disque.md.",
        )


def _memory(view: SurveyedNode, survey: Survey) -> Iterator[Finding]:
    used = view.number("used_memory")
    if view.maxmemory and used > _MEMORY_SHARE * view.maxmemory:
        yield Finding(
            PROBLEM,
            view.address,
            f"uses {used * 100 // view.maxmemory} % of maxmemory",
            "Let workers catch up, add nodes, or raise maxmemory.",
        )


def _paused(view: SurveyedNode, survey: Survey) -> Iterator[Finding]:
    if view.paused and not survey.now_s:  # otherwise it is told of each queue
        yield Finding(
            NOTE,
            view.address,
            f"{view.paused} of its first {QUEUES_MAX} queues are paused",
            "PAUSE queue none, if this is not intended.",
            link="#/queues",
        )


def _copies(view: SurveyedNode, survey: Survey) -> Iterator[Finding]:
    lacking = view.number("jobs_lacking_copies")
    if lacking:
        what = f"holds {lacking} jobs that have fewer copies than they were added with"
        advice = "Start nodes that are down, or add one: copies are made again by themselves."
        yield Finding(PROBLEM, view.address, what, advice, link=NODES_PAGE)
    left = view.number("evacuation_left")
    if left:
        what = f"is being emptied: {left} jobs are still to be moved to other nodes"
        yield Finding(NOTE, view.address, what, "Wait before you stop it.", link=NODES_PAGE)


def _schedules(view: SurveyedNode, survey: Survey) -> Iterator[Finding]:
    failed, missed = view.number("schedules_failed"), view.number("schedules_missed")
    if failed:
        what = f"could not add {failed} jobs of schedules since its start"
        advice = "SCHEDULE LIST, or the page of recurring jobs, says which and why."
        yield Finding(PROBLEM, view.address, what, advice, link="#/schedules")
    if missed:
        what = f"left out {missed} occurrences of schedules that were missed, since its start"
        advice = "Set MISSED one or all for those that must be made up for."
        yield Finding(NOTE, view.address, what, advice, link="#/schedules")


def _log(view: SurveyedNode, survey: Survey) -> Iterator[Finding]:
    for field, what in (
        ("aof_last_write_status", "cannot write its log"),
        ("aof_last_bgrewrite_status", "could not rewrite its log"),
        ("eventlog_status", "cannot write its event log"),
    ):
        status = view.info.get(field, "ok")
        if status != "ok":
            advice = "Check its disk; its log says more."
            yield Finding(PROBLEM, view.address, f"{what}: {printable(status)}", advice)
    if view.number("eventlog_dropped"):
        what = f"dropped {view.number('eventlog_dropped')} events"
        yield Finding(PROBLEM, view.address, what, "The disk is too slow for the event log.")


def _loading(view: SurveyedNode, survey: Survey) -> Iterator[Finding]:
    if view.number("loading"):
        yield Finding(PROBLEM, view.address, "is still loading its log", "Wait.")


def _each(
    check: Callable[[SurveyedNode, Survey], Iterator[Finding]],
) -> Check:
    def checked(survey: Survey) -> Iterator[Finding]:
        for view in survey.views.values():
            yield from check(view, survey)

    return checked


#: What endangers jobs, in order of weight; then what does not.
NODE_CHECKS: Final[tuple[Check, ...]] = (
    _each(_log),
    _unreachable,
    _flags,
    _each(_duplicate_ids),
    _each(_copies),
    _each(_memory),
    _clocks,
    _each(_links),
    _disagreements,
    _each(_bus),
    _each(_loading),
    _each(_schedules),
    _versions,
    _each(_leaving),
    _each(_paused),
    _each(_original),
)
