"""What the parts of a machine and of its process need of each other: the process that runs, and the
machine that it runs on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs

from disque_tx.commands.base.context import Server
from disque_tx.commands.dispatch import Dispatcher
from disque_tx.config.settings import Settings
from disque_tx.core.node import Node
from disque_tx.core.nodes.addresses import BUS_PORT_OFFSET
from disque_tx.core.nodes.discovery import Place
from disque_tx.engine.aof.log import AppendOnlyLog
from disque_tx.engine.sidefiles import TableFiles
from disque_tx.engine.turns import Turns
from disque_tx.messages.bus import Message
from disque_tx.messages.bustypes import (
    CAN_BULK,
    CAN_LOADED,
    CAN_MATCH,
    CAN_QUERY,
    CAN_REPAIR,
    CAN_TABLES,
)
from disque_tx.messages.events import EventSink
from disque_tx.sim.world.disk import Disk
from disque_tx.sim.world.network import Network
from disque_tx.sim.world.world import MachineClocks, World


@attrs.frozen
class MachineSettings:
    """How its node is configured. ``appendfsync``: ``always``, ``everysec`` or ``no``.
    ``enqueue_once``: jobs that an orderly stop left in queues are queued again at once.
    ``maxmemory``: bytes, 0 for no limit. ``password``: what clients must know, empty for none.
    ``features``: what the node can do besides what the original can. ``policies``: pattern, setting
    and value of those in force. ``replicate_again_ms``: for how long a node fails before its copies
    are made again; ``forget_after_ms``: before it is forgotten, 0 for never. ``cluster``: the name
    of the cluster, and the mark of its password. ``discovery_ms``: how often a node looks up a name
    under which it finds the others, 0 for never: then an operator introduces it. ``announces``: it
    announces its address if that is not the one of the machine."""

    appendonly: bool = False
    appendfsync: str = "everysec"
    enqueue_once: bool = False
    node_timeout_ms: int = 3000
    maxmemory: int = 0
    password: bytes = b""
    features: int = CAN_TABLES | CAN_BULK | CAN_QUERY | CAN_MATCH | CAN_LOADED | CAN_REPAIR
    policies: tuple[tuple[bytes, bytes, bytes], ...] = ()
    replicate_again_ms: int = 300_000
    forget_after_ms: int = 0
    cluster: tuple[bytes, int] = (b"", 0)
    discovery_ms: int = 0
    announces: bool = True


class Running:
    """A process, as its connections, its turns and its control see it. ``alive``: until it stops,
    is killed, or ends itself. ``frozen``: it is stopped and does nothing, though time goes on.
    ``feed``: input for the next turn."""

    machine: Hardware
    world: World
    network: Network
    ip: bytes
    alive: bool
    frozen: bool
    config: Settings
    node: Node
    server: Server
    dispatcher: Dispatcher
    turns: Turns
    log: AppendOnlyLog
    table_files: TableFiles
    feed: Callable[[Callable[[], object]], None]

    @contextmanager
    def turn(self) -> Iterator[Node]:
        """A turn with the input in the block."""
        raise NotImplementedError
        yield self.node

    def turn_over(self) -> None:
        """Do what was to be done after the turn."""
        raise NotImplementedError

    def tick(self) -> None:
        """Ten times a second."""
        raise NotImplementedError

    def guard(self, work: Callable[[], object]) -> None:
        """Do something whose faults are findings."""
        raise NotImplementedError

    def fail(self, reason: str) -> None:
        """Something happened here that must not happen."""
        raise NotImplementedError

    def leaves(self, what: str) -> None:
        """Something is sent: it may depend on nothing that was not written to disk."""
        raise NotImplementedError

    def save_nodes(self, sync: bool = False) -> None:
        """Write the nodes file; ``OSError`` when it is out of date afterwards."""
        raise NotImplementedError

    def ask_to_stop(self) -> None:
        """End in an orderly way, after the turn."""
        raise NotImplementedError

    def ask_to_pause(self, us: int) -> None:
        """Do nothing for so long, after the turn."""
        raise NotImplementedError

    def ask_to_die(self, why: str) -> None:
        """End at once, after the turn."""
        raise NotImplementedError


#: What a name stands for: the places of nodes, or why there are none.
Answer = list[Place] | str


class NameLookup:
    """A name that nodes look up."""

    def look_up(self, done: Callable[[Answer], None]) -> None:
        """Call ``done``, later."""
        raise NotImplementedError


class Hardware:
    """A machine, as its process sees it. ``port``: for clients. ``host``: the address under which
    other nodes know it, which the machines of one host share; ``ip`` by default. ``on_turn``:
    called at the end of every turn of any process; ``on_send``: with every message to another node
    that is not one of those sent most. ``events``: makes the sink for the events of a process.
    ``joins``: it is one of several of its daemon, and serves no jobs before it reaches the
    others. ``names``: where the node looks up the others, if its settings say so."""

    def __init__(
        self,
        world: World,
        network: Network,
        ip: bytes,
        port: int,
        settings: MachineSettings,
        host: bytes = b"",
    ) -> None:
        self.world = world
        self.network = network
        self.ip = ip
        self.port = port
        self.host = host or ip
        self.settings = settings
        network.share(self.host, port + BUS_PORT_OFFSET, ip)
        self.name = ip.decode()
        self.disk = Disk(world, self.name)
        self.clocks = MachineClocks(world, self.name)
        self.on_turn: list[Callable[[Running], None]] = []
        self.on_send: list[Callable[[Running, Message], None]] = []
        self.events: Callable[[Running], EventSink] | None = None
        self.joins = False
        self.names: NameLookup | None = None

    @property
    def announced(self) -> bytes:
        """The address that the node announces, empty for the one where it connects from."""
        return self.host if self.host != self.ip and self.settings.announces else b""

    def stop(self) -> None:
        """Stop the process in an orderly way."""
        raise NotImplementedError

    def pause(self, us: int) -> None:
        """Stop the process for so long: input queues up, and what is due meanwhile comes late."""
        raise NotImplementedError

    def die(self, reason: str) -> None:
        """The process ends itself at once."""
        raise NotImplementedError

    def give_up(self, reason: str) -> None:
        """The process ends itself in an orderly way."""
        raise NotImplementedError

    def lose_power(self) -> None:
        """The power fails while the process is at work."""
        raise NotImplementedError
