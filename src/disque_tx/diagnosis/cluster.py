"""What is wrong between the nodes of a cluster: nodes that are silent, and disagreements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from disque_tx.client.errors import printable
from disque_tx.diagnosis.facts import Survey
from disque_tx.diagnosis.finding import PROBLEM, Finding

_CLOCKS_S: Final = 2.0
#: The page of the console about nodes.
NODES_PAGE: Final = "#/nodes"


def unreachable(survey: Survey) -> Iterator[Finding]:
    """Nodes that do not answer, or refuse to."""
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


def disagreements(survey: Survey) -> Iterator[Finding]:
    """Nodes that some know, and others do not."""
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


def clocks(survey: Survey) -> Iterator[Finding]:
    """Clocks that are apart."""
    clocks = sorted((view.clock_s, view.address) for view in survey.views.values())
    apart_s = clocks[-1][0] - clocks[0][0] if clocks else 0.0
    if apart_s > _CLOCKS_S:
        yield Finding(
            PROBLEM,
            clocks[-1][1],
            f"its clock is {apart_s:.1f} s ahead of that of {clocks[0][1]}",
            "Synchronise the clocks with NTP: jobs expire and are sorted by them.",
        )


def versions(survey: Survey) -> Iterator[Finding]:
    """Releases that differ; ``disque_version`` is that of the original in all of them."""
    views = survey.views.values()
    versions = {view.info.get("disque_tx_version", "") for view in views} - {""}
    if len(versions) > 1:
        asked = ", ".join(sorted(map(printable, versions)))
        what = f"versions of disque-tx differ: {asked}"
        yield Finding(PROBLEM, "cluster", what, "Upgrade the older nodes.", link=NODES_PAGE)


def names(survey: Survey) -> Iterator[Finding]:
    """Nodes with different names of their cluster."""
    names = {view.info.get("cluster_name", "") for view in survey.views.values()}
    if len(names) > 1:
        listed = ", ".join(sorted(printable(name) or "none" for name in names))
        yield Finding(
            PROBLEM,
            "cluster",
            f"the nodes have different values of cluster-name: {listed}",
            "Set one name on all nodes: those of another name refuse to introduce each other.",
        )
