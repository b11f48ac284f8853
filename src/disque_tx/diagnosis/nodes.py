"""What is wrong with the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import Final

from disque_tx.client.errors import printable
from disque_tx.client.values import ClusterNode
from disque_tx.diagnosis.cluster import (
    NODES_PAGE,
    clocks,
    disagreements,
    names,
    unreachable,
    versions,
)
from disque_tx.diagnosis.facts import QUEUES_MAX, Survey, SurveyedNode
from disque_tx.diagnosis.finding import NOTE, PROBLEM, Check, Finding
from disque_tx.text.counts import counted

#: From this part of maxmemory on, a node keeps no new jobs itself.
_MEMORY_SHARE: Final = 0.75
#: A certificate is urgent in this part of the time before its end in which it is reported.
_CERTIFICATE_URGENT: Final = 7 / 30
_DAY_S: Final = 86_400
#: From so many delays in a minute on a node is slow; and from so many, or such a long one, that is
#: a problem.
_DELAYS_NOTED: Final = 3
_DELAYS_MANY: Final = 10
_DELAY_LONG_S: Final = 5.0
#: How many nodes a finding names.
_NAMED: Final = 3

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


def _discovery(view: SurveyedNode, survey: Survey) -> Iterator[Finding]:
    error = view.info.get("discovery_error", "")
    if error:
        yield Finding(
            PROBLEM,
            view.address,
            f"finds no nodes by {printable(error)}",
            "Correct cluster-discovery, the name or the file. Known nodes stay members, but new"
            " ones, and those with new addresses, are not found.",
        )
    if view.number("discovery_addresses_ignored"):
        yield Finding(
            NOTE,
            view.address,
            f"ignores {view.number('discovery_addresses_ignored')} addresses that discovery found",
            "They are more than 1,000, or no addresses of nodes: correct the name or the file.",
        )


#: Why copies are not made, by INFO's ``copies_obstacle`` → advice.
_OBSTACLES: Final = {
    "no-node": "There is no other node that could keep them: start one that is down, or add one.",
    "no-answer": "The nodes that were asked keep none: look at their memory.",
    "paused": "replicate-again-rate is 0: raise it with CONFIG SET.",
}
#: Why jobs are still at a node that gives them away, by INFO's ``evacuation_obstacle`` → advice.
_EVACUATION_OBSTACLES: Final = {
    **_OBSTACLES,
    "no-node": "No other node takes jobs: start one that is down, or add one.",
    "clients": "Clients of this node work on them: they end, or RETRY does.",
    "acknowledgements": "Holders that have not confirmed acknowledgements cannot be reached.",
}


def _leaving(view: SurveyedNode, survey: Survey) -> Iterator[Finding]:
    if view.info.get("evacuating") == "yes":
        left = view.number("evacuation_left")
        soon = "They leave: wait." if left else "Stop it; or CLUSTER LEAVING no."
        advice = _EVACUATION_OBSTACLES.get(view.info.get("evacuation_obstacle", ""), soon)
        rest = f"with {counted(left, 'job')} to give away" if left else "and is empty"
        what = f"is leaving, {rest}"
        yield Finding(NOTE, view.address, what, advice, link=NODES_PAGE)
    elif "leaving" in view.flags:
        yield Finding(
            NOTE,
            view.address,
            f"is leaving, with {counted(view.number('registered_jobs'), 'job')} still there",
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


def _delays(view: SurveyedNode, survey: Survey) -> Iterator[Finding]:
    delays, longest_s = view.number("event_loop_delays"), view.seconds("event_loop_delay_seconds")
    if delays >= _DELAYS_NOTED:
        yield Finding(
            PROBLEM if delays >= _DELAYS_MANY or longest_s >= _DELAY_LONG_S else NOTE,
            view.address,
            f"is slow: it could do nothing for up to {longest_s:.1f} s, {counted(delays, 'time')}"
            " in the last minute",
            "Its machine is busy or swaps, or commands take long: SLOWLOG GET shows these.",
            link=NODES_PAGE,
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
    if view.paused and not survey.now_s:  # otherwise each queue has its own finding
        yield Finding(
            NOTE,
            view.address,
            f"has {counted(view.paused, 'paused queue')} among its first {QUEUES_MAX}",
            "PAUSE queue none, if this is not intended.",
            link="#/queues",
        )


def _copies(view: SurveyedNode, survey: Survey) -> Iterator[Finding]:
    lacking, eta_s = view.number("jobs_lacking_copies"), view.number("copies_eta_seconds")
    obstacle = view.info.get("copies_obstacle", "")
    # On a busy machine a copy is late now and then, and made before anybody has read of it.
    if lacking and (obstacle or eta_s > 1):
        soon = f"They are being made: wait about {eta_s} s."
        each = (
            "has fewer copies than it was" if lacking == 1 else "have fewer copies than they were"
        )
        what = f"holds {counted(lacking, 'job')} that {each} added with"
        advice = _OBSTACLES.get(obstacle, soon)
        yield Finding(PROBLEM, view.address, what, advice, link=NODES_PAGE)
    asked = view.number("holders_asked")
    if asked:
        what = f"asks {counted(asked, 'restarted node')} which copies are left there"
        advice = "Wait, before another node is stopped."
        yield Finding(NOTE, view.address, what, advice, link=NODES_PAGE)


def _schedules(view: SurveyedNode, survey: Survey) -> Iterator[Finding]:
    failed, missed = view.number("schedules_failed"), view.number("schedules_missed")
    if failed:
        what = f"could not add {counted(failed, 'job')} of schedules since its start"
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
        what = f"dropped {counted(view.number('eventlog_dropped'), 'event')}"
        yield Finding(PROBLEM, view.address, what, "The disk is too slow for the event log.")


def _certificates(view: SurveyedNode, survey: Survey) -> Iterator[Finding]:
    left_s = view.number("certificate_expires_in_seconds")
    near_end_s = view.number("certificate_near_end_seconds")
    name = view.info.get("certificate_next")
    if name is None or left_s >= near_end_s:
        return
    if not left_s:
        when = "has expired"
    elif left_s < 2 * _DAY_S:
        when = f"expires in {counted(left_s // 3600, 'hour')}"
    else:
        when = f"expires in {counted(left_s // _DAY_S, 'day')}"
    yield Finding(
        PROBLEM if left_s < near_end_s * _CERTIFICATE_URGENT else NOTE,
        view.address,
        f"has a certificate, of {printable(name)}, that {when}",
        "Put a new one in its place, then send SIGHUP to its process ('systemctl reload disque').",
    )


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
    unreachable,
    _flags,
    _each(_duplicate_ids),
    _each(_copies),
    _each(_discovery),
    _each(_memory),
    _each(_delays),
    clocks,
    _each(_links),
    disagreements,
    _each(_bus),
    _each(_loading),
    _each(_certificates),
    _each(_schedules),
    versions,
    names,
    _each(_leaving),
    _each(_paused),
    _each(_original),
)
