"""A child: an ordinary node, which serves the connections that its parent passes on.

1. It reports every second, and what it learns of the others it uses: it introduces itself to those
   it does not know, and announces the address that nodes of other hosts use.
2. CONFIG SET and SHUTDOWN are for the whole daemon: it lets the parent know.
3. Without its parent it ends, in an orderly way.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall

from disque_tx.config.directives import DIRECTIVES
from disque_tx.config.paths import os_error_text
from disque_tx.core.node import Node
from disque_tx.core.nodes.addresses import is_loopback, plain_ip
from disque_tx.engine.processes import jobs_left, mark_path, nodes_known, reaches
from disque_tx.errors import CommandError, LocalError
from disque_tx.services.clients.listeners import Listeners
from disque_tx.services.machine.log import DaemonLog
from disque_tx.services.net.hub import Hub
from disque_tx.services.node.applied import APPLY
from disque_tx.services.node.control import NodeControl
from disque_tx.services.node.root import NodeRoot
from disque_tx.services.processes.channel import Message, ProcessChannel
from disque_tx.services.processes.following import Followed
from disque_tx.services.processes.gathering import FigureGathering
from disque_tx.services.processes.parent.children import Start
from disque_tx.services.processes.parent.handover import MemberListeners
from disque_tx.services.processes.settings import event_folders, lookup_folders, share
from disque_tx.services.processes.summedinfo import Figures, fields, figures

REPORT_S: Final = 1.0
#: As long as the parent waits for this process to reach the others.
_JOINING_REPORT_S: Final = 0.05


class MemberRoot(NodeRoot):
    """The node of one process."""

    def __init__(
        self,
        start: Start,
        log: DaemonLog,
        reactor: Any,
        sock: socket.socket,
        die: Callable[[int], object] = os._exit,
    ) -> None:
        self._start = start
        self._end: Callable[[str], object] = log.warning
        self._processes: list[dict[str, Any]] = []
        self._ended: Figures = {}
        self._received = 0
        self._joined = False
        self._channel = ProcessChannel(reactor, sock, self._receive, self._orphaned)
        super().__init__(start.settings, log, reactor, die)
        self.common = start.common
        self.server.joining = self.server.degraded = True
        self._gathering = FigureGathering(
            start.number,
            self.plugin_host.view,
            reactor,
            self._channel.send,
            lambda: event_folders(self.common),
        )
        self.plugin_host.processes = self._gathering
        self.eventlog.lookups.folders = lambda: lookup_folders(
            self.common, start.number, self._gathering.others
        )
        self._followed = Followed(reactor, self.plugin_host, self._channel.send)
        self._announced = bool(start.settings.cluster_announce_ip)
        self._loop = LoopingCall(self._report)
        self._loop.clock = reactor
        self._take_back_leaving()

    def _take_back_leaving(self) -> None:
        """Cancel the leave begun when ``processes`` was lowered: it was raised again."""
        mark = mark_path(self.settings.cluster_config_file)
        if not self._start.surplus and os.path.exists(mark):
            self.runtime.node.membership.set_leaving(False)

    def connect(self, end: Callable[[str], object]) -> None:
        """``end``: to be called when the parent wants it, or is gone, with the reason."""
        self._end = end

    def make_listeners(self, hub: Hub) -> Listeners:
        """Make the listeners of the process's own port and of the daemon's ports."""
        listeners = MemberListeners(self.plugin_host, self.settings, self.log, hub, self._reactor)
        listeners.own = self._start.number > 0
        self._entrances = listeners
        return listeners

    # -- start -------------------------------------------------------------------------------

    def listen(self) -> None:
        """Listen on its own ports, and let the parent know."""
        super().listen()
        if self._start.extra_bus_port:
            self.bus.open_also(self._start.extra_bus_port)
        self._channel.send(["opened", self.runtime.node.id.decode()])
        self._loop.start(REPORT_S)

    def start_serving(self) -> None:
        """Serve clients, and let the parent know."""
        if self._start.surplus:
            self._leave()
        else:
            self._remove_mark()
        super().start_serving()
        self._channel.send(["ready"])
        self._meet()
        self._join()

    def _join(self) -> None:
        """Report often, until the parent knows that this process reaches the others."""
        if not self._joined and self._loop.running:
            self._report()
            self._reactor.callLater(_JOINING_REPORT_S, self._join)

    def _is_serving(self) -> bool:
        """Whether the start is complete: before that, jobs could get too few copies."""
        return self._joined and super()._is_serving()

    def _leave(self) -> None:
        with self.runtime.turn() as node:
            if not node.membership.leaving:
                with open(mark_path(self.settings.cluster_config_file), "wb"):
                    pass
                node.membership.set_leaving(True)

    def _remove_mark(self) -> None:
        try:
            os.unlink(mark_path(self.settings.cluster_config_file))
        except FileNotFoundError:
            pass

    def fatal(self, message: str) -> None:
        """The node cannot go on, and the parent gets to know why."""
        self.failed(message)
        super().fatal(message)

    def failed(self, message: str) -> None:
        """Why this process will end."""
        self._channel.send(["failed", message])

    # -- from the parent ---------------------------------------------------------------------

    def _receive(self, message: Message, sock: socket.socket | None) -> None:
        kind, *rest = message
        if kind == "client" and sock is not None:
            self._received += 1
            self._entrances.adopt(rest[0], sock)
        elif kind == "status":
            self._learn(*rest)
        elif kind == "joined":
            self._has_joined()
        elif kind == "asked":
            self._gathering.asked(*rest)
        elif kind == "answered":
            self._gathering.answered(*rest)
        elif kind == "followed":
            self._followed.followed(*rest)
        elif kind == "happened":
            self._gathering.following.happened(*rest)
        elif kind == "set":
            self._apply(rest[0].encode("latin-1"), rest[1].encode("latin-1"))
        elif kind == "forget":
            self._forget(rest[0].encode())
        elif kind == "evacuate":
            self.evacuation.begin(lambda: None)  # the parent decides when all processes end
        elif kind == "stop":
            self._stop(rest[0])

    def _has_joined(self) -> None:
        """The parent says that this process reaches the others: jobs get their copies."""
        self._joined = True
        server = self.server
        server.joining = False
        server.degraded = (
            server.waiting or server.control.loading() or bool(server.control.write_error())
        )

    def _learn(self, host_ip: str, processes: list[dict[str, Any]], ended: Figures) -> None:
        self._processes, self._ended = processes, ended
        self._gathering.others = [
            one["number"]
            for one in processes
            if one["state"] == "ready" and one["number"] != self._start.number
        ]
        self._gathering.nodes = {
            one["id"].encode(): one["number"] for one in processes if one["id"]
        }
        membership = self.runtime.node.membership
        ids = [one["id"].encode() for one in processes if one["id"]]
        membership.siblings = [node_id for node_id in ids if node_id != membership.myself.id]
        if host_ip and not self._announced:
            self._announced = True
            self.settings.cluster_announce_ip = host_ip
            with self.runtime.turn():
                APPLY["cluster-announce-ip"](self.settings, self.server, self.log)
        self._meet()

    def _meet(self) -> None:
        """Introduce this node to the other processes that it does not know."""
        if not self.cluster.running:
            return
        with self.runtime.turn() as node:
            for one in self._processes:
                if one["id"] and not _knows(node, one["id"].encode()):
                    ip = one["ip"].encode()
                    node.membership.meet(ip, one["port"], one["bus_port"], node.now_ms)

    def _forget(self, node_id: bytes) -> None:
        with self.runtime.turn() as node:
            try:
                node.cluster.forget(node_id)
            except LocalError:
                pass  # it was never known here

    def _apply(self, name: bytes, value: bytes) -> None:
        """A client of some process has set a parameter."""
        control = self.server.control
        assert isinstance(control, NodeControl)
        try:
            control.apply_parameter(name, value)
        except CommandError as error:
            self.log.warning(f"CONFIG SET {name.decode('latin-1')}: {error.text}")

    def _stop(self, rewrite_log: bool) -> None:
        if rewrite_log and not self.aof.loading:
            try:
                self.aof.rewrite_now()
            except OSError as error:
                self.log.warning(f"Writing the log failed: {os_error_text(error)}")
        self._end("The daemon ends")

    def _orphaned(self) -> None:
        self._channel.close()
        self._end("The parent process is gone: this one ends, too")

    # -- to the parent -----------------------------------------------------------------------

    def _report(self) -> None:
        node = self.runtime.node
        membership = node.membership
        ip = plain_ip(membership.myself.ip)
        report = {
            "figures": figures(self.server),
            "received": self._received,
            "work": jobs_left(node),
            "evacuated": self.evacuation.over,
            "reached": [one.decode() for one in membership.siblings if reaches(node, one)],
            "nodes": nodes_known(node),
            "ip": "" if is_loopback(ip) else ip.decode(),
        }
        self._channel.send(["report", report])

    # -- for commands ------------------------------------------------------------------------

    def setting_changed(self, directive: str) -> None:
        """CONFIG SET changed the value of a directive of the daemon."""
        mine = share(self.common, self._start.number, self._start.count)
        row = DIRECTIVES[directive]
        row.assign(self.settings, row.value(mine))
        if directive == "dir":
            self._make_folder(mine.dir)
        super().setting_changed(directive)

    def _make_folder(self, folder: str) -> None:
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            self.log.warning(f"The folder {folder} can't be made: {os_error_text(error)}")

    def parameter_set(self, name: bytes, value: bytes) -> None:
        """A client of this process has set a parameter."""
        self._channel.send(["set", name.decode("latin-1"), value.decode("latin-1")])

    def info_processes(self) -> list[tuple[str, str]]:
        """What the parent knew of all processes a moment ago."""
        return fields(self._processes, self._ended)

    def request_shutdown(self, rewrite_log: bool) -> None:
        """SHUTDOWN is for the whole daemon."""
        self._channel.send(["shutdown", rewrite_log])

    def request_restart(self, delay_ms: int) -> None:
        """The parent starts this process again when it has ended."""
        self.request_stop(0)

    # -- stop --------------------------------------------------------------------------------

    def stopService(self) -> Deferred[Any]:
        """Stop, and report for the last time when all is written."""
        if self._loop.running:
            self._loop.stop()
            self._channel.send(["counted", self.plugin_host.view.figures()])
        stopped = super().stopService()
        return stopped.addBoth(self._say_goodbye)

    def _say_goodbye(self, result: object) -> object:
        self._report()
        self._channel.close()
        return result


def _knows(node: Node, node_id: bytes) -> bool:
    return node_id in node.membership.nodes
