"""A simulated process: the real node, its commands, its codecs and its engine, on a simulated
machine. What the reactor is to the daemon, the simulated world is here.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from disque_tx.commands.context import Server
from disque_tx.commands.dispatch import Dispatcher
from disque_tx.commands.table import standard_registry
from disque_tx.core.addresses import BUS_PORT_OFFSET
from disque_tx.core.membership import membership_from_file
from disque_tx.core.node import Node
from disque_tx.engine.aof.environment import Environment
from disque_tx.engine.aof.log import AppendOnlyLog
from disque_tx.engine.periodic import PeriodicWork
from disque_tx.engine.turns import Turns
from disque_tx.errors import CommandError, ConfigError, LocalError
from disque_tx.messages import JobRecord
from disque_tx.nodetable import NodeEntry
from disque_tx.settings import Settings
from disque_tx.sim.bus import Bus
from disque_tx.sim.control import SimControl
from disque_tx.sim.disk import PowerLostError
from disque_tx.sim.files import SimFiles
from disque_tx.sim.reports import TracedReports
from disque_tx.sim.scheduler import SimScheduler
from disque_tx.sim.sessions import Sessions
from disque_tx.sim.world import Timer
from disque_tx.wire.aoflog import LogDecoder
from disque_tx.wire.aofrecords import understand
from disque_tx.wire.jobid import JobIdSource
from disque_tx.wire.nodesfile import parse, render

if TYPE_CHECKING:
    from disque_tx.sim.machine import Machine, MachineSettings

NODES: Final = "nodes.conf"
_TICK_MS: Final = 100
#: What a turn takes at the most; input that comes meanwhile is part of it.
_TURN_US_MAX: Final = 150
_STOPPING: Final = "This node is shutting down, please connect to a different one"


class DamagedError(Exception):
    """The process cannot start: the log holds what no log holds."""


class Process:
    """One start of a node. ``alive``: until it stops, is killed, or ends itself. ``frozen``: it is
    stopped and does nothing, though time goes on. ``expired``: jobs in the log whose life was
    over, by the clock of the start.

    ``DamagedError`` when the log is damaged, ``OSError`` when the disk does not let it start.
    """

    def __init__(self, machine: Machine, enqueue: bool) -> None:
        settings = machine.settings
        self.machine = machine
        self.world = machine.world
        self.network = machine.network
        self.ip = machine.ip
        self.alive = True
        self.frozen = False
        self._config = config(settings)
        self._reports = TracedReports(machine.world, machine.name)
        self._clocks = machine.clocks
        self._disk = machine.disk
        self._random = machine.world.random(f"node {machine.name}")
        self._turns = machine.world.random(f"turns {machine.name}")
        self._inputs: list[Callable[[], object]] = []
        self._input_us = -1
        self._timer: Timer | None = None
        self._timer_us = -1
        self._ending: Callable[[], None] | None = None
        membership = membership_from_file(self._load_nodes(), machine.port, self._new_node_id)
        membership.announce(b"", machine.port, 0)
        self.node = Node(membership, JobIdSource(self._new_node_id()), self._random.random)
        self.node.cluster.node_timeout_ms = settings.node_timeout_ms
        self.node.memory.limit = settings.maxmemory
        registry = standard_registry()
        if machine.events is not None:
            self.node.outbox.events = machine.events(self)
        self.server = Server(self.node, SimControl(self), registry)
        self.server.guarded = bool(settings.password)
        self.dispatcher = Dispatcher(self.server, registry, self._clock_ns)
        self.sessions = Sessions(self)
        self.turns = Turns(
            self.server,
            self.dispatcher,
            self.sessions,
            self._clocks.steady_ms,
            self._clocks.wall_us,
            self._broken,
            self._report,
        )
        self.turns.save_nodes = self._nodes_changed
        self.turns.deadlines.append(self.node.federation)
        self.bus = self.turns.links = Bus(self, self._random.getrandbits(62))
        environment = Environment(
            self.node,
            SimFiles(self._disk),
            SimScheduler(self),
            self._config,
            self._log_failed,
            self._reports,
            1,
            self._seconds,
            self.server.latency,
        )
        self.log = self.turns.log = AppendOnlyLog(environment)
        self.expired: set[bytes] = set()
        self._tick_ms = self._clocks.steady_ms()
        self._start(enqueue)
        self._periodic = PeriodicWork(
            self.server, self._config, self.sessions, self.log, self._reports
        )

    @property
    def logs(self) -> bool:
        """There is a log."""
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
        machine = self.machine
        if not self._disk.exists(NODES):
            self._disk.create(NODES)
            self._disk.sync_folder()
        self.save_nodes()
        self._config.aof_enqueue_jobs_once = enqueue
        try:
            self.log.load_now()
        except ConfigError as error:
            if isinstance(error.__cause__, OSError):
                raise error.__cause__ from None
            raise DamagedError(str(error)) from None
        self.expired = self.replayed().keys() - {job.id for job in self.node.jobs.table.values()}
        self.network.listen(self.ip, machine.port, self.sessions.accept)
        self.network.listen(self.ip, machine.port + BUS_PORT_OFFSET, self.bus.accept, messages=True)
        self._schedule()

    def save_nodes(self, sync: bool = False) -> None:
        """Write the nodes file; ``OSError`` when it is out of date afterwards."""
        node = self.node
        membership = node.membership
        unix_ms = int(node.wall_us // 1000 - node.now_ms)
        self._disk.overwrite(NODES, render(list(membership.nodes.values()), unix_ms))
        if sync or membership.must_sync:
            self._disk.sync(NODES)
        membership.saved()

    # -- turns -------------------------------------------------------------------------------

    def feed(self, work: Callable[[], object]) -> None:
        """Input: to be executed in the next turn, after what came before."""
        if self.alive:
            self._inputs.append(work)
            if self._input_us < 0:
                self._input_us = self.world.now_us + self._turns.randint(1, _TURN_US_MAX)
                self._schedule()

    def wake(self) -> None:
        """It goes on after it was stopped: everything that is due is due now."""
        self.frozen = False
        self._schedule()

    def _schedule(self) -> None:
        """See to it that the next turn comes in time."""
        if not self.alive or self.frozen:
            return
        at_us = self._next_us()
        if self._timer is not None:
            if self._timer_us <= at_us:
                return
            self._timer.cancel()
        self._timer_us = at_us
        self._timer = self.world.at(at_us - self.world.now_us, self._turn)

    def _next_us(self) -> int:
        due_ms = self._tick_ms
        other_ms = int(self.turns.next_due_ms())
        if 0 <= other_ms < due_ms:
            due_ms = other_ms
        # A turn takes time, so whatever is due always comes later than this one.
        at_us = self.world.now_us + max(1, self._clocks.true_delay_us(due_ms))
        return at_us if self._input_us < 0 else max(self.world.now_us, min(at_us, self._input_us))

    def _turn(self) -> None:
        self._timer = None
        if not self.alive or self.frozen:
            return
        self.turns.begin()
        try:
            if 0 <= self._input_us <= self.world.now_us:
                inputs, self._inputs, self._input_us = self._inputs, [], -1
                for work in inputs:
                    self._guard(work)
            if self.node.now_ms >= self._tick_ms:
                self._guard(self._tick)
            self._guard(self.turns.run_due)
            self._end_turn()
        except PowerLostError:
            self.machine.lose_power()
            return
        ending, self._ending = self._ending, None
        if ending is not None:
            ending()
        self._schedule()

    def _guard(self, work: Callable[[], object]) -> None:
        """A fault of the program is a finding, and the node goes on if it can."""
        try:
            work()
        except Exception as error:
            if not (self._ending is not None and isinstance(error, LocalError)):
                self.fail(traceback.format_exc())

    def fail(self, reason: str) -> None:
        """Something happened here that must not happen."""
        self.world.fail(f"{self.machine.name}: {reason}")

    def _tick(self) -> None:
        """Ten times a second."""
        node = self.node
        self._tick_ms = int(node.now_ms) + _TICK_MS
        node.cluster.tick(node.now_ms)
        self._periodic.run()

    def _end_turn(self) -> None:
        """Let everything out."""
        self._guard(self.turns.end)
        for look in self.machine.on_turn:
            look(self)

    def _log_failed(self, why: str) -> None:
        """With ``appendfsync always`` nothing may be answered any more."""
        self.ask_to_die(f"disk failed: {why}")

    def _broken(self, error: Exception) -> None:
        """A fault while something was written down."""
        self.ask_to_die(f"a fault in this program: {error!r}")

    def _report(self, what: str, error: Exception) -> None:
        """A fault while something left."""
        self.fail(f"{what}: {''.join(traceback.format_exception(error))}")

    def _nodes_changed(self) -> None:
        try:
            self.save_nodes()
        except OSError as error:
            # A node that cannot write down who it is must not go on.
            self.node.membership.saved()
            reason = f"nodes file: {error}"
            self._ending = lambda: self.machine.give_up(reason)

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
        """Send everybody away and write everything down; ``False`` when that failed, and
        ``PowerLostError`` when it was cut short.

        ``rewrite``: the log shall say for every job whether it is queued.
        """
        self.turns.begin()
        for client in self.node.dismiss(CommandError("LEAVING", _STOPPING)):
            client.closing = True
        try:
            self._end_turn()
            if self.turns.dead:
                return False
            self.log.flush_and_sync()
            if rewrite and self.logs:
                self.log.rewrite_now()
            self.save_nodes()
        except OSError as error:
            self.world.trace("stop", self.machine.name, error)
            return False
        finally:
            self.network.deafen(self.ip)
            self.sessions.close()
            self.bus.close()
            self.end()
        return True

    def end(self) -> None:
        """Nothing is done here any more."""
        self.alive = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- for checkers ------------------------------------------------------------------------

    def replayed(self) -> dict[bytes, JobRecord]:
        """By ID, the jobs that a restart would find in the log; empty without one."""
        jobs: dict[bytes, JobRecord] = {}
        if not self.logs:
            return jobs
        decoder = LogDecoder()
        name = self._config.appendfilename
        decoder.feed(self._disk.read(name)[: self.log.size] + self.log.unwritten())
        while (words := decoder.next()) is not None:
            record = understand(words)
            if isinstance(record, JobRecord):
                jobs[record.id] = record
            else:
                jobs.pop(record, None)
        return jobs


def config(settings: MachineSettings) -> Settings:
    """The configuration of a process, as far as the machine's settings name it."""
    return Settings(
        dir="",
        appendonly=settings.appendonly,
        appendfsync=settings.appendfsync,
        aof_enqueue_jobs_once=settings.enqueue_once,
        maxmemory=settings.maxmemory,
    )
