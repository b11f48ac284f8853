"""Keeps faults in the code of a plugin away from everybody else.

What a plugin's code raises ends the connection that it was about, and is one line of the log; what
keeps the reactor busy is one line as well. Every line names the plugin. ``SystemExit``,
``GeneratorExit`` and their like, which do not inherit from ``Exception``, end no more than that
either: Twisted handles the signals that stop the daemon, so none of them comes from elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from twisted.internet.interfaces import IAddress, IDelayedCall, IProtocol, IProtocolFactory
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from zope.interface import directlyProvides, providedBy

from disque_tx.services.net.listening import shown_host

if TYPE_CHECKING:
    from disque_tx.services.machine.log import DaemonLog

_T = TypeVar("_T")

#: A plugin that keeps the reactor busy for so long is reported, but not more often than this.
BUSY_MS: Final = 100
REPORT_MS: Final = 10_000


class Guard:
    """Watches over the code of one plugin. ``name``: of the plugin. ``connection``: the one that
    its code is busy with. ``steady_ms``: a clock in milliseconds."""

    def __init__(self, name: str, log: DaemonLog, steady_ms: Callable[[], int]) -> None:
        self.name = name
        self.connection: GuardedProtocol | None = None
        self._log = log
        self._steady_ms = steady_ms
        self._elsewhere_ms = 0
        self._reported_ms: int | None = None

    def run(self, what: str, work: Callable[..., _T], *args: Any) -> _T:
        """Call code of the plugin; what it raises is raised. ``what``: its name in the log."""
        outside_ms, self._elsewhere_ms = self._elsewhere_ms, 0
        begun_ms = self._steady_ms()
        try:
            return work(*args)
        finally:
            now_ms = self._steady_ms()
            took_ms = now_ms - begun_ms - self._elsewhere_ms
            self._elsewhere_ms = outside_ms
            if took_ms >= BUSY_MS:
                self._report_busy(what, took_ms, now_ms)

    def elsewhere(self, work: Callable[..., _T], *args: Any) -> _T:
        """Call code of the node, whose time is not that of the plugin."""
        before_ms, begun_ms = self._elsewhere_ms, self._steady_ms()
        try:
            return work(*args)
        finally:
            self._elsewhere_ms = before_ms + self._steady_ms() - begun_ms

    def _report_busy(self, what: str, took_ms: int, now_ms: int) -> None:
        if self._reported_ms is None or now_ms - self._reported_ms >= REPORT_MS:
            self._reported_ms = now_ms
            self._log.warning(
                f"The plugin {self.name} kept the node busy for {took_ms} ms in {what}; nobody"
                " else was served meanwhile"
            )

    def failed(self, what: str, failure: Failure, outcome: str) -> None:
        """Code of the plugin raised; ``outcome``: what that ended."""
        frames = failure.getTraceback().splitlines()
        places = [line.strip() for line in frames if line.lstrip().startswith("File ")]
        where = f" ({places[-1]})" if places else ""
        kind = failure.type.__name__ if failure.type is not None else "an error"
        text = " ".join(failure.getErrorMessage().split())
        self._log.warning(
            f"The plugin {self.name} failed in {what}; {outcome}: {kind}: {text}{where}"
        )
        for line in frames:
            self._log.verbose(line)

    def ended(self, peer: IAddress, why: str) -> None:
        """A connection of the plugin ended for a reason that is its own fault."""
        self._log.warning(f"The plugin {self.name}: the client {shown_host(peer)} {why}")


class GuardedProtocol:
    """A connection of a plugin: passes everything on, and ends when that raises. ``on_lost``: what
    is called once it is gone, after the plugin was told."""

    def __init__(self, guard: Guard, wrapped: Any) -> None:
        self.on_lost: list[Callable[[], None]] = []
        self._guard = guard
        self._wrapped = wrapped
        self._transport: Any = None
        self._broken = False
        directlyProvides(self, providedBy(wrapped), IProtocol)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wrapped, name)

    def makeConnection(self, transport: Any) -> None:
        """The connection is there. What the plugin writes leaves at once, also in pieces."""
        self._transport = transport
        if hasattr(transport, "setTcpNoDelay"):
            transport.setTcpNoDelay(True)
        self._run("connectionMade", self._wrapped.makeConnection, transport)

    def dataReceived(self, data: bytes) -> None:
        """Bytes arrived."""
        if not self._broken:
            self._run("dataReceived", self._wrapped.dataReceived, data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """The connection is gone, and so are the clients that came by it."""
        self._run("connectionLost", self._wrapped.connectionLost, reason)
        for tell in self.on_lost:
            tell()

    def _run(self, what: str, work: Callable[..., object], *args: Any) -> None:
        guard = self._guard
        outer, guard.connection = guard.connection, self
        try:
            guard.run(what, work, *args)
        except BaseException:
            guard.failed(what, Failure(), "the connection is closed")
            self._broken = True
            self._transport.abortConnection()
        finally:
            guard.connection = outer


class GuardedFactory:
    """A plugin's factory, whose connections are guarded."""

    def __init__(self, guard: Guard, wrapped: IProtocolFactory) -> None:
        self._guard = guard
        self._wrapped = wrapped
        directlyProvides(self, providedBy(wrapped), IProtocolFactory)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wrapped, name)

    def buildProtocol(self, addr: IAddress | None) -> GuardedProtocol | None:
        """A connection; ``None`` if the plugin refuses it, or fails."""
        guard = self._guard
        try:
            protocol = guard.run("buildProtocol", self._wrapped.buildProtocol, addr)
        except BaseException:
            guard.failed("buildProtocol", Failure(), "the connection is closed")
            return None
        return None if protocol is None else GuardedProtocol(guard, protocol)


class GuardedReactor:
    """The reactor as a plugin sees it: what raises in a timer is a line of the log."""

    def __init__(self, guard: Guard, reactor: Any) -> None:
        self._guard = guard
        self._reactor = reactor
        directlyProvides(self, providedBy(reactor))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reactor, name)

    def callLater(self, delay_s: float, work: Any, *args: Any, **named: Any) -> IDelayedCall:
        """Call a function of the plugin later."""
        call: IDelayedCall = self._reactor.callLater(delay_s, self._run, work, args, named)
        return call

    def _run(self, work: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        try:
            self._guard.run("a timer", lambda: work(*args, **named))
        except BaseException:
            self._guard.failed("a timer", Failure(), "the timer is over")
