"""Every request on its way to its handler: the checks in the original's order, then statistics.

Client protocol, section 5. This is the hot path of the daemon: one clock reading per request, and
nothing that is not needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from disque_tx.commands.asking import LocalRespondent
from disque_tx.commands.base.context import Command, Registry, Server
from disque_tx.commands.base.readonly import check_reader
from disque_tx.commands.direct import CommandGate, DirectProtocol
from disque_tx.commands.server.admin import monitor_line
from disque_tx.core.base.answerline import AnswerLine
from disque_tx.core.base.client import (
    BLOCKED_ADDJOB,
    NOT_BLOCKED,
    REPLY_OFF,
    REPLY_ON,
    REPLY_SKIP,
    REPLY_SKIP_NEXT,
    Client,
)
from disque_tx.core.eviction import evict
from disque_tx.errors import CommandError, PeerError
from disque_tx.messages.records import RequestSource

_QUOTED_NAME_MAX: Final = 128
#: What is answered while a process does not reach the others of its daemon, besides what is while
#: the log is being loaded: nothing that concerns jobs.
_WHILE_JOINING: Final = frozenset(
    (
        *(b"ping", b"hello", b"time", b"client", b"cluster", b"config", b"monitor", b"slowlog"),
        *(b"debug", b"bgrewriteaof"),
    )
)
#: For how long copies may be awaited while their client adds further jobs: well below the time
#: after which another node is drawn for a copy that is not confirmed.
_LATE_MS: Final = 10
#: How long one client's requests may take before those of others are executed.
SHARE_NS: Final = 2_000_000
#: How long the requests of all clients may take before the replies are sent.
TURN_NS: Final = 8_000_000


class Dispatcher(CommandGate):
    """Runs requests. ``clock_ns``: a monotonic clock in nanoseconds."""

    def __init__(self, server: Server, registry: Registry, clock_ns: Callable[[], int]) -> None:
        self._server = server
        self._registry = registry
        self._node = server.node
        self._node.queue_queries.respondent = LocalRespondent(server)
        self._clock_ns = clock_ns
        self._last_ns: i64 = 0
        self._turn_ns: i64 = 0
        self._exact: dict[bytes, Command] = {}
        self.names_changed()

    def names_changed(self) -> None:
        """The table of names was changed: index them in lower and in upper case."""
        self._exact = {}
        for name, command in self._registry.by_name.items():
            self._exact[name] = command
            self._exact[name.upper()] = command

    def begin(self) -> None:
        """A turn begins: the first request's time is counted from here."""
        self._turn_ns = self._last_ns = self._clock_ns()

    def is_turn_over(self) -> bool:
        """The requests of this turn took so long that their replies should be sent first."""
        return self._last_ns - self._turn_ns >= TURN_NS

    def drain(self, client: Client, source: RequestSource) -> bool:
        """Run requests that ``source`` holds complete, for as long as one client's share of a turn
        lasts (``SHARE_NS``); ``True`` when there may be more of them.

        Stops early when the client blocks, is about to be closed, or all are paused. Lets the
        ``PeerError`` of a malformed request through. A client that waits for the key or the
        copies of a job may add others meanwhile: their answers leave in order.
        """
        self._node.outbox.touch(client)
        end_ns = self._last_ns + SHARE_NS
        while True:
            if client.closing or client.abort_now:
                return False
            if self._server.paused_until_ms != 0:
                return False
            if client.blocked != NOT_BLOCKED:
                if client.blocked != BLOCKED_ADDJOB or not self._run_ahead(client, source):
                    return False
            else:
                if source.restricted and client.authenticated:
                    source.restricted = False
                argv = source.next() if client.held is None else _held(client)
                if argv is None:
                    return False
                self._run(client, argv)
            if self._last_ns >= end_ns:
                return True

    def _run_ahead(self, client: Client, source: RequestSource) -> bool:
        """Execute the next ADDJOB of a client that waits for a job's key or copies; ``False`` if
        there is none yet, or something else comes first."""
        if client.held is not None or client.reply_mode != REPLY_ON:
            return False
        waiters = self._node.waiters
        if client.line is not None and not self._may_add(client.line):
            return False
        try:
            argv = source.next()
        except PeerError as error:
            client.held, client.fault = [], error
            return False
        if argv is None:
            return False
        if self._node.policies.copying or not self._is_add(argv):
            client.held = argv
            return False
        line = client.line
        if line is None:
            line = waiters.begin_line(client)
        line.executing = True
        mark = client.replies.mark()
        self._answer(client, argv)
        waiters.end_ahead(client, line, mark)
        return True

    def _may_add(self, line: AnswerLine) -> bool:
        """Whether the client of this line may add another job. Not while its first one waits for
        long: nodes that confirm late would get more copies than they can take, and jobs more
        copies than they need."""
        return not line.is_full() and self._node.now_ms - line.waits_since() < _LATE_MS

    def _is_add(self, argv: list[bytes]) -> bool:
        """Whether this is ADDJOB."""
        command = self._named(argv[0])
        return command is not None and command.name == b"addjob"

    def drain_direct(self, client: Client, protocol: DirectProtocol) -> bool:
        """Execute the complete requests of a protocol that works within turns."""
        self._node.outbox.touch(client)
        end_ns = self._last_ns + SHARE_NS
        stats = self._server.stats
        while True:
            if client.blocked != NOT_BLOCKED or client.closing or client.abort_now:
                return False
            if self._server.paused_until_ms != 0:
                return False
            before_ns = self._last_ns
            mine = protocol.stats
            commands, errors = stats.commands_processed, mine.errors
            if not protocol.step():
                return False
            mine.commands += stats.commands_processed - commands
            stats.errors += mine.errors - errors
            if self._last_ns == before_ns:  # it counted as no command
                self._last_ns = self._clock_ns()
            if self._last_ns >= end_ns:
                return True

    def permit(self, client: Client, command: Command) -> None:
        client.last_command = command.name
        self._check_node(command)

    def account(self, client: Client, command: Command, words: list[bytes]) -> None:
        if self._server.monitors:
            self._show(client, command, words)
        self._account(command, words, client)
        if self._node.waiters.ready:
            self._node.serve()

    def run(self, client: Client, argv: list[bytes]) -> None:
        """Run one request and write its reply to the client's sink."""
        self._last_ns = self._clock_ns()
        self._run(client, argv)

    def _run(self, client: Client, argv: list[bytes]) -> None:
        if client.reply_mode == REPLY_ON:
            self._answer(client, argv)
            return
        if client.reply_mode == REPLY_SKIP_NEXT:
            client.reply_mode = REPLY_SKIP
        mark = client.replies.mark()
        self._answer(client, argv)
        if client.reply_mode == REPLY_OFF or client.reply_mode == REPLY_SKIP:
            client.replies.rewind(mark)
        if client.reply_mode == REPLY_SKIP:
            client.reply_mode = REPLY_ON

    def _answer(self, client: Client, argv: list[bytes]) -> None:
        command = self._named(argv[0])
        if command is None:
            self._unknown(client, argv[0])
            return
        client.last_command = command.name
        try:
            self._check(client, command, argv)
            if self._server.monitors:
                self._show(client, command, argv)
            command.run(self._server, client, argv)
        except CommandError as error:
            client.replies.error(error.reply())
            self._server.stats.errors += 1
            if client.refused:
                client.refused = False
                self._last_ns = self._clock_ns()
                return
        self._account(command, argv, client if client.id < 0 else None)
        if self._node.waiters.ready:
            self._node.serve()

    def _named(self, name: bytes) -> Command | None:
        """The command of this name, in any letters."""
        command = self._exact.get(name)
        return command if command is not None else self._exact.get(name.lower())

    def _unknown(self, client: Client, name: bytes) -> None:
        client.last_command = b""
        if name.upper() == b"QUIT":
            client.closing = True
            client.reply_mode = REPLY_ON
            client.replies.status(b"OK")
            return
        quoted = name.split(b"\0")[0][:_QUOTED_NAME_MAX].decode("latin-1")
        client.replies.error(CommandError("ERR", f"unknown command '{quoted}'").reply())
        self._server.stats.errors += 1
        self._last_ns = self._clock_ns()

    def _check(self, client: Client, command: Command, argv: list[bytes]) -> None:
        """Raises ``CommandError`` for what is refused before it runs, and marks it so."""
        client.refused = True
        if not command.accepts(argv):
            raise CommandError(
                "ERR", f"wrong number of arguments for '{command.name.decode()}' command"
            )
        server = self._server
        if server.password_required and not client.authenticated and not command.before_auth(argv):
            raise CommandError("NOAUTH", "Authentication required.")
        if client.reader:
            check_reader(command.name, argv)
        self._check_node(command)
        client.refused = False

    def _check_node(self, command: Command) -> None:
        """Raises ``CommandError`` for what the state of the node does not allow."""
        memory = self._node.memory
        if memory.limit != 0 and memory.level() == 2:
            enough = self._make_room()
            if not enough and command.denyoom:
                raise CommandError("OOM", "command not allowed when used memory > 'maxmemory'.")
        if self._server.degraded:
            self._check_log(command)

    def _make_room(self) -> bool:
        """Try to get below 95 % of maxmemory."""
        begun_ns: i64 = self._clock_ns()
        enough = evict(self._node, self._server.eviction_allowed, self._node.random)
        took_ms = (self._clock_ns() - begun_ns) // 1_000_000
        self._server.latency.sample(b"eviction-cycle", self._node.wall_us // 1_000_000, took_ms)
        return enough

    def _check_log(self, command: Command) -> None:
        """Raises ``CommandError`` while the log cannot be written or is being loaded."""
        reason = self._server.control.write_error()
        if reason and (command.write or command.name == b"ping"):
            raise CommandError("MISCONF", f"Errors writing to the AOF file: {reason}")
        if self._server.control.loading() and not command.loading:
            raise CommandError("LOADING", "Disque is loading the dataset in memory")
        if self._server.waiting and not command.loading and command.name not in _WHILE_JOINING:
            raise CommandError("LOADING", self._awaited())

    def _awaited(self) -> str:
        """What this process waits for."""
        server = self._server
        if server.joining:
            return "The processes of this daemon do not reach each other yet"
        reached = len(self._node.membership.reachable) + 1
        return (
            f"This node waits until it reaches {server.awaited_nodes} nodes, and reaches {reached}"
        )

    def _show(self, client: Client, command: Command, argv: list[bytes]) -> None:
        line = monitor_line(client, argv, self._node.wall_us, command.name)
        for monitor in self._server.monitors:
            monitor.replies.status(line)
            self._node.outbox.touch(monitor)

    def _account(self, command: Command, argv: list[bytes], plugged: Client | None) -> None:
        """``plugged``: the client, if it came by the protocol of a plugin."""
        now_ns: i64 = self._clock_ns()
        taken_ns = now_ns - self._last_ns
        self._last_ns = now_ns
        command.calls += 1
        command.ns += taken_ns
        server = self._server
        server.stats.commands_processed += 1
        slowlog = server.slowlog
        if slowlog.slower_than_us >= 0 and taken_ns >= slowlog.slower_than_us * 1000:
            unix_s = self._node.wall_us // 1_000_000
            slowlog.record(argv, unix_s, taken_ns // 1000, command.name, plugged)
        latency = server.latency
        if latency.threshold_ms > 0 and taken_ns >= latency.threshold_ms * 1_000_000:
            event = b"fast-command" if command.fast else b"command"
            latency.sample(event, self._node.wall_us // 1_000_000, taken_ns // 1_000_000)


def _held(client: Client) -> list[bytes]:
    """The request that was read while it could not be executed; raises its ``PeerError`` if it is
    none."""
    argv = client.held
    assert argv is not None
    client.held = None
    if client.fault is not None:
        raise client.fault
    return argv
