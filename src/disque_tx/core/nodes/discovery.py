"""Which of the addresses that discovery finds are met, and when.

Services look up names and read files (``services/discovery``); what they find comes here, source by
source. An address is met by a MEET, as if an operator had named it:

1. Not if a member is known to be there, or this node itself is. An address that turned out to be
   another one of a member, or of this node, is left alone as long as that member can be reached.
2. A connection that cannot be made, or no answer within a second (later two, then four), ends the
   try. The next one begins an interval after it, from the second failure on two: so nodes that can
   reach each other again are one cluster within three intervals.
3. Few handshakes at a time, and few enough that strangers can introduce themselves meanwhile;
   addresses that failed least often go first. Up to 1,000 addresses are kept.
4. What a source lists is replaced by its next answer that lists anything. Members are never dropped
   because their address is no longer listed.

All times are those of the steady clock.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, ip_address
from typing import Final

from mypy_extensions import i64

from disque_tx.core.nodes.addresses import (
    BUS_PORT_OFFSET,
    normal_ip,
    plain_ip,
    ports_usable,
    short_bus_port,
)
from disque_tx.core.nodes.failure import failing
from disque_tx.core.nodes.links import Links
from disque_tx.core.nodes.membership import Membership
from disque_tx.messages.nodes import HANDSHAKE, NOADDR, NodeEntry

ADDRESSES_MAX: Final = 1_000
#: Handshakes of discovery at a time; others may have 64 under way before strangers are refused.
TRIES_MAX: Final = 48
INTERVAL_MS: Final = 10_000
_PATIENCE_MS: Final = 1_000
#: Of failures in a row, as many count.
_FAILURES_MAX: Final = 2
_JITTER: Final = 0.25
#: By how much, in all, one wait for the next lookup differs from another.
_LOOKUP_JITTER: Final = 0.2
_BROADCAST: Final = IPv4Address("255.255.255.255")

#: IP address, port for clients, bus port; 0 for the bus port that belongs to the port.
Place = tuple[bytes, int, int]


class Candidate:
    """An address at which a node may be. ``attempts``: tries in a row that failed; ``retry_ms``:
    none is made before. ``entry``: the handshake under way. ``owner``: ID of the node that answered
    there, though it is known by another address."""

    __slots__ = ("ip", "port", "bus_port", "attempts", "retry_ms", "entry", "owner")

    def __init__(self, place: Place) -> None:
        self.ip: bytes = place[0]
        self.port: i64 = place[1]
        self.bus_port: i64 = place[2]
        self.attempts: i64 = 0
        self.retry_ms: i64 = 0
        self.entry: NodeEntry | None = None
        self.owner: bytes = b""


class Source:
    """What one source has answered. ``places``: in its latest answer that listed any.
    ``failures``: lookups that failed or listed nothing, in all; ``error``: why the latest one did,
    empty if it did not. ``answered_ms``: when it last listed any, 0 for never."""

    __slots__ = ("name", "places", "failures", "error", "answered_ms")

    def __init__(self, name: str) -> None:
        self.name: str = name
        self.places: list[Place] = []
        self.failures: i64 = 0
        self.error: str = ""
        self.answered_ms: i64 = 0


class Discovery:
    """``interval_ms``: between two lookups of a source. ``meets``: how many addresses were tried,
    in all. ``ignored``: how many addresses the latest answers list that are none of a node, or
    beyond ``ADDRESSES_MAX``. ``random``: a number in [0, 1) per call."""

    __slots__ = (
        "sources",
        "interval_ms",
        "meets",
        "ignored",
        "_membership",
        "_links",
        "_random",
        "_candidates",
        "_next_ms",
    )

    def __init__(self, membership: Membership, links: Links, random: Callable[[], float]) -> None:
        self.sources: dict[str, Source] = {}
        self.interval_ms: i64 = INTERVAL_MS
        self.meets: i64 = 0
        self.ignored: i64 = 0
        self._membership: Membership = membership
        self._links: Links = links
        self._random: Callable[[], float] = random
        self._candidates: dict[Place, Candidate] = {}
        self._next_ms: i64 = 0

    @property
    def addresses(self) -> int:
        """How many addresses are known from the sources."""
        return len(self._candidates)

    def errors(self) -> list[str]:
        """Of the sources whose latest lookup failed, the names and the reasons."""
        return [f"{one.name}: {one.error}" for one in self.sources.values() if one.error]

    # -- what sources answer -----------------------------------------------------------------

    def pause_s(self, chance: float) -> float:
        """How long after the beginning of a lookup the next one of the same source begins: the
        interval, a little more or less, so that nodes that were started together do not ask
        together. ``chance``: a random number in [0, 1)."""
        return (
            float(int(self.interval_ms)) / 1000 * (1 - _LOOKUP_JITTER / 2 + _LOOKUP_JITTER * chance)
        )

    def source(self, name: str) -> Source:
        """The source of this name, a new one if there is none."""
        found = self.sources.get(name)
        if found is None:
            found = self.sources[name] = Source(name)
        return found

    def found(self, name: str, places: list[Place], now_ms: i64) -> None:
        """A source has answered with these addresses, of which there must be one."""
        source = self.source(name)
        source.error = ""
        source.answered_ms = now_ms
        if places == source.places:
            return
        source.places = places
        kept: dict[Place, Candidate] = {}
        ignored = 0
        for one in self.sources.values():
            for listed in one.places:
                place = usable(listed)
                if place is None or (len(kept) >= ADDRESSES_MAX and place not in kept):
                    ignored += 1
                elif place not in kept:
                    kept[place] = self._candidates.get(place) or Candidate(place)
        for place, candidate in self._candidates.items():
            entry = candidate.entry
            if place not in kept and entry is not None and self._under_way(entry):
                self._links.drop(entry)
        self._candidates = kept
        self.ignored = ignored
        self._next_ms = 0

    def failed(self, name: str, why: str) -> bool:
        """The lookup of a source failed, or listed nothing; whether that is news."""
        source = self.source(name)
        news = source.error != why
        source.failures += 1
        source.error = why
        return news

    # -- time --------------------------------------------------------------------------------

    def tick(self, now_ms: i64, node_timeout_ms: i64) -> None:
        """Record what comes of the tries under way, and begin those that are due."""
        if not self._candidates or now_ms < self._next_ms:
            return
        candidates = sorted(self._candidates.values(), key=_attempts)
        next_ms: i64 = now_ms + self.interval_ms
        trying: i64 = 0
        for candidate in candidates:
            if candidate.entry is not None and self._review(candidate, now_ms, node_timeout_ms):
                trying += 1
        taken = self._taken()
        for candidate in candidates:
            if candidate.entry is None and now_ms >= candidate.retry_ms:
                if self._is_known(candidate, taken):
                    candidate.retry_ms = now_ms + self.interval_ms
                elif trying < TRIES_MAX and self._meet(candidate, now_ms):
                    trying += 1
            next_ms = min(next_ms, candidate.retry_ms)
        self._next_ms = now_ms if trying else next_ms

    def _under_way(self, entry: NodeEntry) -> bool:
        return entry.flags & HANDSHAKE != 0 and self._membership.nodes.get(entry.id) is entry

    def _review(self, candidate: Candidate, now_ms: i64, node_timeout_ms: i64) -> bool:
        """Whether the try of this address goes on; if not, what comes of it is recorded."""
        entry = candidate.entry
        assert entry is not None
        if self._under_way(entry):
            patience_ms: i64 = min(i64(_PATIENCE_MS) << candidate.attempts, node_timeout_ms)
            if now_ms - entry.created_ms <= patience_ms:
                return True
            self._links.drop(entry)
        candidate.entry = None
        candidate.owner = entry.answered_by
        if entry.flags & HANDSHAKE == 0 or self._answers(candidate.owner):
            candidate.attempts = 0
            candidate.retry_ms = now_ms + self.interval_ms
        else:
            candidate.attempts = min(candidate.attempts + 1, _FAILURES_MAX)
            wait_ms: i64 = candidate.attempts * self.interval_ms
            wait_ms -= int(self._random() * _JITTER * int(wait_ms))
            candidate.retry_ms = max(entry.created_ms + wait_ms, now_ms)
        return False

    def _taken(self) -> set[tuple[bytes, int]]:
        """IP addresses and bus ports of this node and of all members."""
        return {
            (plain_ip(entry.ip), int(entry.bus_port or entry.port + BUS_PORT_OFFSET))
            for entry in self._membership.nodes.values()
            if entry.ip and not entry.flags & (HANDSHAKE | NOADDR)
        }

    def _is_known(self, candidate: Candidate, taken: set[tuple[bytes, int]]) -> bool:
        bus_port = int(candidate.bus_port or candidate.port + BUS_PORT_OFFSET)
        return (candidate.ip, bus_port) in taken or self._answers(candidate.owner)

    def _answers(self, node_id: bytes) -> bool:
        """Whether this is a member that can be reached, or this node."""
        entry = self._membership.nodes.get(node_id)
        if entry is None or entry is self._membership.myself:
            return entry is not None
        return entry.link is not None and not failing(entry)

    def _meet(self, candidate: Candidate, now_ms: i64) -> bool:
        """Begin a try; ``False`` if there is a handshake with this address already."""
        candidate.entry = self._membership.discover(
            candidate.ip, candidate.port, candidate.bus_port, now_ms
        )
        if candidate.entry is None:
            candidate.retry_ms = now_ms + _PATIENCE_MS
            return False
        self.meets += 1
        candidate.owner = b""
        return True


def _attempts(candidate: Candidate) -> int:
    return int(candidate.attempts)


def usable(place: Place) -> Place | None:
    """The address in its normal form; ``None`` if no node can be there."""
    ip, port, bus_port = plain_ip(normal_ip(place[0])), place[1], place[2]
    if not ip or not ports_usable(port, bus_port):
        return None
    address = ip_address(ip.decode("ascii"))
    if address.is_multicast or address.is_unspecified or address == _BROADCAST:
        return None
    return ip, port, int(short_bus_port(port, bus_port))
