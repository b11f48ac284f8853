"""Nodes with scripted replies, on real sockets."""

from __future__ import annotations

import socket
import threading
from collections import deque
from random import Random
from typing import Any

import hiredis
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.blocking.session import ClientEnvironment

#: Actions of a node in place of a reply.
HANG_UP = b"<hang up>"
NO_ANSWER = b"<silence>"
DIE = b"<die>"
NODE_IDS = [digit * 40 for digit in "abc"]
JOB_ID = "D-aaaaaaaa-I7AaGuir60UxcQsPD43BwS6e-05a1"

#: ADDJOB with every option, and the words after the body in that request.
EVERY_OPTION: Any = {
    "timeout_ms": 0,
    "replicate": 2,
    "delay_s": 3,
    "retry_s": 0,
    "ttl_s": 5,
    "maxlen": 6,
    "asynchronous": True,
}
EVERY_WORD = "0 REPLICATE 2 DELAY 3 RETRY 0 TTL 5 MAXLEN 6 ASYNC"


def bulk(data: bytes | str) -> bytes:
    """A bulk string."""
    data = data.encode() if isinstance(data, str) else data
    return b"$%d\r\n%s\r\n" % (len(data), data)


def array(*items: bytes) -> bytes:
    """An array of encoded items."""
    return b"*%d\r\n" % len(items) + b"".join(items)


def job(job_id: str = JOB_ID, body: bytes = b"body", queue: str = "q") -> bytes:
    """A delivered job with its counters."""
    counters = (bulk("nacks"), b":1\r\n", bulk("additional-deliveries"), b":2\r\n")
    return array(bulk(queue), bulk(job_id), bulk(body), *counters)


class ScriptedNode:
    """A node on a port of its own. It answers HELLO correctly unless scripted otherwise.

    ``answers``: command, or a command and one of its words (``GETJOB TIMEOUT``: those that wait)
    → replies, in order, the last one repeatedly. Connections share them, so requests that may
    come on several at once, in any order, need replies of their own.
    ``requests``: all requests except HELLO. ``priorities``: by node ID, as listed by HELLO.
    """

    def __init__(self, node_id: str = NODE_IDS[0], **answers: bytes | list[bytes]) -> None:
        self.id = node_id
        self.answers: dict[str, deque[bytes]] = {}
        self.requests: list[list[bytes]] = []
        self.others: list[ScriptedNode] = []
        self.priorities: dict[str, int] = {}
        self.connections = 0
        self._ends = threading.Semaphore(0)
        self._replying = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        for name, reply in answers.items():
            self.answer(name, *([reply] if isinstance(reply, bytes) else reply))
        threading.Thread(target=self._accept, daemon=True).start()

    def answer(self, command: str, *reply: bytes) -> None:
        """Use these replies to a command from now on."""
        self.answers[command] = deque(reply)

    def close(self) -> None:
        """Close all connections, and stop listening."""
        # Closing alone would not wake the thread that waits in accept.
        listening, self._listening = self._listening, None  # type: ignore[assignment]
        if listening is not None:
            listening.shutdown(socket.SHUT_RDWR)
            listening.close()
        self.hang_up()

    def hang_up(self) -> None:
        """Close all connections."""
        while self._sockets:
            sock = self._sockets.pop()
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            sock.close()

    def wait_for_end(self) -> None:
        """Wait until one more connection has ended."""
        if not self._ends.acquire(timeout=10):
            raise AssertionError("no connection has ended")

    def commands(self) -> list[str]:
        """The names of the received requests."""
        return [words[0].decode() for words in self.requests]

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listening.accept()
            except (OSError, AttributeError):
                return
            self.connections += 1
            self._sockets.append(sock)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        reader = hiredis.Reader()
        try:
            while data := sock.recv(65536):
                reader.feed(data)
                while isinstance(words := reader.gets(), list):
                    self._respond(sock, words)
        except OSError:
            return
        finally:
            self._ends.release()

    def _respond(self, sock: socket.socket, words: list[bytes]) -> None:
        name = words[0].decode()
        if name != "HELLO":
            self.requests.append(words)
        with self._replying:
            reply = self._reply(self._answered_by(name, words[1:]))
        if reply == HANG_UP:
            sock.shutdown(socket.SHUT_RDWR)
        elif reply == DIE:
            self.close()
        elif reply != NO_ANSWER:
            sock.sendall(reply)

    def _answered_by(self, name: str, words: list[bytes]) -> str:
        both = (f"{name} {word.decode('latin-1')}" for word in words)
        return next((key for key in both if key in self.answers), name)

    def _reply(self, name: str) -> bytes:
        if name not in self.answers:
            return self._hello() if name == "HELLO" else b"-ERR not in the script\r\n"
        reply = self.answers[name]
        return reply.popleft() if len(reply) > 1 else reply[0]

    def _hello(self) -> bytes:
        """Like the original, without an IP address of its own."""
        nodes = [self._row(self, "")] + [self._row(node, "127.0.0.1") for node in self.others]
        return array(b":1\r\n", bulk(self.id), *nodes)

    def _row(self, node: ScriptedNode, ip: str) -> bytes:
        priority = self.priorities.get(node.id, 1)
        return array(bulk(node.id), bulk(ip), bulk(str(node.port)), bulk(str(priority)))


class FakeTime:
    """A clock that only advances by sleeping; it records the durations."""

    def __init__(self) -> None:
        self.s = 1000.0
        self.sleeps_s: list[float] = []

    def now_s(self) -> float:
        """The current time."""
        return self.s

    def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        self.sleeps_s.append(seconds)
        self.s += seconds


class ScriptedTestCase(SynchronousTestCase):
    """Tests with scripted nodes, a clock that only sleeping advances, and random numbers from a
    seed."""

    def setUp(self) -> None:
        self.time = FakeTime()
        self.environment = ClientEnvironment(self.time.now_s, self.time.sleep, Random(1))

    def node(self, node_id: str = NODE_IDS[0], **answers: bytes | list[bytes]) -> ScriptedNode:
        """A node that is closed after the test."""
        node = ScriptedNode(node_id, **answers)
        self.addCleanup(node.close)
        return node

    def cluster(self, size: int, **answers: bytes | list[bytes]) -> list[ScriptedNode]:
        """Nodes that know each other."""
        nodes = [self.node(node_id, **answers) for node_id in NODE_IDS[:size]]
        for node in nodes:
            node.others = [other for other in nodes if other is not node]
        return nodes
