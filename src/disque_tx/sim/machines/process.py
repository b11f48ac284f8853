"""A simulated process: the real node, its commands, its codecs and its engine, on a simulated
machine. What the reactor is to the daemon, the simulated world is here.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from disque_tx.commands.base.context import Server
from disque_tx.commands.dispatch import Dispatcher
from disque_tx.commands.table import standard_registry
from disque_tx.config.settings import Settings
from disque_tx.core.node import Node
from disque_tx.core.nodes.addresses import BUS_PORT_OFFSET
from disque_tx.core.nodes.membership import membership_from_file
from disque_tx.engine.aof.environment import Environment
from disque_tx.engine.aof.log import AppendOnlyLog
from disque_tx.engine.calendar import CronCalendar
from disque_tx.engine.lifecycle import Lifecycle
from disque_tx.engine.periodic import PeriodicWork
from disque_tx.engine.sidefiles import TableFiles
from disque_tx.engine.turns import Turns
from disque_tx.errors import ConfigError, LocalError
from disque_tx.messages.nodes import NodeEntry
from disque_tx.messages.records import JobRecord
from disque_tx.sim.machines.bus import SimBus
from disque_tx.sim.machines.control import SimControl, TracedReports
from disque_tx.sim.machines.interfaces import Hardware, MachineSettings, Running
from disque_tx.sim.machines.lookups import NameWatch
from disque_tx.sim.machines.loop import Loop, SimScheduler
from disque_tx.sim.machines.sessions import SimSessions
from disque_tx.sim.world.files import SimFiles
from disque_tx.wire.files.aof import LogDecoder, parse_record
from disque_tx.wire.files.nodes import parse, render
from disque_tx.wire.jobs.jobid import JobIdSource

NODES: Final = "nodes.conf"
#: Small limits, so that they are reached.
_REWRITE_BYTES: Final = 32 * 1024
_LINK_BUFFER_BYTES: Final = 1024 * 1024


class DamagedError(Exception):
    """The process cannot start: the log holds what no log holds."""


class Process(Running):
    """One start of a node. ``expired``: jobs in the log whose life was over, by the clock of the
    start.

    ``DamagedError`` when the log is damaged, ``OSError`` when the disk does not let it start.
    """

    def __init__(self, machine: Hardware, enqueue: bool) -> None:
        settings = machine.settings
        self.machine, self.ip = machine, machine.ip
        self.world, self.network = machine.world, machine.network
        self.alive = True
        self.frozen = False
        self._serves = False
        self.config = config(settings)
        self._reports = TracedReports(machine.world, machine.name)
        self._clocks = machine.clocks
        self._disk = machine.disk
        self._random = machine.world.random(f"node {machine.name}")
        self._loop = Loop(self)
        self.feed = self._loop.feed
        self._ending: Callable[[], None] | None = None
        membership = membership_from_file(self._load_nodes(), machine.port, self._new_node_id)
        membership.announce(machine.announced, machine.port, 0)
        membership.features = settings.features
        self.node = Node(membership, JobIdSource(self._new_node_id()), self._random.random)
        self.node.recurring.calendar = CronCalendar()
        set_up(self.node, settings)
        registry = standard_registry()
        if machine.events is not None:
            self.node.outbox.events = machine.events(self)
        control = SimControl(self)
        self.server = Server(self.node, control, registry)
        self.server.password_required = bool(settings.password)
        self.server.joining = machine.joins
        self.dispatcher = Dispatcher(self.server, registry, self._clock_ns)
        self.sessions = control.sessions = SimSessions(self)
        self.turns = Turns(
            self.server,
            self.dispatcher,
            self.sessions,
            steady_ms=self._clocks.steady_ms,
            wall_us=self._clocks.wall_us,
            fatal=self._broken,
            report=self._report,
        )
        self.turns.deadlines.append(self.node.federation)
        self.bus = SimBus(self, self._random.getrandbits(62))
        environment = Environment(
            self.node,
            SimFiles(self._disk),
            SimScheduler(self),
            self.config,
            self._log_failed,
            self._reports,
            1,
            self._seconds,
            self.server.latency,
        )
        self.log = AppendOnlyLog(environment)
        self.expired: set[bytes] = set()
        self.lifecycle = Lifecycle(self.server, self.log, self.turn, self, self._reports)
        self.turns.connect(self.log, self.lifecycle.nodes_changed, self.bus.links, None)
        self._start(enqueue)
        self._periodic = PeriodicWork(
            self.server, self.config, self.sessions, self.log, self._reports
        )

    @property
    def logs(self) -> bool:
        """Whether the node writes a log."""
        return self.log.state != "off"

    def _clock_ns(self) -> int:
        return self.world.now_us * 1000

    def _seconds(self) -> float:
        return self.world.now_us / 1_000_000

    def _new_node_id(self) -> bytes:
        return b"%040x" % self._random.getrandbits(160)

    # -- start -------------------------------------------------------------------------------

    def _load_nodes(self) -> list[NodeEntry]:
        text = self._disk.read(NODES) if self._disk.exists(NODES) else b""
        entries, faults = parse(text, self._clocks.steady_ms())
        if faults:
            self.world.counters["nodes.damaged"] += 1
        return entries

    def _start(self, enqueue: bool) -> None:
        if not self._disk.exists(NODES):
            self._disk.create(NODES)
            self._disk.sync_folder()
        self.config.aof_enqueue_jobs_once = enqueue
        self.table_files = TableFiles(self.node, SimFiles(self._disk), NODES, self._reports)
        self.lifecycle.begin()
        self._loop.schedule()
        if self.machine.names is not None and self.machine.settings.discovery_ms > 0:
            NameWatch(self, self.machine.names)

    # -- for the lifecycle -------------------------------------------------------------------

    def load(self, done: Callable[[Exception | None], object]) -> None:
        """Load the tables, then the log, within one step. What is in the way is raised."""
        self.table_files.load()
        try:
            self.log.load_now()
        except ConfigError as error:
            if isinstance(error.__cause__, OSError):
                raise error.__cause__ from None
            raise DamagedError(str(error)) from None
        self.expired = self.replayed().keys() - {job.id for job in self.node.jobs.table.values()}
        done(None)

    def prepare(self, done: Callable[[Exception | None], object]) -> None:
        """Finish at once: a simulated process has nothing to prepare."""
        done(None)

    def start_failed(self, error: Exception) -> None:
        """The machine decides what to do about it."""
        raise error

    def start_serving(self) -> None:
        """Listen."""
        port = self.machine.port
        self.network.listen(self.ip, port, self.sessions.accept)
        self.network.listen(self.ip, port + BUS_PORT_OFFSET, self.bus.accept, messages=True)
        self._serves = True

    def stop_accepting(self) -> None:
        """Accept no more connections."""
        self.network.stop_listening(self.ip)

    def nodes_file_failed(self, error: OSError) -> None:
        """The nodes file cannot be written: end, or do not begin."""
        if not self._serves:
            raise error
        self._ending = lambda: self.machine.give_up(f"nodes file: {error}")

    def save_nodes(self, sync: bool = False) -> None:
        """Write the nodes file; ``OSError`` when it is out of date afterwards."""
        node = self.node
        membership = node.membership
        unix_ms = int(node.wall_us // 1000 - node.now_ms)
        self._disk.overwrite(NODES, render(list(membership.nodes.values()), unix_ms))
        if sync or membership.must_sync:
            self._disk.sync(NODES)
        membership.saved()
        self.table_files.pauses.save()

    # -- turns -------------------------------------------------------------------------------

    @contextmanager
    def turn(self) -> Iterator[Node]:
        """A turn with the input in the block."""
        self.turns.begin()
        yield self.node
        self.guard(self.turns.end)
        for look in self.machine.on_turn:
            look(self)

    def turn_over(self) -> None:
        """Do what was to be done after the turn."""
        ending, self._ending = self._ending, None
        if ending is not None:
            ending()

    def tick(self) -> None:
        """Ten times a second."""
        self.node.cluster.tick()
        self._periodic.run()

    def wake(self) -> None:
        """Resume after a stop: everything that is due is due now."""
        self.frozen = False
        self._loop.schedule()

    def guard(self, work: Callable[[], object]) -> None:
        """A fault of the program is a finding, and the node goes on if it can."""
        try:
            work()
        except Exception as error:
            if not (self._ending is not None and isinstance(error, LocalError)):
                self.fail(traceback.format_exc())

    def fail(self, reason: str) -> None:
        """Something happened here that must not happen."""
        self.world.fail(f"{self.machine.name}: {reason}")

    def _log_failed(self, why: str) -> None:
        """With ``appendfsync always`` nothing may be answered any more."""
        self.ask_to_die(f"disk failed: {why}")

    def _broken(self, error: Exception) -> None:
        """A fault while something was written down."""
        self.ask_to_die(f"a fault in this program: {error!r}")

    def _report(self, what: str, error: Exception) -> None:
        """A fault while something left."""
        self.fail(f"{what}: {''.join(traceback.format_exception(error))}")

    def leaves(self, what: str) -> None:
        """Something is sent: it may depend on nothing that was not written to disk."""
        if self.log.is_behind():
            self.fail(f"{what} left before the log was written")
        if self.node.membership.changed:
            self.fail(f"{what} left before the nodes file was written")

    # -- the end -----------------------------------------------------------------------------

    def ask_to_stop(self) -> None:
        """End in an orderly way, after the turn."""
        self._ending = self.machine.stop

    def ask_to_pause(self, us: int) -> None:
        """Do nothing for so long, after the turn."""
        self._ending = lambda: self.machine.pause(us)

    def ask_to_die(self, why: str) -> None:
        """End at once, after the turn."""
        self._ending = lambda: self.machine.die(why)

    def stop(self, rewrite: bool) -> bool:
        """Disconnect all clients and write everything to disk; ``False`` when that failed, and
        ``PowerLostError`` when it was cut short.

        ``rewrite``: the log is rewritten, so that it records for every job whether it is queued.
        """
        try:
            written = self.lifecycle.end() and not self.turns.failed
            if written and rewrite and self.logs:
                written = self._rewritten()
            return self.lifecycle.finish() and written
        finally:
            self.sessions.close()
            self.bus.close()
            self.end()

    def _rewritten(self) -> bool:
        try:
            self.log.rewrite_now()
        except OSError as error:
            self._reports.warning(f"Writing the log failed: {error}")
            return False
        return True

    def end(self) -> None:
        """End the process: its timers and callbacks do nothing from now on."""
        self.alive = False
        self._loop.stop()

    # -- for checkers ------------------------------------------------------------------------

    def replayed(self) -> dict[bytes, JobRecord]:
        """By ID, the jobs that a restart would find in the log; empty without one."""
        jobs: dict[bytes, JobRecord] = {}
        if not self.logs:
            return jobs
        decoder = LogDecoder()
        name = self.config.appendfilename
        decoder.feed(self._disk.read(name)[: self.log.size] + self.log.unwritten())
        while (words := decoder.next()) is not None:
            record = parse_record(words)
            if isinstance(record, JobRecord):
                jobs[record.id] = record
            elif isinstance(record, bytes):
                jobs.pop(record, None)
        return jobs


def config(settings: MachineSettings) -> Settings:
    """The configuration of a process, as far as the machine's settings name it."""
    return Settings(
        dir="",
        appendonly=settings.appendonly,
        appendfsync=settings.appendfsync,
        aof_enqueue_jobs_once=settings.enqueue_once,
        auto_aof_rewrite_min_size=_REWRITE_BYTES,
        maxmemory=settings.maxmemory,
        cluster_link_buffer_limit=_LINK_BUFFER_BYTES,
    )


def set_up(node: Node, settings: MachineSettings) -> None:
    """Put the machine's settings that a new node reads by itself in force."""
    node.cluster.node_timeout_ms = settings.node_timeout_ms
    node.cluster.forgetting.after_ms = settings.forget_after_ms
    node.membership.cluster_name.set(*settings.cluster)
    if settings.discovery_ms > 0:
        node.cluster.discovery.interval_ms = settings.discovery_ms
    node.healing.set_after(settings.replicate_again_ms)
    node.memory.limit = settings.maxmemory
    node.policies.set_directives(list(settings.policies))
