"""A simulated network with TCP as it is, on good days and on bad ones.

A live connection never reorders, drops or duplicates bytes. But it may stall, be slow, end without
its last bytes, end for one side only, go silent in one direction, or deliver late what the caller
wrote before it gave up and called again. A partition drops nothing: bytes wait until it is over, or
until the connection is reset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from disque_tx.sim.world.connection import ByteStream, Medium, SimConnection
from disque_tx.sim.world.messagefaults import MessageFaults
from disque_tx.sim.world.world import World

__all__ = ["CONNECT_US_MAX", "End", "Network", "SimConnection"]

CONNECT_US_MAX: Final = 2_000_000
_KEEPALIVE_US: Final = (4_000_000, 15_000_000)
_LATENCY_US: Final = (50, 800)
_JITTER_US_MAX: Final = 100
_AGAIN_US: Final = 500_000
_SOON_US: Final = (0, 50_000)

#: Ends something that was begun; harmless when it is over already.
End = Callable[[], None]

#: The machine at addresses that belong to none: nothing answers there.
NOBODY: Final = b"nobody"


Accept = Callable[[SimConnection], None]


class Network(Medium):
    """Hosts are known by their addresses only, which are any bytes.

    ``messages``: what goes wrong with messages of the bus, see there.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = world.random("network")
        self.messages = MessageFaults(world)
        self._shared: dict[tuple[bytes, int], bytes] = {}
        self._listeners: dict[tuple[bytes, int], tuple[Accept, bool]] = {}
        self._live: dict[int, SimConnection] = {}
        self._serial = 0
        self._latency_us: dict[tuple[bytes, bytes], int] = {}
        self._cuts: list[frozenset[tuple[bytes, bytes]]] = []
        self._slow: list[tuple[frozenset[bytes], int, int]] = []
        self._frozen: dict[bytes, list[Callable[[], None]]] = {}
        self._off: set[bytes] = {NOBODY}
        self._seen_as: dict[bytes, bytes] = {}

    @property
    def message_faults(self) -> float:
        """Which part of the bus messages is dropped, duplicated or overtaken, 0 to 0.3."""
        return self.messages.rate

    @message_faults.setter
    def message_faults(self, rate: float) -> None:
        self.messages.rate = rate

    # -- for programs ------------------------------------------------------------------------

    def listen(self, ip: bytes, port: int, on_accept: Accept, messages: bool = False) -> None:
        """Accept connections, until :meth:`stop_listening`. ``messages``: they carry those of the
        bus."""
        self._listeners[ip, port] = (on_accept, messages)

    def share(self, host: bytes, port: int, ip: bytes) -> None:
        """Connections to ``host`` at this port go to the machine with the address ``ip``."""
        self._shared[host, port] = ip

    def abandon(self, host: bytes, port: int) -> None:
        """Nothing answers at ``host`` at this port, until :meth:`share` gives it to a machine."""
        self._shared[host, port] = NOBODY

    def show_as(self, ip: bytes, host: bytes) -> None:
        """From now on other machines see connections of the machine ``ip`` come from ``host``."""
        self._seen_as[ip] = host

    def seen_as(self, ip: bytes) -> bytes:
        """The address that other machines see, of the machine ``ip``."""
        return self._seen_as.get(ip, ip)

    def stop_listening(self, ip: bytes) -> None:
        """Accept no more connections at this address."""
        for key in [key for key in self._listeners if key[0] == ip]:
            del self._listeners[key]

    def connect(
        self,
        src_ip: bytes,
        ip: bytes,
        port: int,
        on_up: Callable[[SimConnection], None],
        on_failed: Callable[[], None],
        timeout_us: int = CONNECT_US_MAX,
    ) -> None:
        """Connect; one of the two is called, later."""
        ip = self._shared.get((ip, port), ip)
        until_us = self.world.now_us + timeout_us

        def attempt() -> None:
            left_us = until_us - self.world.now_us
            if not self._reachable(src_ip, ip):
                if left_us <= 0:
                    self._awake(src_ip, on_failed)
                else:
                    self.world.at(min(_AGAIN_US, left_us), attempt)
                return
            found = self._listeners.get((ip, port))
            if found is None:
                self._awake(src_ip, on_failed)
                return
            self._made(src_ip, ip, port, found, on_up)

        self.world.at(2 * self.transit_us(src_ip, ip, 0), attempt)

    def _made(
        self,
        src_ip: bytes,
        ip: bytes,
        port: int,
        listener: tuple[Accept, bool],
        on_up: Callable[[SimConnection], None],
    ) -> None:
        self._serial += 1
        near = SimConnection(self, self._serial, src_ip, ip, port)
        far = SimConnection(self, self._serial, ip, src_ip, port)
        near.caller = True
        near.other, far.other = far, near
        near.out, far.out = ByteStream(self, near, far), ByteStream(self, far, near)
        self._live[near.serial] = near
        accept, messages = listener
        self.world.trace("connect", near.serial, src_ip.decode(), ip.decode(), port)
        self._awake(ip, lambda: accept(far) if far.open else None)
        self._awake(src_ip, lambda: on_up(near))
        if messages:
            near.carries_messages = far.carries_messages = True
            self.messages.connected(near)
            self.messages.connected(far)

    # -- for connections ---------------------------------------------------------------------

    def transit_us(self, src_ip: bytes, ip: bytes, size: int) -> int:
        """How long this number of bytes takes."""
        key = (src_ip, ip)
        latency_us = self._latency_us.get(key)
        if latency_us is None:
            latency_us = self._latency_us[key] = self.random.randint(*_LATENCY_US)
        transit_us = latency_us + int(self.random.random() * _JITTER_US_MAX)
        for ips, extra_us, bytes_per_s in self._slow:
            if src_ip in ips or ip in ips:
                transit_us += extra_us + size * 1_000_000 // bytes_per_s
        return transit_us

    def refuse(self, connection: SimConnection) -> None:
        """Something was written to an end that is gone: the writer is notified if it can be
        reached."""
        src_ip, ip = connection.local_ip, connection.peer_ip
        if self._reachable(src_ip, ip):
            delay_us = 2 * self.transit_us(src_ip, ip, 0)
        else:
            delay_us = self.random.randint(*_KEEPALIVE_US)
        self.world.at(delay_us, lambda: self._awake(src_ip, connection.lose))

    def tidy(self, connection: SimConnection) -> None:
        """An end closed: when both did, the connection is history."""
        if not connection.other.open:
            self._live.pop(connection.serial, None)

    def is_cut(self, src_ip: bytes, ip: bytes) -> bool:
        """Whether nothing gets from one to the other."""
        cuts = self._cuts
        return bool(cuts) and any((src_ip, ip) in cut for cut in cuts)

    def is_frozen(self, ip: bytes) -> bool:
        """Whether the program there reads nothing."""
        return ip in self._frozen

    def _reachable(self, src_ip: bytes, ip: bytes) -> bool:
        return not (ip in self._off or self.is_cut(src_ip, ip) or self.is_cut(ip, src_ip))

    def _awake(self, ip: bytes, action: Callable[[], None]) -> None:
        """Let the program at ``ip`` notice something, as soon as it notices anything."""
        waiting = self._frozen.get(ip)
        if waiting is None:
            action()
        else:
            waiting.append(action)

    def write_messages(self, connection: SimConnection, data: bytes) -> None:
        """Send messages of the bus, some of which may be lost, come twice or late."""
        self.messages.write(connection, data)

    # -- hosts -------------------------------------------------------------------------------

    def freeze(self, ip: bytes) -> None:
        """The program at ``ip`` is stopped: its system still accepts bytes, but nothing reads
        them."""
        self._frozen.setdefault(ip, [])

    def thaw(self, ip: bytes) -> None:
        """Resume; everything that arrived while it was stopped is delivered."""
        for action in self._frozen.pop(ip, []):
            action()
        self._kick()

    def kill(self, ip: bytes, power: bool) -> None:
        """The program at ``ip`` is gone: its connections are reset, or, by chance and always
        when it was the power, the other side does not know it yet."""
        self.stop_listening(ip)
        self._frozen.pop(ip, None)
        self.messages.forget(ip)
        if power:
            self._off.add(ip)
        for end in self._ends(ip):
            unaware = power or self.random.random() < 0.3
            delay_us = self.random.randint(*_KEEPALIVE_US) if unaware else 0
            self._break(end, delay_us)
            end.vanish()

    def power_on(self, ip: bytes) -> None:
        """The machine answers again."""
        self._off.discard(ip)

    def _ends(self, ip: bytes) -> list[SimConnection]:
        ends = [end for near in self._live.values() for end in (near, near.other)]
        return [end for end in ends if end.local_ip == ip and end.open]

    def _break(self, end: SimConnection, delay_us: int) -> None:
        """What ``end`` wrote is lost from some place on; the other one notices after
        ``delay_us``."""
        end.out.lose_tail()
        end.out.end(delay_us)
        end.other.out.lose_tail()
        end.other.out.broken = True

    # -- faults ------------------------------------------------------------------------------

    def live(self, messages: bool | None = None) -> list[SimConnection]:
        """The ends that connected, of connections of both kinds or of one; oldest first."""
        return [
            near
            for near in self._live.values()
            if near.open and near.other.open and messages in (None, near.carries_messages)
        ]

    def partition(self, a_ips: Iterable[bytes], b_ips: Iterable[bytes], one_way: bool) -> End:
        """Cut the network from a to b, and from b to a unless ``one_way``; some connections
        break."""
        a_ips, b_ips = list(a_ips), list(b_ips)
        pairs = [(a, b) for a in a_ips for b in b_ips]
        cut = frozenset(pairs if one_way else pairs + [(b, a) for a, b in pairs])
        self._cuts.append(cut)
        for near in self.live():
            crosses = self.is_cut(near.local_ip, near.peer_ip)
            if crosses and self.random.random() < 0.3:
                self.world.at(
                    self.random.randint(1_000_000, 10_000_000), partial(self._time_out, near)
                )
        return lambda: self._rejoin(cut)

    def _time_out(self, near: SimConnection) -> None:
        if near.open and self.is_cut(near.local_ip, near.peer_ip):
            self.reset(near)

    def _rejoin(self, cut: frozenset[tuple[bytes, bytes]]) -> None:
        if cut in self._cuts:
            self._cuts.remove(cut)
            self._kick()

    def slow(self, ips: Iterable[bytes], extra_us: int, bytes_per_s: int) -> End:
        """Everything from and to these addresses takes longer."""
        entry = (frozenset(ips), extra_us, bytes_per_s)
        self._slow.append(entry)
        return lambda: self._slow.remove(entry) if entry in self._slow else None

    def reset(self, near: SimConnection) -> None:
        """Reset a connection: both directions lose their tails; each side notices soon, or when it
        next writes."""
        for end in (near, near.other):
            end.out.lose_tail()
        for end in (near, near.other):
            soon = self.random.random() < 0.5
            end.out.end(self.random.randint(*(_SOON_US if soon else _KEEPALIVE_US)))

    def half_open(self, end: SimConnection) -> None:
        """Drop this side of a connection; the other side does not learn of it."""
        self._break(end, self.random.randint(*_KEEPALIVE_US))
        self._awake(end.local_ip, end.lose)

    def deliver_late(self, near: SimConnection, us: int) -> None:
        """The caller finds the connection gone; all it wrote arrives, but only in ``us``."""
        near.out.stall(us)
        near.out.end()
        near.other.out.lose_tail()
        near.other.out.broken = True
        self._awake(near.local_ip, near.lose)

    def heal(self) -> None:
        """The network is whole again; what was silent in one direction is reset after a while."""
        self._cuts.clear()
        self._slow.clear()
        self.message_faults = 0.0
        for near in self.live():
            near.out.stall(0)
            near.other.out.stall(0)
            if near.out.dead or near.other.out.dead:
                self.world.at(self.random.randint(0, 2_000_000), partial(self.reset, near))
        self._kick()

    def _kick(self) -> None:
        for near in list(self._live.values()):
            near.out.kick()
            near.other.out.kick()
