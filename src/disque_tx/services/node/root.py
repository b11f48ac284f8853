"""The whole node as one MultiService: what ``disque-server`` and ``twistd disque`` both run.

Start (cluster protocol, section 16): lock and read the nodes file, listen, load the log while
clients get LOADING, then write the nodes file and serve clients and nodes. A node whose start fails
before that leaves its files as they were. Stop: accept no more connections, disconnect blocked
clients, write and sync the log, close.
"""

from __future__ import annotations

import os
import random
import secrets
import time
from collections.abc import Callable
from typing import Any

from twisted.application.service import MultiService
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThreadPool
from twisted.python.failure import Failure

from disque_tx import __version__
from disque_tx.commands.base.context import Server
from disque_tx.commands.base.latency import LatencyMonitor
from disque_tx.commands.dispatch import Dispatcher
from disque_tx.commands.table import standard_registry
from disque_tx.config.paths import os_error_text
from disque_tx.config.settings import Settings
from disque_tx.core.node import Node
from disque_tx.core.nodes.membership import membership_from_file
from disque_tx.engine.calendar import CronCalendar
from disque_tx.engine.lifecycle import Done, Lifecycle
from disque_tx.engine.sidefiles import TableFiles
from disque_tx.errors import CommandError, ConfigError, DisqueError
from disque_tx.services.bus.nodesfile import NodesFile
from disque_tx.services.bus.service import Bus
from disque_tx.services.clients.embedded import NodeService
from disque_tx.services.clients.host import PluginHost
from disque_tx.services.clients.listeners import FastReactor, Listeners
from disque_tx.services.events.service import EventLog
from disque_tx.services.machine.files import RealFiles
from disque_tx.services.machine.log import DaemonLog
from disque_tx.services.machine.memory import map_large_blocks, tame_collector
from disque_tx.services.machine.platform import Platform
from disque_tx.services.machine.process import DISQUE_VERSION, ProcessInfo, SystemdWatchdog, notify
from disque_tx.services.net.certificates import Certificates, Identity
from disque_tx.services.net.hub import Hub
from disque_tx.services.node.aof import AppendOnlyFile
from disque_tx.services.node.applied import APPLY, apply_all
from disque_tx.services.node.control import NodeControl, SingleProcess, raise_fd_limit
from disque_tx.services.node.evacuation import ShutdownEvacuation
from disque_tx.services.node.identity import first_epoch, new_node_id
from disque_tx.services.node.keeping import Keeping
from disque_tx.services.node.optional import add_optional
from disque_tx.services.node.periodic import Cron, FederationService, GossipService
from disque_tx.services.turns.runtime import Runtime, SystemClock
from disque_tx.text.counts import counted
from disque_tx.wire.jobs.jobid import JobIdSource


class NodeRoot(MultiService, SingleProcess):
    """A node and everything around it. ``cluster``: the services that talk to other nodes; they
    start once the log is loaded. ``common``: the configuration of the daemon, of which ``settings``
    are this node's: the same object, unless there are several processes.

    The orderly end stops the reactor; ``exit_status`` and ``restart_wanted``, a delay in ms, are
    for the program that goes on after that. ``die``: ends the process at once, with an exit status.
    """

    def __init__(
        self,
        settings: Settings,
        log: DaemonLog,
        reactor: Any,
        die: Callable[[int], object] = os._exit,
    ) -> None:
        super().__init__()
        self.settings = self.common = settings
        self.log = log
        self.exit_status = 0
        self.restart_wanted: int | None = None
        self._reactor = reactor
        self._die = die
        self._stop_asked = False
        self._open = False
        clock = SystemClock()
        self.process = ProcessInfo(settings, secrets.token_hex(20))
        self.files = RealFiles()
        self._nodes_file = NodesFile(settings.cluster_config_file)
        self._nodes_file.lock()
        entries = self._nodes_file.load(int(time.time()), clock.steady_ms(), log.warning)
        membership = membership_from_file(entries, settings.port, new_node_id)
        node = Node(membership, JobIdSource(secrets.token_hex(20).encode()), random.random)
        latency = LatencyMonitor()
        self.aof = AppendOnlyFile(
            node,
            self.files,
            reactor,
            settings,
            defer_to_thread=self._in_thread,
            fatal=self._broken,
            reports=log,
            latency=latency,
        )
        platform = Platform(reactor, clock, self.files, log, self._in_thread)
        self.eventlog = EventLog(node, settings, platform)
        registry = standard_registry()
        for old, new in settings.renames:
            registry.rename(old, new)
        control = NodeControl(self, settings, platform, self.process, self.aof, self.eventlog)
        self.server = Server(node, control, registry, latency)
        dispatcher = Dispatcher(self.server, registry, time.perf_counter_ns)
        self.runtime = Runtime(node, self.server, dispatcher, clock, reactor, self._broken)
        self.node_service = NodeService(self.runtime)
        plugged = (self.node_service, self.eventlog.sinks, self._is_serving)
        self.plugin_host = PluginHost(self.runtime, settings, platform, *plugged)
        self.cron = Cron(self.runtime, settings, platform, self.aof, self.process.delays)
        hub = Hub(reactor, self.runtime)
        self.listeners = self.make_listeners(hub)
        self.bus = Bus(self.runtime, settings, platform, hub, first_epoch(clock.wall_us()))
        self._lifecycle = Lifecycle(self.server, self.aof, self.runtime.turn, self, log)
        self.runtime.turns.connect(
            self.aof, self._lifecycle.nodes_changed, self.bus.links, self.eventlog
        )
        self.evacuation = ShutdownEvacuation(self.runtime, settings, reactor, log)
        self.certificates = Certificates(self._identities, log, reactor)
        self.cluster = MultiService()
        self._assemble(platform)
        apply_all(settings, self.server, log)

    def make_listeners(self, hub: Hub) -> Listeners:
        """The ports for clients."""
        return Listeners(
            self.plugin_host, self.settings, self.log, hub, FastReactor(self._reactor, hub)
        )

    def _assemble(self, platform: Platform) -> None:
        """Hang the services on this one, or on the part that begins once the log is loaded."""
        node = self.server.node
        node.recurring.calendar = CronCalendar()
        self.table_files = TableFiles(node, self.files, self._nodes_file.path, self.log)
        self.bus.setServiceParent(self.cluster)
        GossipService(self.runtime, self.log, self._reactor).setServiceParent(self.cluster)
        FederationService(self.runtime).setServiceParent(self.cluster)
        Keeping(self.runtime, platform, self._nodes_file.path).setServiceParent(self.cluster)
        add_optional(self, self.cluster, self.runtime, platform, self.settings, lambda: self.common)
        SystemdWatchdog(self._reactor).setServiceParent(self)
        others = (self.cron, self.eventlog, self.certificates, self.node_service)
        for service in (self.listeners, self.aof, *others):
            service.setServiceParent(self)

    # -- for listeners and commands ----------------------------------------------------------

    def _is_serving(self) -> bool:
        waiting = self.server.awaited_nodes > 0
        return self._lifecycle.serving and not self._stop_asked and not waiting

    def setting_changed(self, directive: str) -> None:
        """CONFIG SET changed the value of a directive."""
        apply = APPLY.get(directive)
        if apply is not None:
            apply(self.settings, self.server, self.log)
        if directive == "hz":
            self.cron.hz_changed()

    def listening(self) -> tuple[list[str], list[str]]:
        """Where clients can connect, and where other nodes can."""
        return self.listeners.addresses(), self.bus.addresses()

    def _identities(self) -> list[Identity]:
        """The certificates that this node presents."""
        bus = self.bus.identity
        return [*self.listeners.identities(), *([bus] if bus is not None else [])]

    def _in_thread(self, work: Any, *args: Any) -> Deferred[Any]:
        return deferToThreadPool(self._reactor, self._reactor.getThreadPool(), work, *args)

    # -- start -------------------------------------------------------------------------------

    def privilegedStartService(self) -> None:
        """Listen, before anything else happens; ``ConfigError`` when that is not possible, and then
        everything is released."""
        self._open = True
        super().privilegedStartService()
        try:
            self.listen()
        except Exception:
            self.stop_accepting()
            self._nodes_file.abandon()
            raise
        self.log.warning(
            f"Server started, Disque version {DISQUE_VERSION} (disque-tx {__version__})"
        )
        tame_collector()
        map_large_blocks()

    def listen(self) -> None:
        """Listen for clients and for other nodes."""
        settings, log = self.settings, self.log
        fitting = raise_fd_limit(settings.maxclients)
        if fitting < settings.maxclients:
            if fitting < 1:
                raise ConfigError(
                    "The limit on open files is too low to serve a single client: raise it"
                    " ('ulimit -n', LimitNOFILE)."
                )
            log.warning(
                f"The limit on open files allows {counted(fitting, 'client')} instead of"
                f" {settings.maxclients}: maxclients is lowered. Raise it with 'ulimit -n'."
            )
            settings.maxclients = fitting
        self.listeners.open()
        self.bus.open()

    def startService(self) -> None:
        """Load the log, then serve, and notify the system that the node is ready."""
        if not self._open:  # "twist", unlike "twistd", has no privileged step
            self.privilegedStartService()
        super().startService()
        notify("STATUS=Loading the log")
        self._lifecycle.begin()

    # -- for the lifecycle -------------------------------------------------------------------

    def load(self, done: Done) -> None:
        """Load the policies and schedules, then the log."""
        self.table_files.load()
        self.aof.open_and_load(done)

    def prepare(self, done: Done) -> None:
        """The log is loaded: wait for the listeners of other protocols."""
        settings = self.settings
        if self.aof.loaded_once:
            settings.aof_enqueue_jobs_once = self.common.aof_enqueue_jobs_once = False
            if settings.config_file:
                try:
                    self.server.control.config_rewrite()
                except CommandError as error:
                    self.log.warning(f"aof-enqueue-jobs-once is still on in the file: {error.text}")
        opened = self.listeners.opened().addCallback(lambda _result: done(None))
        opened.addErrback(self._not_started)

    def start_serving(self) -> None:
        """Everything is ready: join the cluster and serve clients."""
        if self._stop_asked:
            return
        self.cluster.setServiceParent(self)
        self.listeners.announce()
        notify("READY=1\nSTATUS=Serving clients")

    def start_failed(self, error: Exception) -> None:
        """The node cannot start."""
        self._not_started(Failure(error))

    def _not_started(self, failure: Failure) -> None:
        if failure.check(DisqueError, OSError):
            self.fatal(failure.getErrorMessage())
        else:
            self.fatal(f"The start failed: {failure.getTraceback()}")

    def stop_accepting(self) -> None:
        """Accept no more connections."""
        self.listeners.close()
        self.bus.close()

    def save_nodes(self, sync: bool = False) -> None:
        """Write the nodes file; an ``OSError`` means that it is out of date."""
        membership = self.runtime.node.membership
        entries = list(membership.nodes.values())
        self._nodes_file.save(entries, membership.unix_ms, sync or membership.must_sync)
        membership.saved()
        self.table_files.pauses.save()

    def nodes_file_failed(self, error: OSError) -> None:
        """A node that cannot store its own ID must not go on (cluster protocol, section 9)."""
        self.fatal(
            f"The nodes file {self._nodes_file.path} can't be written:"
            f" {os_error_text(error)}. Check 'dir' and 'cluster-config-file', and the disk."
        )

    # -- stop --------------------------------------------------------------------------------

    def _broken(self, message: str) -> None:
        """Nothing may be answered any more, as when the disk failed with ``appendfsync always``:
        end at once."""
        for line in message.splitlines():
            self.log.warning(line)
        self._die(1)

    def fatal(self, message: str) -> None:
        """The node cannot go on: end in an orderly way."""
        for line in message.splitlines():
            self.log.warning(line)
        self.request_stop(1)

    def request_stop(self, status: int) -> None:
        """End the process in an orderly way, after the turn that is under way."""
        self.exit_status = max(self.exit_status, status)
        if not self._stop_asked:
            self._stop_asked = True
            notify("STOPPING=1")
            self._reactor.callLater(0, self._reactor.stop)

    def request_restart(self, delay_ms: int) -> None:
        """End this process and let the program start again with the same arguments."""
        self.restart_wanted = delay_ms
        self.request_stop(0)

    def stopService(self) -> Deferred[Any]:
        """Stop and close everything; nothing accepted is lost."""
        if not self._lifecycle.end():
            self.exit_status = 1
        self.runtime.stop()
        stopped: Deferred[Any] = super().stopService()
        return stopped.addBoth(self._release_files)

    def _release_files(self, result: object) -> object:
        if self._lifecycle.serving:
            self.evacuation.stopped()
            self._lifecycle.finish()
            self._nodes_file.close()
        else:
            self._nodes_file.abandon()
        self.log.warning("Disque is now ready to exit, bye bye...")
        return result


def prepare(settings: Settings) -> DaemonLog:
    """The log that the settings ask for, and the process in its working directory.

    Raises ``ConfigError`` when the directory cannot be entered.
    """
    try:
        os.chdir(settings.dir)
    except OSError as error:
        raise ConfigError(f"Can't chdir to '{settings.dir}': {error.strerror}") from error
    writer = None
    if settings.syslog_enabled:
        from disque_tx.services.machine.log import system_log

        writer = system_log(settings.syslog_ident, settings.syslog_facility)
    return DaemonLog(settings.loglevel, settings.logfile, writer)
