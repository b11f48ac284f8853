"""A machine of the simulated world: an address, a disk, clocks, and perhaps a process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from disque_tx.core.nodes.addresses import BUS_PORT_OFFSET
from disque_tx.engine.ownership import log_files
from disque_tx.engine.processes import jobs_left, node_files
from disque_tx.sim.machines.interfaces import Hardware, MachineSettings
from disque_tx.sim.machines.process import NODES, DamagedError, Process
from disque_tx.sim.world.disk import PowerLostError
from disque_tx.sim.world.network import Network
from disque_tx.sim.world.world import World

_START_AGAIN_US: Final = 1_000_000
_LIMIT_BYTES_MIN: Final = 64 * 1024


class Machine(Hardware):
    """``process``: ``None`` while none runs. ``on_death``: called when a process ended by itself.
    ``identities``: every node ID it ever started with, the last one last. ``started_us``: when the
    process that runs now, or ran last, was started. ``crashes_us``: when a process did something
    for the last time before it ended at once. ``removed``: its daemon has fewer processes now, and
    this one is started no more. ``on_start``: called when a process was started.

    ``alive_since_us``: since when the node has lost nothing of its memory. The memory is lost at
    the end of a process, unless the next one finds all that it had confirmed to keep: that is so
    when it had a log that had no trouble, and stopped or was killed (what was written survives
    that), or lost its power under ``always``. The memory also counts as lost when the disk is
    emptied, replaced by an old one, or refused at the start. While it is lost and no process runs,
    this lies in the future.
    """

    def __init__(
        self,
        world: World,
        network: Network,
        ip: bytes,
        port: int,
        settings: MachineSettings,
        host: bytes = b"",
    ) -> None:
        super().__init__(world, network, ip, port, settings, host)
        self.process: Process | None = None
        self.on_death: list[Callable[[Machine], None]] = []
        self.on_start: list[Callable[[Machine], None]] = []
        self.removed = False
        self.identities: list[bytes] = []
        self.started_us = -1
        self.crashes_us: list[int] = []
        self._still_us = 0
        self._since_us = world.now_us
        self._broken = False
        self._enqueue = False

    @property
    def alive_since_us(self) -> int:
        """See above; true time."""
        return self.world.now_us + 1 if self._broken else self._since_us

    def lose_memory(self) -> None:
        """What the node kept is not there any more."""
        self._broken = True

    # -- start and stop ----------------------------------------------------------------------

    def start(self) -> None:
        """Start a process, unless one runs or none is wanted; when the disk is in the way, a second
        later.

        A damaged log is replaced by an empty disk, as by an operator without a copy.
        """
        if self.process is not None or self.removed:
            return
        self.network.power_on(self.ip)
        self.clocks.restart()
        self.disk.start_process()
        enqueue, self._enqueue = self._enqueue, False
        try:
            self.process = self._process(enqueue)
        except OSError as error:
            self.world.counters["start.failed"] += 1
            self.world.trace("start failed", self.name, error)
            self.network.stop_listening(self.ip)
            self.world.at(_START_AGAIN_US, self.start)
            return
        except PowerLostError:
            self.lose_power()
            return
        if self._broken:
            self._broken = False
            self._since_us = self.world.now_us
        self.started_us = self.world.now_us
        node_id = self.process.node.id
        if node_id in self.identities:
            self.identities.remove(node_id)
        self.identities.append(node_id)
        self.world.trace("start", self.name, node_id.decode())
        for callback in self.on_start:
            callback(self)

    def _process(self, enqueue: bool) -> Process:
        try:
            return Process(self, enqueue)
        except DamagedError as error:
            self.world.counters["start.refused"] += 1
            self.world.trace("start refused", self.name, error)
            self.disk.wipe()
            self.lose_memory()
            return Process(self, False)

    def stop(self) -> None:
        """Stop the process in an orderly way; nothing happens when none runs."""
        process, self.process = self.process, None
        if process is None:
            return
        self.world.trace("stop", self.name)
        self.network.messages.forget(self.ip)
        if process.frozen:
            self.network.thaw(self.ip)
            process.frozen = False
        try:
            kept = process.stop(self.settings.enqueue_once)
        except PowerLostError:
            self.lose_memory()
            self.lose_power()
            return
        self._enqueue = kept and self.settings.enqueue_once
        if not (kept and process.logs):
            self.lose_memory()

    def retire(self) -> bool:
        """Stop a process that has no jobs for good, and remove what it wrote; ``False`` if it got
        some. No promise was left with it, so its memory is not broken by that."""
        process, broken = self.process, self._broken
        if process is None:
            return False
        self.stop()
        if jobs_left(process.node):
            return False
        self._broken = broken
        self.removed = True
        logs = log_files(process.config.appendfilename) if self.settings.appendonly else []
        for path in node_files(NODES, logs):
            self.disk.remove(path)
        self.world.trace("removed", self.name)
        return True

    def leave_address(self) -> None:
        """No node can be reached at the address of this machine any more, which has none then."""
        self.network.abandon(self.host, self.port + BUS_PORT_OFFSET)

    def move(self, host: bytes) -> None:
        """Take another address; no process may run."""
        self.world.trace("move", self.name, host.decode())
        self.host = host
        self.network.share(host, self.port + BUS_PORT_OFFSET, self.ip)
        self.network.show_as(self.ip, host)

    def remove_empty(self) -> None:
        """Lose a machine, and its disk, whose node has given all its jobs away. No promise was left
        with it, so its memory is not broken by that."""
        broken = self._broken
        self.kill(power=True)
        self.disk.wipe()
        self._broken = broken

    def kill(self, power: bool = False) -> None:
        """End the process at once. ``power``: of the whole machine, which shows on the disk."""
        process, self.process = self.process, None
        self.world.trace("power" if power else "kill", self.name)
        self.network.kill(self.ip, power)
        if process is not None:
            self.crashes_us.append(self._still_us if process.frozen else self.world.now_us)
            process.end()
            if not process.logs or process.log.write_error or process.log.unwritten():
                self.lose_memory()
        if power:
            self.disk.crash()
            if self.settings.appendfsync != "always":
                self.lose_memory()

    def die(self, reason: str) -> None:
        """The process ends itself at once."""
        self.world.trace("died", self.name, reason)
        self.kill()
        self._report_death()

    def give_up(self, reason: str) -> None:
        """The process ends itself in an orderly way."""
        self.world.trace("gave up", self.name, reason)
        self.stop()
        self._report_death()

    def lose_power(self) -> None:
        """The power fails while the process is at work."""
        self.kill(power=True)
        self._report_death()

    def _report_death(self) -> None:
        self.world.counters["process.died"] += 1
        for callback in self.on_death:
            callback(self)

    # -- troubles ----------------------------------------------------------------------------

    def pause(self, us: int) -> None:
        """Stop the process for so long: input queues up, and what is due meanwhile comes late."""
        process = self.process
        if process is None or process.frozen:
            return
        self.world.trace("pause", self.name, us)
        process.frozen = True
        self._still_us = self.world.now_us
        self.network.freeze(self.ip)
        self.world.at(us, lambda: self._resume(process))

    def resume(self) -> None:
        """End a pause early."""
        if self.process is not None:
            self._resume(self.process)

    def _resume(self, process: Process) -> None:
        if process is self.process and process.frozen:
            self.world.trace("resume", self.name)
            process.wake()
            self.network.thaw(self.ip)

    def memory_pressure(self, percent: int) -> None:
        """Set ``maxmemory`` so that this share of it is used; 0 gives the configured one back."""
        process = self.process
        if process is None:
            return
        if percent == 0:
            self.limit_memory(self.settings.maxmemory)
        else:
            # The node reckons in hundredths, rounded down.
            used = max(int(process.node.memory.used), _LIMIT_BYTES_MIN)
            self.limit_memory(used * 100 // percent - 100)

    def limit_memory(self, limit: int) -> None:
        """Set ``maxmemory`` until the process ends, or it is set again."""
        if self.process is not None:
            self.process.node.memory.limit = limit
