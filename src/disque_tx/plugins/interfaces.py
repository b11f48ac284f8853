"""What protocols for clients, which are plugins, may use of the node, and what they provide."""
# ruff: noqa: N805  the methods of an interface are written without self

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, BinaryIO

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress, IProtocolFactory, IReactorTime
from zope.interface import Attribute, Interface

from disque_tx.commands.direct import DirectNode, DirectProtocol
from disque_tx.plugins.values import (
    Durations,
    Health,
    JobEvent,
    ProtocolFigures,
    QueueCounts,
    QueueFigures,
    Role,
)


class IEventFiles(Interface):
    """The finished files of the event log."""

    def listed(after: str) -> Iterator[list[tuple[str, int]]]:
        """Names and sizes, sorted by name, of the files that are sorted behind ``after``. Names
        begin with the hour of the first event, as in ``dt=2026-11-26/hour=17/``. Each step is
        bounded, and returns some, often none."""

    def open(name: str) -> BinaryIO:
        """The file of this name: lines of JSON, compressed by Zstandard; ``FileNotFoundError``
        if there is none."""


class INodeView(Interface):
    """The state of the node, to be read on the reactor's thread; nothing here changes it."""

    def health() -> Health:
        """Whether the node can serve."""

    def info() -> dict[str, str]:
        """The fields of ``INFO ALL``."""

    def commands() -> list[tuple[str, int, int]]:
        """Name, calls and microseconds of every command that was used."""

    def nodes() -> dict[str, int]:
        """How many nodes of the cluster are in each state: ``connected``, ``unconnected``,
        ``suspected``, ``failed``, ``handshake``; this one is not counted."""

    def connected() -> frozenset[str]:
        """The IDs of the other nodes to which this one has a connection. One that is killed is
        missing at once, one that hangs after cluster-node-timeout."""

    def failure_reports() -> dict[str, list[str]]:
        """By ID of a node, the IDs of the others that have reported lately that it does not
        answer them; only nodes of which there are such reports."""

    def durations() -> tuple[Durations, Durations]:
        """How long jobs waited, from queueing, which is after any DELAY, to delivery; and how long
        work took, from delivery to acknowledgement. Counted from the first call on: a node that
        nobody asks spends no time on it."""

    def queues(cursor: int, least: int) -> tuple[int, list[QueueFigures]]:
        """At least ``least`` queues if that number exists, and the cursor for the next call; from 0
        to 0. As in QSCAN, a queue that is there all the time is returned at least once."""

    def queue(name: bytes) -> QueueFigures | None:
        """The figures of one queue; ``None`` if it does not exist."""

    def pause(name: bytes) -> str:
        """Whether a queue, which need not exist, is paused: none, in, out or all."""

    def alert_wait_s(name: bytes) -> int:
        """For how long the first job of a queue may wait before that is a problem, by the policy of
        the queue, which need not exist; 0 for any time."""

    def queued(name: bytes, count: int) -> list[bytes]:
        """The IDs of up to ``count`` jobs in a queue, oldest first; with a negative count newest
        first."""

    def body(job_id: bytes, most: int) -> tuple[bytes, int] | None:
        """Up to ``most`` bytes of the body of a job, and how many it has; ``None`` if the node does
        not have it."""

    def schedules() -> list[bytes]:
        """The names of all schedules of the cluster, in order."""

    def policies() -> list[bytes]:
        """The patterns of all policies of the cluster, in order."""

    def counts(name: bytes) -> QueueCounts:
        """What is counted of a queue, which need not exist; costs the same for any number of
        jobs."""

    def protocols() -> list[ProtocolFigures]:
        """What the clients of each protocol did, RESP first; as in INFO's section Protocols."""

    def figures() -> dict[str, Any]:
        """What the other methods say of the node as a whole, in values of JSON: ``info``,
        ``commands``, ``protocols``, ``nodes``, ``leaving``, ``write_ok``, and ``wait`` and ``run``
        of the durations."""


class IConnection(Interface):
    """A client that came by a plugin's protocol. ``maxclients`` counts it, CLIENT LIST shows it,
    and CLIENT KILL closes its transport."""

    network: str = Attribute(
        "Where the client comes from: an address, or as much as one client may have of them, such"
        " as the first 64 bits of IPv6."
    )

    def authenticate(password: bytes | None) -> Role:
        """What a client with this password may do; ``NONE`` if it is wrong or missing. Raises
        ``CommandError`` after too many wrong ones from the same network."""

    def call(role: Role, *words: bytes) -> Deferred[Any]:
        """Run a command as ``node_service.call`` does, and fail with ``CommandError`` if the role
        does not allow it. CLIENT PAUSE holds it, as the requests of all clients. With more than
        1000 calls without an answer the connection is closed, and so it is by an error that is left
        unhandled in the Deferred."""

    def acted(jobs: int, *words: bytes) -> None:
        """Keep that the client did something with this number of jobs, by commands that are not
        kept themselves: in the log, and in the list of ACTIONS, as if these words were a request.
        The first one says what it is in one word of letters."""

    def rename(name: bytes) -> None:
        """The name in CLIENT LIST; at first the one of the protocol. Raises ``CommandError``."""

    def received(size: int) -> None:
        """This number of bytes arrived: the client is not idle."""

    def sent(size: int) -> None:
        """This number of bytes was written."""

    def closed() -> None:
        """The transport is gone: the client's calls are cancelled."""


class IProcesses(Interface):
    """The processes of a daemon."""

    def gather() -> Deferred[dict[int, dict[str, Any]]]:
        """The figures (:meth:`INodeView.figures`) of the processes, by their numbers, which are 1
        and up; of those that answer within a second. 0: what those had counted that have ended,
        if there are any, and nothing but counters."""

    def follow(
        kinds: Collection[int], pattern: str, tell: Callable[[list[JobEvent], int], None]
    ) -> Callable[[], None]:
        """Call ``tell`` with events of jobs at the other processes, and how many more were
        dropped, some at a time, until the function that is returned is called. ``kinds``: as of
        :meth:`IHost.watch`. ``pattern``: for names of queues, as in shells."""

    def numbers() -> dict[bytes, int]:
        """The numbers of the processes by the IDs of their nodes; of those that are known yet."""

    def event_folders() -> list[str]:
        """Where the event logs of the processes are, also of former ones."""


class IHost(Interface):
    """The node, as the protocols of its listeners see it.

    What a plugin raises in a protocol, a timer of ``reactor`` or a watcher ends that connection,
    timer or watcher, with a line in the log.
    """

    settings = Attribute("The configuration in force.")
    log = Attribute("The log of the daemon: ``notice(text)``, ``warning(text)``, ...")
    node_service = Attribute("``call(*words)``: any command of the node, as a Deferred.")
    reactor: IReactorTime = Attribute("For timers.")
    view: INodeView = Attribute("The state of the node.")
    processes: IProcesses | None = Attribute(
        "The processes of the daemon, this one among them; None if it is the only one."
    )

    def disque_clients() -> IProtocolFactory:
        """A factory of the protocol of Disque's clients."""

    def admit(transport: Any, protocol: str) -> IConnection:
        """Register a connected client; ``protocol``: its name in CLIENT LIST.

        Raises ``CommandError`` when it is refused: too many clients, or protected mode.
        """

    def authenticate(password: bytes | None, peer: IAddress) -> Role:
        """Like :meth:`IConnection.authenticate`, for clients that are not registered."""

    def event_files() -> IEventFiles | None:
        """The finished files of the event log, of all processes; ``None`` if that is off."""

    def watch(
        watcher: Callable[[JobEvent], None],
        kinds: Collection[int] = (),
        wants: Callable[[bytes], bool] | None = None,
    ) -> Callable[[], None]:
        """Call ``watcher`` with every event of a job, at the end of the turn; it must be quick.
        Returns a function that ends this.

        ``kinds``: of events (``KIND_NAMES`` has their names), all if there are none. ``wants``:
        whether a queue is of interest, all without it; its answers are remembered. What others
        want costs a watcher nothing.
        """

    def direct_clients(
        name: str, make: Callable[[DirectNode], DirectProtocol], refusal: bytes
    ) -> IProtocolFactory:
        """A factory of connections that work within the turns of the node, as fast as RESP.

        ``name``: in CLIENT LIST. ``make``: makes a protocol for each. ``refusal``: what clients get
        that are not admitted, before they are disconnected: too many clients, protected mode, or,
        since these protocols know no password, ``requirepass`` and a client on another host.
        """

    direct_node: DirectNode = Attribute("What such a protocol may do.")

    def in_turn(work: Callable[[], object]) -> None:
        """Do something with ``direct_node`` when no connection received anything, as timers do."""


class IClientProtocol(Interface):
    """A protocol that listeners can serve; found by ``twisted.plugin.getPlugins``.

    The directive ``listen <name> <endpoint>`` puts it to use.
    """

    name: str = Attribute("The word in the ``listen`` directive.")
    description: str = Attribute("One line for people.")

    def factory(host: IHost) -> IProtocolFactory:
        """A factory of protocols for the node of ``host``; ``host.node_service`` has the node's
        operations as Deferreds."""
