"""From sockets to commands and back: when output is sent, and the share of one client."""

from __future__ import annotations

import socket
from functools import partial
from pathlib import Path

from disque_tx.commands.base.context import Server
from disque_tx.commands.dispatch import SHARE_NS, TURN_NS
from disque_tx.core.base.client import Client
from disque_tx.engine.hotsocket import RECEIVE_BYTES
from disque_tx.errors import LocalError
from disque_tx.services.turns.pump import Session
from tests.services.nodebench import FIRST_ID, NodeCase, drive


class PumpCase(NodeCase):
    """Clients on the fast acceptor."""

    def session(self, number: int) -> Session:
        """The session of the client with this number."""
        client = self.server.clients[number]
        assert isinstance(client, Session)
        return client

    def read(self, sock: socket.socket) -> bytes:
        """All bytes sent to this client so far."""
        sock.setblocking(False)
        data = b""
        try:
            while piece := sock.recv(1 << 20):
                data += piece
        except BlockingIOError:
            return data
        return data + b"<end>"

    def ask(self, sock: socket.socket, *requests: bytes) -> bytes:
        """Send inline requests in one write, and read the replies."""
        sock.sendall(b"".join(request + b"\r\n" for request in requests))
        drive(self.reactor)
        return self.read(sock)


class OrderTests(PumpCase):
    """Nothing about a job is sent before the log is written."""

    def test_log_first(self) -> None:
        """At the commit no reply has been sent, afterwards all have."""
        client = self.dial()
        early: list[bytes] = []
        self.commits.before = lambda: early.append(self.read(client))
        self.assertEqual(b"+%s\r\n+PONG\r\n" % FIRST_ID, self.ask(client, b"ADDJOB q b 0", b"PING"))
        self.assertEqual({b""}, set(early))

    def test_log_fails(self) -> None:
        """Requests whose records could not be written get no reply."""
        client = self.dial()
        self.commits.error = LocalError("the disk is full")
        self.assertRaises(LocalError, self.ask, client, b"ADDJOB q b 0")
        self.assertEqual(b"", self.read(client))

    def test_log_first_for_a_full_socket(self) -> None:
        """A socket that becomes writable again gets none of this turn's replies before the commit
        either."""
        slow, adder = self.dial(), self.dial()
        self.ask(adder, b"ADDJOB big " + b"x" * 30_000 + b" 0")
        while not self.session(1).paused:
            slow.sendall(b"QPEEK big 1\r\n")
            drive(self.reactor)
        slow.sendall(b"GETJOB FROM q\r\n")
        drive(self.reactor)
        self.read(slow)  # now the socket becomes writable, in the same turn as the next request
        early: list[bytes] = []
        self.commits.before = lambda: early.append(self.read(slow))
        adder.sendall(b"ADDJOB q the-job 0\r\n")
        drive(self.reactor)
        self.assertNotIn(b"the-job", early[0])
        self.assertIn(b"the-job", b"".join(early) + self.read(slow))

    def test_resumed_in_the_same_turn(self) -> None:
        """Requests sent after a blocking one are executed when that gets its reply."""
        waiting, adder = self.dial(), self.dial()
        self.assertEqual(b"", self.ask(waiting, b"GETJOB FROM q", b"PING"))
        commits = self.commits.commits
        self.ask(adder, b"ADDJOB q b 0")
        self.assertEqual(
            b"*1\r\n*3\r\n$1\r\nq\r\n$40\r\n%s\r\n$1\r\nb\r\n+PONG\r\n" % FIRST_ID,
            self.read(waiting),
        )
        self.assertEqual(commits + 1, self.commits.commits)


class BoundTests(PumpCase):
    """One client's share of a turn is bounded."""

    def setUp(self) -> None:
        super().setUp()
        self.request_ns = SHARE_NS // 100

    def dial_much(self) -> socket.socket:
        """A client that has already sent much, so that it gets a large buffer."""
        client = self.dial()
        self.session(len(self.server.clients)).room = RECEIVE_BYTES
        return client

    def test_share_of_a_turn(self) -> None:
        """The rest of a long pipeline waits until other clients were served."""
        greedy, other = self.dial_much(), self.dial()
        greedy.sendall(b"NACK\r\n" * 1000)
        other.sendall(b"PING\r\n")
        self.hub.doRead()
        self.assertEqual(b"+PONG\r\n", self.read(other))
        early = self.read(greedy)
        self.assertEqual(b":0\r\n" * 100, early)
        drive(self.reactor)
        self.assertEqual(b":0\r\n" * 900, self.read(greedy))

    def test_one_share_a_turn(self) -> None:
        """A long pipeline is executed in as many turns as it has shares."""
        left = []
        self.commits.before = lambda: left.append(self.left(1))
        self.dial_much().sendall(b"NACK\r\n" * 1000)
        drive(self.reactor)
        self.assertEqual(list(range(900, -1, -100)), list(dict.fromkeys(left)))

    def left(self, number: int) -> int:
        """The number of the client's requests that wait for another turn."""
        return self.session(number).parser.pending_bytes() // len(b"NACK\r\n")

    def test_many_long_pipelines(self) -> None:
        """However many there are, a turn ends, replies are sent, and clients that were not served
        come first in the next one."""
        shares = TURN_NS // SHARE_NS
        clients = [self.dial_much() for _ in range(3 * shares)]
        for client in clients:
            client.sendall(b"NACK\r\n" * 150)
        served = []
        for _ in range(3):
            self.hub.doRead()
            served.append([number for number, client in enumerate(clients) if self.read(client)])
        everybody = list(range(len(clients)))
        self.assertEqual(
            [everybody[at : at + shares] for at in range(0, 3 * shares, shares)], served
        )
        drive(self.reactor)
        self.assertEqual([b":0\r\n" * 50] * len(clients), [self.read(each) for each in clients])

    def test_unblocked_with_long_pipelines(self) -> None:
        """Requests that clients sent while blocked also take no longer than a turn."""
        waiting = [self.dial_much() for _ in range(2 * TURN_NS // SHARE_NS)]
        for client in waiting:
            self.ask(client, b"GETJOB FROM q", *[b"NACK"] * 100)
        adder = self.dial()
        adder.sendall(b"ADDJOB q b 0\r\n" * len(waiting))
        self.hub.doRead()
        late = [client for client in waiting if not self.read(client).endswith(b":0\r\n")]
        self.assertTrue(late)
        drive(self.reactor)
        for client in late:
            self.assertEqual(100, self.read(client).count(b":0\r\n"))

    def test_long_pipeline_on_an_ordinary_transport(self) -> None:
        """With TLS, too, nothing is received while requests wait for another turn."""
        protocol, transport = self.connect()
        states: list[str] = []
        self.commits.before = lambda: states.append(transport.producerState)
        protocol.dataReceived(b"NACK\r\n" * 250)
        self.reactor.advance(0)
        self.assertEqual(["paused", "paused", "producing"], states)
        self.assertEqual(b":0\r\n" * 250, transport.value())

    def test_hung_up_behind_a_long_pipeline(self) -> None:
        """All requests are executed and get replies when the client has stopped sending after
        them."""
        client = self.dial()
        client.sendall(b"NACK\r\n" * 1000 + b"ADDJOB q b 0\r\n")
        client.shutdown(socket.SHUT_WR)
        drive(self.reactor)
        self.assertEqual(b":0\r\n" * 1000 + b"+%s\r\n<end>" % FIRST_ID, self.read(client))
        self.assertEqual({}, self.server.clients)

    def test_large_request(self) -> None:
        """A body larger than any buffer arrives whole."""
        client = self.dial()
        body = bytes(range(256)) * 300
        client.sendall(
            b"*4\r\n$6\r\nADDJOB\r\n$1\r\nq\r\n$%d\r\n%s\r\n$1\r\n0\r\n" % (len(body), body)
        )
        drive(self.reactor)
        self.assertEqual(b"+%s\r\n" % FIRST_ID, self.read(client))
        job = self.node.jobs.get(FIRST_ID)
        self.assertEqual(body, job and job.body)

    def test_not_more_than_the_limit_is_kept(self) -> None:
        """While a client's requests wait for their turn, nothing more is read from its socket."""
        client = self.dial()
        client.sendall(b"NACK\r\n" * 20_000)
        self.hub.doRead()
        self.assertLess(self.session(1).parser.pending_bytes(), RECEIVE_BYTES)


class EndTests(PumpCase):
    """How connections end."""

    def test_quit(self) -> None:
        """QUIT sends pending replies, then closes; requests after it are ignored."""
        self.assertEqual(b"+PONG\r\n+OK\r\n<end>", self.ask(self.dial(), b"PING", b"QUIT", b"PING"))

    def test_fault_of_ours(self) -> None:
        """An exception in a command closes its client's connection and affects no other."""

        def faulty(server: Server, client: Client, argv: list[bytes]) -> None:
            raise SystemExit if argv[1] == b"exit" else ZeroDivisionError

        self.server.registry.by_name[b"qlen"].handler = faulty
        other = self.dial()
        for name in (b"q", b"exit"):
            self.assertEqual(b"<end>", self.ask(self.dial(), b"QLEN " + name))
            self.assertEqual(b"+PONG\r\n", self.ask(other, b"PING"))
        self.assertIn("last command: qlen", Path(self.log_path).read_text())

    def test_protocol_error(self) -> None:
        """A malformed request gets an error with the reason, and ends the connection."""
        client = self.dial()
        client.sendall(b"PING\r\n*1\r\nPING\r\n")
        drive(self.reactor)
        self.assertEqual(
            b"+PONG\r\n-ERR Protocol error: expected '$', got 'P'\r\n<end>", self.read(client)
        )

    def test_web(self) -> None:
        """HTTP requests are disconnected without a reply, which is logged."""
        client = self.dial()
        self.assertEqual(b"<end>", self.ask(client, b"POST / HTTP/1.1", b"ADDJOB q b 0"))
        self.assertEqual(b":0\r\n", self.ask(self.dial(), b"QLEN q"))
        self.assertIn("the connection is closed", self.logged())

    def test_full_socket_and_quit(self) -> None:
        """A client that quits gets all its replies, however slowly it reads."""
        client = self.dial()
        self.ask(client, b"ADDJOB big " + b"x" * 30_000 + b" 0")
        client.sendall(b"QPEEK big 1\r\n" * 50 + b"QUIT\r\n")
        received = b""
        for _ in range(100):
            drive(self.reactor)
            received += self.read(client)
            if received.endswith(b"<end>"):
                break
        self.assertEqual(50, received.count(b"x" * 30_000))
        self.assertTrue(received.endswith(b"+OK\r\n<end>"))

    def test_served_and_hung_up(self) -> None:
        """A client that stops sending in the turn in which it is served gets its job, so that it
        can return it; nothing is delivered to it after that."""
        client, adder = self.dial(), self.dial()
        self.ask(adder, b"ADDJOB q b 0")
        # More than the first read takes; the end comes when the second one is due.
        client.sendall(b"PING\r\n" * 20 + b"GETJOB FROM q\r\n")
        self.commits.before = partial(client.shutdown, socket.SHUT_WR)
        drive(self.reactor)
        self.assertRegex(self.read(client), rb"(?s)^(\+PONG\r\n){20}\*1.*b\r\n<end>$")
        self.assertEqual([2], list(self.server.clients))

    def test_hung_up_before(self) -> None:
        """A job is not delivered to clients that are known to have gone, though other sockets are
        served in the same turn: it would come back after its RETRY only."""
        adder, *waiting = (self.dial() for _ in range(3))
        for client in waiting:
            self.ask(client, b"GETJOB FROM q")
        adder.sendall(b"ADDJOB q b 0\r\n")
        for client in waiting:
            client.close()
        drive(self.reactor)
        self.assertEqual([1], list(self.server.clients))
        self.assertEqual(b"+%s\r\n:1\r\n" % FIRST_ID, self.ask(adder, b"QLEN q"))

    def test_many_hang_up(self) -> None:
        """Clients that hang up after long pipelines do not delay others by more than their share of
        a turn, as those that stay."""
        self.request_ns = SHARE_NS // 100
        other, *greedy = (self.dial() for _ in range(3 * TURN_NS // SHARE_NS))
        for client in greedy:
            client.sendall(b"NACK\r\n" * 150)
            client.shutdown(socket.SHUT_WR)
        other.sendall(b"PING\r\n")
        self.hub.doRead()
        self.assertEqual(b"+PONG\r\n", self.read(other))

    def test_reset(self) -> None:
        """A client whose connection breaks is removed, with all that it waited for."""
        client = self.dial()
        self.ask(client, b"GETJOB FROM q")
        client.close()
        drive(self.reactor)
        self.assertEqual({}, self.server.clients)
        self.assertEqual([], list(self.node.waiters.blocked))


class WriterTests(PumpCase):
    """Protocol versions and counters."""

    def test_protocol(self) -> None:
        """A change of protocol affects later replies, and loses no pending ones."""
        client = self.dial()
        session = self.session(1)
        session.replies.null()
        session.speak(3)
        session.replies.null()
        session.speak(2)
        self.assertEqual(b"$-1\r\n_\r\n+PONG\r\n", self.ask(client, b"PING"))

    def test_hello_that_is_not_answered(self) -> None:
        """A client that suppresses replies gets no part of HELLO's reply, and stays in step."""
        cases = (
            (b"CLIENT REPLY SKIP", b"HELLO 3", 3, b"+PONG\r\n"),
            (b"CLIENT REPLY SKIP", b"HELLO 2", 3, b"+PONG\r\n"),
            (b"CLIENT REPLY OFF", b"HELLO 2", 2, b""),
            (b"CLIENT REPLY OFF", b"HELLO 3", 2, b""),
        )
        for silence, hello, pings, afterwards in cases:
            words = [b"PING"] * pings + [silence, hello, b"PING"]
            answer = self.ask(self.dial(), *words)
            self.assertEqual(b"+PONG\r\n" * pings + afterwards, answer, words)

    def test_protocol_after_silence(self) -> None:
        """HELLO takes effect with or without a reply: later replies use the new protocol."""
        client = self.dial()
        self.ask(client, b"PING", b"CLIENT REPLY SKIP", b"HELLO 3")
        self.assertEqual(b"_\r\n", self.ask(client, b"CLIENT GETNAME"))

    def test_bytes_are_counted(self) -> None:
        """INFO's network totals are exact."""
        self.ask(self.dial(), b"PING")
        stats = self.server.stats
        self.assertEqual((6, 7), (stats.net_input_bytes, stats.net_output_bytes))
