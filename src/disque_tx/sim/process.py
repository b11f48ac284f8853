"""A simulated process: the real node, its commands and its codecs, on a simulated machine.

A turn is what the daemon makes of it (cluster protocol, section 13.1): all input that is there is
executed; then the log is written, the nodes file saved, messages to other nodes leave, and replies
leave; then connections to other nodes are made and closed.
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
from disque_tx.errors import CommandError
from disque_tx.messages import JobRecord
from disque_tx.nodetable import NodeEntry
from disque_tx.sim.bus import Bus
from disque_tx.sim.control import SimControl
from disque_tx.sim.disk import PowerLostError
from disque_tx.sim.log import DiskFailedError, Log
from disque_tx.sim.sessions import Sessions
from disque_tx.sim.world import Timer
from disque_tx.wire.jobid import JobIdSource
from disque_tx.wire.nodesfile import parse, render

if TYPE_CHECKING:
    from disque_tx.sim.machine import Machine

NODES: Final = "nodes.conf"
_TICK_MS: Final = 100
_QUEUES_PER_RUN: Final = 200
#: What a turn takes at the most; input that comes meanwhile is part of it.
_TURN_US_MAX: Final = 150
_STOPPING: Final = "This node is shutting down, please connect to a different one"


class Process:
    """One start of a node. ``alive``: until it stops, is killed, or ends itself. ``log``: ``None``
    without one. ``frozen``: it is stopped and does nothing, though time goes on.

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
        self._clocks = machine.clocks
        self._disk = machine.disk
        self._random = machine.world.random(f"node {machine.name}")
        self._turns = machine.world.random(f"turns {machine.name}")
        self._inputs: list[Callable[[], None]] = []
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
        self.bus = Bus(self, self._random.getrandbits(62))
        self.log: Log | None = None
        self._tick_ms = self._clocks.steady_ms()
        self._start(enqueue)

    @property
    def logs(self) -> bool:
        """There is a log."""
        return self.log is not None

    def _clock_ns(self) -> int:
        return self.world.now_us * 1000

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
        self.node.begin(self._clocks.steady_ms(), self._clocks.wall_us())
        if not self._disk.exists(NODES):
            self._disk.create(NODES)
            self._disk.sync_folder()
        self.save_nodes()
        if machine.settings.appendonly:
            self.log = Log(self.node, self._disk, machine.settings.appendfsync)
            self.log.load(enqueue)
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

    def feed(self, work: Callable[[], None]) -> None:
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
        node = self.node
        due_ms = self._tick_ms
        for other_ms in (int(node.next_due_ms()), int(node.federation.next_due_ms())):
            if 0 <= other_ms < due_ms:
                due_ms = other_ms
        # A turn takes time, so whatever is due always comes later than this one.
        at_us = self.world.now_us + max(1, self._clocks.true_delay_us(due_ms))
        return at_us if self._input_us < 0 else max(self.world.now_us, min(at_us, self._input_us))

    def _turn(self) -> None:
        self._timer = None
        if not self.alive or self.frozen:
            return
        node = self.node
        node.begin(self._clocks.steady_ms(), self._clocks.wall_us())
        self.dispatcher.begin()
        try:
            if 0 <= self._input_us <= self.world.now_us:
                inputs, self._inputs, self._input_us = self._inputs, [], -1
                for work in inputs:
                    self._guard(work)
            if node.now_ms >= self._tick_ms:
                self._guard(self._tick)
            self._guard(self._run_due)
            self._guard(self._end)
        except DiskFailedError as error:
            self.machine.die(f"disk failed: {error}")
            return
        except PowerLostError:
            self.machine.lose_power()
            return
        ending, self._ending = self._ending, None
        if ending is not None:
            ending()
        self._schedule()

    def _guard(self, work: Callable[[], None]) -> None:
        """A fault of the program is a finding, and the node goes on if it can."""
        try:
            work()
        except (DiskFailedError, PowerLostError):
            raise
        except Exception:
            self.fail(traceback.format_exc())

    def fail(self, reason: str) -> None:
        """Something happened here that must not happen."""
        self.world.fail(f"{self.machine.name}: {reason}")

    def _run_due(self) -> None:
        node = self.node
        node.run_due()
        node.federation.run_due(node.now_ms)

    def _tick(self) -> None:
        """Ten times a second."""
        node, server = self.node, self.server
        self._tick_ms = int(node.now_ms) + _TICK_MS
        node.cluster.tick(node.now_ms)
        server.stats.tick(node.now_ms)
        node.release_leaving()
        node.queues.sweep(node.now_ms, _QUEUES_PER_RUN)
        if server.paused_until_ms and node.now_ms >= server.paused_until_ms:
            server.paused_until_ms = 0
            self.sessions.resume_all()
        if self.log is not None:
            self.log.tick()
            server.troubled = bool(self.log.write_error)

    def _end(self) -> None:
        """Let everything out, in order."""
        outbox = self.node.outbox
        while outbox.resumed:
            resumed, outbox.resumed = outbox.resumed, []
            self.sessions.resume(resumed)
        if self.log is not None:
            self.log.commit()
            if self.log.write_error:
                self.server.troubled = True
        if self.node.membership.changed:
            self._nodes_changed()
        self.bus.flush()
        touched, outbox.touched = outbox.touched, []
        self.sessions.flush(touched)
        self.bus.perform()
        for look in self.machine.on_turn:
            look(self)

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
        node = self.node
        node.begin(self._clocks.steady_ms(), self._clocks.wall_us())
        for client in node.dismiss(CommandError("LEAVING", _STOPPING)):
            client.closing = True
        try:
            self._guard(self._end)
            if self.log is not None:
                self.log.flush_and_sync()
                if rewrite:
                    self.log.rewrite()
            self.save_nodes()
        except (OSError, DiskFailedError) as error:
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
        return {} if self.log is None else self.log.replayed()
