"""The dispatcher: checks in order, statistics, suppressed replies (client protocol, section 5)."""

from __future__ import annotations

from disque_tx.commands.base.arguments import MASK
from disque_tx.commands.base.values import Error, Status, Value, ValueReplies
from disque_tx.commands.dispatch import SHARE_NS, TURN_NS, Dispatcher
from disque_tx.core.base.client import NOT_BLOCKED, REPLY_ON, Client
from disque_tx.errors import PeerError
from disque_tx.messages.records import RequestSource
from disque_tx.wire.resp.requests import MAX_ARGS_UNAUTHENTICATED
from tests.commands.desk import OK, UNIX_S, DeskCase

LOADING = Error(b"LOADING Disque is loading the dataset in memory")
NOAUTH = Error(b"NOAUTH Authentication required.")
OOM = Error(b"OOM command not allowed when used memory > 'maxmemory'.")
MISCONF = Error(b"MISCONF Errors writing to the AOF file: No space left on device")


class Waiting(RequestSource):
    """Requests that a client has already sent, possibly followed by a malformed one."""

    def __init__(self, requests: list[list[bytes]], error: str = "") -> None:
        super().__init__()
        self.requests = requests
        self.error = error

    def next(self) -> list[bytes] | None:
        if self.requests:
            argv = self.requests.pop(0)
            if self.restricted and len(argv) > MAX_ARGS_UNAUTHENTICATED:
                raise PeerError("Protocol error: unauthenticated multibulk length")
            return argv
        if self.error:
            raise PeerError(self.error)
        return None


class DispatchCase(DeskCase):
    """Runs requests through the dispatcher, with a clock that the test moves."""

    def setUp(self) -> None:
        super().setUp()
        self.now_ns = 1_000_000_000
        self.tick_ns = 0
        self.server.slowlog.slower_than_us = -1
        self.dispatcher = Dispatcher(self.server, self.server.registry, self.clock_ns)
        self.dispatcher.begin()

    def clock_ns(self) -> int:
        self.now_ns += self.tick_ns
        return self.now_ns

    def replies(self, client: Client | None = None) -> list[Value]:
        """The replies that a client received since the last call."""
        replies = (client or self.client).replies
        assert isinstance(replies, ValueReplies)
        values = replies.values
        replies.clear()
        return values

    def do(self, line: str, client: Client | None = None) -> list[Value]:
        """All replies to one request, whose words are separated by blanks."""
        self.dispatcher.run(client or self.client, line.encode().split(b" "))
        return self.replies(client)

    def calls(self, name: bytes) -> int:
        return int(self.server.registry.by_name[name].calls)


class CheckTests(DispatchCase):
    """Requests that are refused before they run."""

    def test_names(self) -> None:
        """Command names are case-insensitive."""
        for name in ("PING", "ping", "PiNg"):
            self.assertEqual([Status(b"PONG")], self.do(name))

    def test_unknown(self) -> None:
        """The error shows the name as sent, on one line, up to a NUL and to a limited length."""
        for name, shown in (
            (b"Foo", b"Foo"),
            (b"foo\r\nbar", b"foo  bar"),
            (b"foo\0bar", b"foo"),
            (b"\xff", b"\xff"),
            (b"x" * 1000, b"x" * 128),
        ):
            self.dispatcher.run(self.client, [name])
            self.assertEqual([Error(b"ERR unknown command '%s'" % shown)], self.replies())
            self.assertEqual(b"", self.client.last_command)

    def test_arity(self) -> None:
        """The error shows the original name, even of a renamed command."""
        line = Error(b"ERR wrong number of arguments for 'show' command")
        self.assertEqual([line], self.do("SHOW a b"))
        self.server.registry.rename(b"show", b"look")
        self.dispatcher.names_changed()
        self.assertEqual([line], self.do("Look a b"))
        self.assertEqual([Error(b"ERR unknown command 'SHOW'")], self.do("SHOW a"))

    def test_order(self) -> None:
        """Unknown, arity, password, memory, log, loading: the first check that fails replies."""
        self.server.password_required = True
        self.server.eviction_allowed = False
        self.node.memory.limit, self.node.memory.used = 1000, 960
        self.server.degraded = True
        self.control.log_error = "No space left on device"
        self.control.is_loading = True
        self.assertEqual([Error(b"ERR unknown command 'NOPE'")], self.do("NOPE"))
        wrong = Error(b"ERR wrong number of arguments for 'addjob' command")
        self.assertEqual([wrong], self.do("ADDJOB q"))
        self.assertEqual([NOAUTH], self.do("ADDJOB q b 0"))
        self.client.authenticated = True
        self.assertEqual([OOM], self.do("ADDJOB q b 0"))
        self.node.memory.limit = 0
        self.assertEqual([MISCONF], self.do("ADDJOB q b 0"))
        self.control.log_error = ""
        self.assertEqual([LOADING], self.do("ADDJOB q b 0"))
        self.control.is_loading = False
        self.assertIsInstance(self.do("ADDJOB q b 0")[0], Status)
        self.assertEqual((1, 1), (self.calls(b"addjob"), self.server.stats.commands_processed))

    def test_password(self) -> None:
        """Only AUTH and a HELLO that contains the password are allowed without one."""
        self.server.password_required = True
        self.control.settings[b"requirepass"] = b"secret"
        self.assertEqual([NOAUTH], self.do("HELLO"))
        self.assertEqual([Error(b"ERR invalid password")], self.do("AUTH wrong"))
        self.assertEqual([NOAUTH], self.do("PING"))
        self.assertEqual([OK], self.do("AUTH secret"))
        self.assertEqual([Status(b"PONG")], self.do("PING"))

    def test_out_of_memory(self) -> None:
        """Only commands that need memory are refused, and none that ends or returns jobs; every
        command tries to make room first."""
        self.do("ADDJOB q b 0 RETRY 0")
        self.do("GETJOB FROM q")
        self.node.memory.limit = 1_000
        self.node.memory.used += 1_000
        self.assertEqual([OOM], self.do("ADDJOB q b 0"))
        self.assertEqual(0, len(self.node.jobs))
        for word in ("ACKJOB", "FASTACK", "DELJOB", "NACK", "ENQUEUE", "DEQUEUE"):
            self.assertEqual([0], self.do(word), word)
        shown = {command.name: command.flags for command in self.server.registry.table}
        self.assertIn("denyoom", shown[b"nack"])

    def test_room_is_made(self) -> None:
        """When eviction frees enough, the command runs."""
        for _ in range(100):
            self.do("ADDJOB q b 0 RETRY 0")
        self.do("GETJOB COUNT 100 FROM q")
        self.node.memory.limit = self.node.memory.used
        self.assertEqual([0], self.do("NACK"))
        self.assertTrue(80 < len(self.node.jobs) < 100)

    def test_log_trouble(self) -> None:
        """When the log cannot be written, write commands and PING are refused, nothing else."""
        self.server.degraded = True
        self.control.log_error = "No space left on device"
        for line in ("GETJOB NOHANG FROM q", "ACKJOB", "PING"):
            self.assertEqual([MISCONF], self.do(line))
        self.assertEqual([0], self.do("QLEN q"))

    def test_joining(self) -> None:
        """A process that does not reach the others of its daemon yet takes no jobs, which would get
        too few copies, and can be looked at; a problem of the log is named first."""
        self.server.joining = self.server.degraded = True
        joining = Error(b"LOADING The processes of this daemon do not reach each other yet")
        for line in ("ADDJOB q b 0", "GETJOB FROM q", "QLEN q", "ASK NODE LATENCY"):
            self.assertEqual([joining], self.do(line))
        self.assertEqual([Status(b"PONG")], self.do("PING"))
        self.control.is_loading = True
        self.assertEqual([LOADING], self.do("QLEN q"))

    def test_loading(self) -> None:
        """While the log is loaded only some commands work."""
        self.server.degraded = True
        self.control.is_loading = True
        for line in ("PING", "QLEN q", "CONFIG GET x", "HELLO"):
            self.assertEqual([LOADING], self.do(line))
        for line in ("INFO", "COMMAND COUNT", "LATENCY LATEST", "AUTH x"):
            self.assertNotEqual([LOADING], self.do(line))


class QuitTests(DispatchCase):
    """QUIT."""

    def test_quit(self) -> None:
        """QUIT is always allowed, with any arguments; requests after it are not executed."""
        self.server.password_required = True
        more = self.dispatcher.drain(self.client, Waiting([[b"Quit", b"now"], [b"PING"]]))
        self.assertFalse(more)
        self.assertEqual([OK], self.replies())
        self.assertTrue(self.client.closing)
        self.assertEqual(0, self.server.stats.commands_processed)

    def test_while_silent(self) -> None:
        """Under REPLY OFF it still replies and closes the connection."""
        for mode in ("OFF", "SKIP"):
            client = self.connect(b"127.0.0.1:6000")
            self.do(f"CLIENT REPLY {mode}", client)
            self.assertEqual([OK], self.do("QUIT", client))
            self.assertTrue(client.closing)

    def test_name_is_exact(self) -> None:
        """A longer name that starts with QUIT is another command."""
        self.dispatcher.run(self.client, [b"QUIT\0"])
        self.assertFalse(self.client.closing)


class SilenceTests(DispatchCase):
    """CLIENT REPLY."""

    def test_off(self) -> None:
        """No replies and no errors, until ON."""
        self.assertEqual([], self.do("CLIENT REPLY OFF"))
        for line in ("PING", "NOPE", "SHOW", "CLIENT REPLY SKIP", "PING"):
            self.assertEqual([], self.do(line))
        self.assertEqual([OK], self.do("CLIENT REPLY ON"))
        self.assertEqual([Status(b"PONG")], self.do("PING"))

    def test_skip(self) -> None:
        """One reply is left out, the next ones are sent."""
        for line in ("PING", "NOPE", "ADDJOB q b 0"):
            self.assertEqual([], self.do("CLIENT REPLY SKIP"))
            self.assertEqual([], self.do(line))
            self.assertEqual([Status(b"PONG")], self.do("PING"))
        self.assertEqual(1, len(self.node.jobs))

    def test_skip_twice(self) -> None:
        """A second SKIP has its own reply skipped, and skips the next one."""
        self.do("CLIENT REPLY SKIP")
        self.assertEqual([], self.do("CLIENT REPLY SKIP"))
        self.assertEqual([], self.do("PING"))
        self.assertEqual([Status(b"PONG")], self.do("PING"))

    def test_skip_of_a_blocking_command(self) -> None:
        """A job that arrives later is sent."""
        self.do("CLIENT REPLY SKIP")
        self.assertEqual([], self.do("GETJOB FROM q"))
        other = self.connect(b"127.0.0.1:5002")
        self.do("ADDJOB q b 0", other)
        self.assertEqual(1, len(self.replies()))

    def test_off_and_a_blocking_command(self) -> None:
        """The job is consumed without a reply."""
        self.do("CLIENT REPLY OFF")
        self.do("GETJOB FROM q")
        self.do("ADDJOB q b 0", self.connect(b"127.0.0.1:5002"))
        self.assertEqual([], self.replies())
        self.assertEqual(NOT_BLOCKED, self.client.blocked)
        self.assertEqual([OK], self.do("CLIENT REPLY ON"))

    def test_others_get_replies(self) -> None:
        """Suppressed replies of one client do not affect the waiting client that it serves."""
        waiting = self.connect(b"127.0.0.1:5002")
        self.do("GETJOB FROM q", waiting)
        self.do("CLIENT REPLY OFF")
        self.do("ADDJOB q b 0")
        self.assertEqual(1, len(self.replies(waiting)))
        self.assertEqual(REPLY_ON, waiting.reply_mode)


class DrainTests(DispatchCase):
    """Several requests in one turn."""

    def test_share(self) -> None:
        """A client's requests run for its share of a turn, however many that are; then others are
        served."""
        self.tick_ns = SHARE_NS // 3 + 1
        self.dispatcher.begin()
        source = Waiting([[b"PING"]] * 5)
        self.assertTrue(self.dispatcher.drain(self.client, source))
        self.assertEqual(3, len(self.replies()))
        self.assertFalse(self.dispatcher.drain(self.client, source))
        self.assertEqual(2, len(self.replies()))

    def test_share_of_what_is_refused(self) -> None:
        """Requests that are refused take time, too."""
        self.tick_ns = SHARE_NS
        for refused in ([b"NOTHING"], [b"ADDJOB"]):
            source = Waiting([refused] * 2)
            self.dispatcher.begin()
            self.assertTrue(self.dispatcher.drain(self.client, source))
            self.assertEqual(1, len(self.replies()))

    def test_turn_over(self) -> None:
        """All clients together get only as much time as replies can be delayed."""
        self.tick_ns = SHARE_NS
        self.dispatcher.begin()
        for _ in range(TURN_NS // SHARE_NS):
            self.assertFalse(self.dispatcher.is_turn_over())
            self.dispatcher.drain(self.client, Waiting([[b"PING"]] * 2))
        self.assertTrue(self.dispatcher.is_turn_over())
        self.dispatcher.begin()
        self.assertFalse(self.dispatcher.is_turn_over())

    def test_blocked(self) -> None:
        """Requests after a blocking command wait, and run afterwards."""
        source = Waiting([[b"GETJOB", b"FROM", b"q"], [b"PING"]])
        self.assertFalse(self.dispatcher.drain(self.client, source))
        self.assertFalse(self.dispatcher.drain(self.client, source))
        self.assertEqual([], self.replies())
        self.do("ADDJOB q b 0", self.connect(b"127.0.0.1:5002"))
        self.assertEqual([self.client], self.node.outbox.resumed)
        self.dispatcher.drain(self.client, source)
        self.assertEqual(Status(b"PONG"), self.replies()[1])

    def test_limits_end_with_the_password(self) -> None:
        """Requests pipelined after AUTH are no longer limited in size."""
        self.server.password_required = True
        self.control.settings[b"requirepass"] = b"secret"
        source = Waiting([[b"AUTH", b"secret"], [b"PING"]])
        source.restricted = True
        self.dispatcher.drain(self.client, source)
        self.dispatcher.drain(self.client, source)
        self.assertFalse(source.restricted)

    def test_paused(self) -> None:
        """CLIENT PAUSE suspends all clients, starting with the next request."""
        source = Waiting([[b"CLIENT", b"PAUSE", b"100"], [b"PING"]])
        self.dispatcher.drain(self.client, source)
        self.assertEqual([OK], self.replies())
        self.assertEqual([[b"PING"]], source.requests)
        self.server.paused_until_ms = 0
        self.dispatcher.drain(self.client, source)
        self.assertEqual([Status(b"PONG")], self.replies())

    def test_doomed(self) -> None:
        """A client that is being closed executes no more requests."""
        self.client.abort_now = True
        self.dispatcher.drain(self.client, Waiting([[b"PING"]]))
        self.assertEqual([], self.replies())

    def test_malformed(self) -> None:
        """Requests before a malformed one get replies; the error is raised to the caller."""
        source = Waiting([[b"PING"]], "Protocol error: x")
        self.assertRaises(PeerError, self.dispatcher.drain, self.client, source)
        self.assertEqual([Status(b"PONG")], self.replies())

    def test_touched(self) -> None:
        """Each client that may have output is flushed once at the end of the turn."""
        self.dispatcher.drain(self.client, Waiting([[b"PING"]] * 3))
        self.assertEqual([self.client], self.node.outbox.touched)


class StatisticsTests(DispatchCase):
    """Statistics, slow log, latency, MONITOR."""

    def test_only_executed_commands_count(self) -> None:
        """Requests refused before they run are not counted, those refused by their handler are."""
        for line in ("NOPE", "SHOW", "QUIT"):
            self.do(line)
        self.assertEqual(0, self.server.stats.commands_processed)
        self.do("SHOW nonsense")
        self.do("PING")
        self.assertEqual(2, self.server.stats.commands_processed)
        self.assertEqual((1, 1), (self.calls(b"show"), self.calls(b"ping")))

    def test_time_per_command(self) -> None:
        """Each command is charged with its own time, not with the pause before it."""
        self.tick_ns = 3_000
        self.do("PING")
        self.now_ns += 10**12
        self.do("PING")
        self.dispatcher.drain(self.client, Waiting([[b"PING"]] * 2))
        self.assertEqual(4 * 3_000, self.server.registry.by_name[b"ping"].ns)

    def test_slow_log(self) -> None:
        """Requests that took at least the limit are kept, with passwords hidden."""
        self.server.slowlog.slower_than_us = 5
        self.tick_ns = 4_999
        self.do("PING")
        self.tick_ns = 5_000
        self.do("AUTH secret")
        entries = [(e.unix_s, e.duration_us, e.words) for e in self.server.slowlog.entries]
        self.assertEqual([(UNIX_S, 5, [b"AUTH", MASK])], entries)

    def test_latency(self) -> None:
        """Slow commands are sampled; those marked as fast have their own event."""
        self.server.latency.threshold_ms = 2
        for tick_ns in (1_999_999, 2_500_000):
            self.tick_ns = tick_ns
            self.do("PING")
            self.do("CONFIG GET x")
        samples = {name: list(s.samples) for name, s in self.server.latency.series.items()}
        expected = [(UNIX_S, 2)]
        self.assertEqual({b"fast-command": expected, b"command": expected}, samples)

    def test_extreme_limits(self) -> None:
        """With the largest limits nothing is kept."""
        self.server.slowlog.slower_than_us = (1 << 63) - 1
        self.server.latency.threshold_ms = (1 << 63) - 1
        self.tick_ns = 10**9
        self.do("PING")
        self.assertEqual(0, len(self.server.slowlog.entries) + len(self.server.latency.series))

    def test_monitor(self) -> None:
        """Requests are shown before they run, as they were sent, but without passwords."""
        monitor = self.connect(b"127.0.0.1:5002")
        self.assertEqual([OK], self.do("MONITOR", monitor))
        self.assertEqual([OK], self.do("monitor", monitor)[1:])
        for line in ("PiNg a", "AUTH secret", "NOPE", "SHOW", "SHOW x", "QUIT"):
            self.do(line)
        start = b"%d.183936 [127.0.0.1:5001] " % UNIX_S
        expected = [start + b'"PiNg" "a"', start + b'"AUTH" "(redacted)"', start + b'"SHOW" "x"']
        self.assertEqual([Status(line) for line in expected], self.replies(monitor))
        self.assertIn(monitor, self.node.outbox.touched)

    def test_monitor_hides_renamed_secrets(self) -> None:
        """A password is hidden whatever the command was renamed to."""
        self.server.registry.rename(b"auth", b"open")
        self.dispatcher.names_changed()
        self.do("MONITOR")
        (line,) = self.do("OPEN secret", self.connect(b"127.0.0.1:5002")) and self.replies()
        assert isinstance(line, Status)
        self.assertNotIn(b"secret", line.text)

    def test_last_command(self) -> None:
        """CLIENT LIST shows the last known command, by its original name."""
        self.do("SHOW")
        self.assertEqual(b"show", self.client.last_command)


class ServiceTests(DispatchCase):
    """Waiting clients are served at the end of the command that queued the job."""

    def test_after_each_command(self) -> None:
        """The first waiting client has its job before the second ADDJOB of the same turn runs."""
        first, second = self.connect(b"1"), self.connect(b"2")
        for client in (first, second):
            self.do("GETJOB FROM q", client)
        add = [b"ADDJOB", b"q", b"b", b"0"]
        source = Waiting([add, [b"QLEN", b"q"], add])
        self.dispatcher.drain(self.client, source)
        self.assertEqual(0, self.replies()[1])
        self.assertEqual([1, 1], [len(self.replies(client)) for client in (first, second)])

    def test_pause_ends(self) -> None:
        """PAUSE none serves the clients that waited for the pause to end, at once."""
        self.do("PAUSE q out")
        self.do("ADDJOB q b 0")
        waiting = self.connect(b"1")
        self.assertEqual([], self.do("GETJOB FROM q", waiting))
        self.do("PAUSE q none")
        self.assertEqual(1, len(self.replies(waiting)))
