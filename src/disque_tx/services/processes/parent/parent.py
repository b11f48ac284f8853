"""The parent: it listens, passes connections on, and sees to it that its children run.

It has no jobs. Start: check the configuration, make the folders, listen, start the children. What
one of them reports is sent to all, every second: so they find each other at the start, and each can
answer INFO processes. CONFIG SET and SHUTDOWN, which any of them may get, go to all.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from twisted.application.service import MultiService
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import LoopingCall

from disque_tx import config
from disque_tx.config.paths import os_error_text
from disque_tx.engine.processes import Emptying
from disque_tx.errors import CommandError, ConfigError
from disque_tx.services.bus.endpoints import first_address
from disque_tx.services.machine.process import SystemdWatchdog, notify
from disque_tx.services.processes import settings as shares
from disque_tx.services.processes.channel import Message
from disque_tx.services.processes.gathering import ENDED
from disque_tx.services.processes.parent import surplus as leftovers
from disque_tx.services.processes.parent.balance import Balance
from disque_tx.services.processes.parent.children import (
    ChildProcess,
    Start,
    environment_of_children,
)
from disque_tx.services.processes.parent.evacuation import DaemonEvacuation
from disque_tx.services.processes.parent.handover import FrontListeners
from disque_tx.services.processes.parent.joining import JoiningProcesses
from disque_tx.services.processes.parent.kept import Kept
from disque_tx.services.processes.parent.reports import ProcessReports
from disque_tx.services.processes.parent.supervision import Supervision

if TYPE_CHECKING:
    from disque_tx.config.settings import Settings
    from disque_tx.services.machine.log import DaemonLog

_REPORT_S: Final = 1.0


class Parent(MultiService):
    """The whole daemon. ``started``: called when all processes listen, with an empty text, or when
    the start has failed, with the reason. ``environment``: of this process."""

    def __init__(
        self,
        settings: Settings,
        log: DaemonLog,
        reactor: Any,
        environment: dict[str, str],
        started: Callable[[str], object],
    ) -> None:
        super().__init__()
        self.exit_status = 0
        self.restart_wanted = None
        self._settings = settings
        self._log = log
        self._reactor = reactor
        self._environment = environment_of_children(environment)
        self._started = started
        self._emptying: dict[int, Emptying] = {}
        self._balance = Balance()
        self._listeners = FrontListeners(settings, log, self._balance, reactor)
        self._supervision = Supervision(reactor, self._launch, self)
        members = self._supervision.members
        self._reports = ProcessReports(settings, members)
        self.evacuation = DaemonEvacuation(settings, members, self._reports, reactor)
        self._listening = self._serving = self._all_serve = False
        self._kept = Kept()
        self._joining = JoiningProcesses(self._reports, members)
        self._count = shares.processes(settings)
        self._wanted = list(range(1, self._count + 1)) if self._count > 1 else [0]
        self._surplus = leftovers.surplus(settings, self._wanted)
        self._meeting_ip = shares.meeting_ip(settings)
        self._loop = LoopingCall(self._spread_reports)
        self._loop.clock = reactor
        SystemdWatchdog(
            reactor, lambda: self._serving and self._supervision.alive
        ).setServiceParent(self)
        self._listeners.setServiceParent(self)

    # -- start -------------------------------------------------------------------------------

    def privilegedStartService(self) -> None:
        """Listen; ``ConfigError`` when that, or something that processes need, is not possible."""
        if self._count > 1:
            shares.check(self._settings, self._count)
        if self._surplus:
            shares.check(self._settings, max(self._surplus))
        try:
            self._meeting_ip = first_address(self._meeting_ip.encode()).decode()
        except OSError as error:
            raise ConfigError(f"{self._meeting_ip}: {os_error_text(error)}") from error
        for number in [*self._wanted, *self._surplus]:
            self._make_folders(number)
        super().privilegedStartService()
        try:
            self._listeners.open()
        except Exception:
            self._listeners.close()
            raise

    def _make_folders(self, number: int) -> None:
        for folder in shares.folders(self._settings, number):
            try:
                os.makedirs(folder, exist_ok=True)
                if not os.access(folder, os.W_OK | os.X_OK):
                    raise PermissionError(None, "no files can be written there")
            except OSError as error:
                raise ConfigError(
                    f"Process {number} cannot use its folder {folder}: {os_error_text(error)}."
                ) from error

    def startService(self) -> None:
        """Start the children."""
        super().startService()
        for number in self._surplus:
            self._log.notice(
                f"Process {number} is surplus now: it gives its jobs to the others, and"
                " ends when it has none"
            )
            self._emptying[number] = Emptying(self._reactor.seconds())
        notify("STATUS=Starting the processes")
        self._supervision.start([*self._wanted, *self._surplus])
        self._loop.start(_REPORT_S, now=False)

    def _launch(self, number: int) -> ChildProcess:
        child = ChildProcess(
            lambda message: self._receive(number, message),
            lambda how: self._ended(number, how),
            lambda unsent: self._pass_again(number, unsent),
        )
        child.spawn(self._reactor, self._start_of(number), self._environment)
        self._reports.launched(number, child.pid, self._reactor.seconds())
        self._log.notice(f"Process {number} started with the ID {child.pid}")
        return child

    def _start_of(self, number: int) -> Start:
        settings = self._settings
        mine = shares.share(settings, number, self._count)
        if self._serving or not os.path.exists(shares.log_path(mine)):
            # It is for the start of the daemon; a new process has no log yet.
            mine.aof_enqueue_jobs_once = False
        takes_base_port = number == 1 and 0 not in self._supervision.members
        extra = shares.own_bus_port(settings, 0) if takes_base_port else 0
        return Start(mine, settings, number, self._count, extra, number in self._surplus)

    def _pass_again(self, number: int, unsent: list[tuple[Message, socket.socket]]) -> None:
        """Give the connections that a child had not accepted when it ended to other children."""
        self._balance.remove(number)
        for (_kind, entrance), sock in unsent:
            self._balance.give(entrance, sock)

    # -- from the children -------------------------------------------------------------------

    def _receive(self, number: int, message: Message) -> None:
        supervision = self._supervision
        if number not in supervision.members:
            return
        supervision.responded(number)
        kind, *rest = message
        if kind == "opened":
            self._reports.opened(number, rest[0])
            supervision.has_opened(number)
            self._spread_reports()
        elif kind == "ready":
            self._joining.begin(number, self._reactor.seconds())
            supervision.is_ready(number)
            self._spread_reports()
        elif kind == "failed":
            supervision.has_failed(number, rest[0])
        elif kind == "report":
            self._reported(number, rest[0])
        elif kind == "ask":
            self._kept.seen(number, rest.pop())
            self._send(number, ["answered", ENDED, *rest, self._kept.figures])
            self._send_others(number, ["asked", number, *rest])
        elif kind == "follow":
            self._send_others(number, ["followed", number, *rest])
        elif kind == "events":
            self._send(rest[0], ["happened", *rest[1:]])
        elif kind == "late":
            self._send(number, ["answered", ENDED, rest[0], self._kept.also(rest[1])])
        elif kind == "counted":
            self._kept.seen(number, rest[0])
        elif kind == "answer":
            self._kept.seen(number, rest[2])
            self._send(rest[0], ["answered", number, *rest[1:]])
        elif kind == "set":
            self._set(rest[0], rest[1])
        elif kind == "shutdown":
            self._log.warning("User requested shutdown...")
            self._stop(rewrite_log=rest[0])

    def _reported(self, number: int, report: dict[str, Any]) -> None:
        self._reports.receive(number, report)
        if self._all_serve and self._joining.is_over(number, self._reactor.seconds()):
            self._send(number, ["joined"])
            if self._listening:
                self._take_connections([number])
            self._check_ready()
        figures = report["figures"]
        self._balance.report(number, figures["connected_clients"], report["received"])
        emptying = self._emptying.get(number)
        member = self._supervision.members[number]
        if emptying is not None and member.ready and self._serving:
            others = [self._reports.of(other).get("nodes", 0) for other in self._wanted]
            now_s = self._reactor.seconds()
            if emptying.may_end(report["work"], report["nodes"], others, now_s):
                self._supervision.retire(number)

    def _set(self, name: str, value: str) -> None:
        """Set a parameter in all processes, also in the one that has it: so all have the same value
        when two clients set it at once. Processes that are started later have it from here, but for
        ``dir``: their logs are where they were."""
        if name.lower() != "dir":
            try:
                config.set_value(self._settings, name.encode("latin-1"), value.encode("latin-1"))
            except CommandError as error:
                self._log.warning(f"CONFIG SET {name}: {error.text}")
                return
        self._log.level = self._settings.loglevel
        self._send_all(["set", name, value])

    def _send(self, number: int, message: Message) -> None:
        member = self._supervision.members.get(number)
        if member is not None and member.child is not None:
            member.child.send(message)

    def _send_others(self, number: int, message: Message) -> None:
        for other in self._supervision.members:
            if other != number:
                self._send(other, message)

    def _send_all(self, message: Message) -> None:
        for member in self._supervision.members.values():
            if member.child is not None:
                member.child.send(message)

    def _spread_reports(self) -> None:
        processes = self._reports.for_children(self._meeting_ip, self._reactor.seconds())
        self._send_all(["status", self._reports.host_ip, processes, self._reports.counted])

    def _take_connections(self, numbers: list[int]) -> None:
        """Let these child processes take connections, except surplus ones."""
        members = self._supervision.members
        children = {n: members[n].child for n in numbers if n in self._wanted}
        self._balance.add({n: child for n, child in children.items() if child is not None})

    def _ended(self, number: int, how: str) -> None:
        self._balance.remove(number)
        self._joining.end(number)
        self._reports.ended(number)
        self._kept.ended(number)
        self._supervision.ended(number, how)

    # -- from the supervision ----------------------------------------------------------------

    def opened(self) -> None:
        """All listen: the daemon takes connections; clients get LOADING until it is over."""
        self._listening = True
        self._take_connections(self._wanted)
        self._listeners.announce()
        self._started("")

    def ready(self) -> None:
        """All serve clients; the daemon is ready once they reach each other as well."""
        self._all_serve = True
        for number in self._supervision.members:
            self._joining.begin(number, self._reactor.seconds())

    def _check_ready(self) -> None:
        if self._serving or not self._all_serve or self._joining.busy:
            return
        self._serving = True
        self._settings.aof_enqueue_jobs_once = False  # each process has used it
        count = len(self._supervision.members)
        self._log.notice(f"All {count} processes serve clients")
        notify(f"READY=1\nSTATUS=Serving clients with {count} processes")

    def restarting(self, number: int, how: str, pause_s: float) -> None:
        """A process ended and will be started again."""
        when = f"in {pause_s:.1f} s" if pause_s else "now"
        self._log.warning(
            f"Process {number} has ended ({how or 'status 0'}) and is started again {when}"
        )

    def silent(self, number: int) -> None:
        """A process did not report."""
        self._log.warning(f"Process {number} does not report any more, and is killed")

    def retired(self, number: int) -> bool:
        """A surplus process has ended; whether it was empty."""
        report = self._reports.of(number)
        if report.get("work", 1):
            return False
        self._log.notice(f"Process {number} has no jobs any more: its files are removed")
        leftovers.remove(self._settings, number, self._log)
        self._reports.forget(number)
        del self._emptying[number]
        self._send_all(["forget", report["id"]])
        return True

    def stopped(self, reason: str) -> None:
        """All have ended."""
        if reason:
            self._log.warning(reason)
            self.exit_status = 1
            self._started(reason)
        self._log.warning("Disque is now ready to exit, bye bye...")
        self._reactor.stop()

    # -- stop --------------------------------------------------------------------------------

    def request_stop(self, status: int) -> None:
        """End the daemon in an orderly way."""
        self.exit_status = max(self.exit_status, status)
        self._stop()

    def _stop(self, rewrite_log: bool = False) -> None:
        notify("STOPPING=1")
        self._listeners.close()
        self._balance.close()
        self._supervision.stop(rewrite_log)

    def kill(self) -> None:
        """End all children at once."""
        self._supervision.kill()

    def pass_on(self, number: int) -> None:
        """Send a signal to all children: they do what it means."""
        for member in self._supervision.members.values():
            if member.child is not None:
                member.child.signal(number)

    def stopService(self) -> Deferred[Any]:
        """Everything has ended."""
        if self._loop.running:
            self._loop.stop()
        super().stopService()
        return succeed(None)
