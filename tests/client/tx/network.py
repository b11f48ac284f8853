"""Nodes with scripted replies, on a network in memory with a clock of its own."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any, TypeVar

import hiredis
from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred
from twisted.internet.error import (
    ConnectionDone,
    ConnectionLost,
    ConnectionRefusedError,
    TimeoutError,
)
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.tx.client import DisqueClient
from tests.client.scripted import HANG_UP, NO_ANSWER, NODE_IDS, array, bulk
from tests.forwardclock import ForwardClock

_T = TypeVar("_T")


class Wire:
    """The client's end of a connection. Data is delivered when the network settles.
    ``unresponsive``: the node sends no more replies here on its own. ``no_delay``, ``keep_alive``:
    as the client has set them."""

    def __init__(self, network: Network, node: MemoryNode, protocol: Any) -> None:
        self.writes = 0
        self.no_delay = self.keep_alive = False
        self.half_closed = self.closed = self.unresponsive = False
        self._network = network
        self._node = node
        self._protocol = protocol
        self._reader = hiredis.Reader()

    def setTcpNoDelay(self, enabled: bool) -> None:
        """Part of Twisted's interface; there is no delay here."""
        self.no_delay = enabled

    def setTcpKeepAlive(self, enabled: bool) -> None:
        """Part of Twisted's interface; no connection is lost unnoticed here."""
        self.keep_alive = enabled

    def write(self, data: bytes) -> None:
        """Part of Twisted's interface."""
        self.writes += 1
        self._network.soon(self._arrived, data)

    def _arrived(self, data: bytes) -> None:
        self._reader.feed(data)
        while isinstance(words := self._reader.gets(), list):
            if not self.closed and not self.unresponsive:
                self._node.respond(self, words)

    def loseWriteConnection(self) -> None:
        """Part of Twisted's interface: the node reads the end of the stream, and closes the
        connection."""
        self.half_closed = True
        if not self._node.ignores_eof:
            self._network.soon(self.end, ConnectionDone())

    def abortConnection(self) -> None:
        """Part of Twisted's interface."""
        self._network.soon(self.end, ConnectionLost())

    def end(self, reason: Exception) -> None:
        """Close the connection."""
        if not self.closed:
            self.closed = True
            self._node.wires.remove(self)
            self._protocol.connectionLost(Failure(reason))

    def send(self, data: bytes) -> None:
        """Send data from the node."""
        self._network.soon(self._reply, data)

    def _reply(self, data: bytes) -> None:
        if not self.closed:
            self._protocol.dataReceived(data)


class MemoryNode:
    """A node of the network. It answers HELLO correctly unless scripted otherwise.

    ``answers``: command → replies, in order, the last one repeatedly. ``requests``: all requests
    except HELLO. ``priorities``: by node ID, as listed by HELLO. ``ignores_eof``: whether the node
    ignores that a client closed its side.
    """

    def __init__(self, network: Network, node_id: str, port: int, **answers: Any) -> None:
        self.id = node_id
        self.port = port
        self.address = f"10.0.0.1:{port}"
        self.answers: dict[str, deque[bytes]] = {}
        self.requests: list[list[bytes]] = []
        self.others: list[MemoryNode] = []
        self.priorities: dict[str, int] = {}
        self.connections = 0
        self.is_up = True
        self.ignores_eof = False
        self.wires: list[Wire] = []
        self._network = network
        for name, reply in answers.items():
            self.answer(name, *([reply] if isinstance(reply, bytes) else reply))

    def answer(self, command: str, *reply: bytes) -> None:
        """Use these replies to a command from now on."""
        self.answers[command] = deque(reply)

    def commands(self) -> list[str]:
        """The names of the received requests."""
        return [words[0].decode() for words in self.requests]

    def die(self) -> None:
        """Close all connections, and stop listening."""
        self.is_up = False
        self.hang_up()

    def hang_up(self) -> None:
        """Close all connections."""
        for wire in list(self.wires):
            wire.end(ConnectionLost())

    def respond(self, wire: Wire, words: list[bytes]) -> None:
        """Handle a request."""
        name = words[0].decode()
        if name != "HELLO":
            self.requests.append(words)
        reply = self._reply(name)
        if reply == HANG_UP:
            wire.end(ConnectionDone())
        elif reply == NO_ANSWER:
            wire.unresponsive = True
        else:
            wire.send(reply)

    def _reply(self, name: str) -> bytes:
        if name not in self.answers:
            return self._hello() if name == "HELLO" else b"-ERR not in the script\r\n"
        reply = self.answers[name]
        return reply.popleft() if len(reply) > 1 else reply[0]

    def _hello(self) -> bytes:
        nodes = [self._row(self, "")] + [self._row(node, "10.0.0.1") for node in self.others]
        return array(b":1\r\n", bulk(self.id), *nodes)

    def _row(self, node: MemoryNode, ip: str) -> bytes:
        priority = self.priorities.get(node.id, 1)
        return array(bulk(node.id), bulk(ip), bulk(str(node.port)), bulk(str(priority)))


class _Connector:
    """An attempt to connect, for Twisted's endpoints."""

    def __init__(
        self, network: Network, host: str, port: int, factory: Any, timeout_s: float
    ) -> None:
        self._address = IPv4Address("TCP", host, port)
        self._factory = factory
        self._timer = network.callLater(timeout_s, self._fail, TimeoutError())
        factory.doStart()
        factory.startedConnecting(self)
        if port not in network.swallowing:
            network.soon(self._try, network, port)

    def _fail(self, error: Exception) -> None:
        self._factory.clientConnectionFailed(self, Failure(error))

    def _try(self, network: Network, port: int) -> None:
        if not self._timer.active():
            return
        self._timer.cancel()
        node = network.nodes.get(port)
        if node is None or not node.is_up:
            self._fail(ConnectionRefusedError())
            return
        protocol = self._factory.buildProtocol(self._address)
        wire = Wire(network, node, protocol)
        node.wires.append(wire)
        node.connections += 1
        protocol.makeConnection(wire)

    def getDestination(self) -> IPv4Address:
        """Part of Twisted's interface."""
        return self._address

    def stopConnecting(self) -> None:
        """Part of Twisted's interface."""
        if self._timer.active():
            self._timer.cancel()


class Network(ForwardClock):
    """A reactor whose connections lead to nodes in memory. ``swallowing``: ports on which packets
    are lost, so that attempts to connect are neither accepted nor refused."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes: dict[int, MemoryNode] = {}
        self.swallowing: set[int] = set()
        self._soon: deque[tuple[Any, tuple[Any, ...]]] = deque()

    def connectTCP(
        self, host: str, port: int, factory: Any, timeout: float = 30, bindAddress: Any = None
    ) -> _Connector:
        """Part of Twisted's interface."""
        return _Connector(self, host, port, factory, timeout)

    def soon(self, function: Any, *arguments: Any) -> None:
        """Call a function when the network settles."""
        self._soon.append((function, arguments))

    def settle(self) -> None:
        """Deliver all data that is on its way."""
        for _ in range(10_000):
            if self._soon:
                function, arguments = self._soon.popleft()
                function(*arguments)
            elif any(call.getTime() <= self.seconds() for call in self.getDelayedCalls()):
                self.advance(0)
            else:
                return
        raise AssertionError("the network does not settle")


class NetworkTestCase(SynchronousTestCase):
    """Tests with nodes in memory and random numbers from a seed."""

    def setUp(self) -> None:
        self.network = Network()
        self._clients: list[DisqueClient] = []

    def tearDown(self) -> None:
        """Check that closing a client leaves no connection and no delayed call."""
        closed = [client.close() for client in self._clients]
        self.network.settle()
        for done in closed:
            self.successResultOf(done)
        self.assertEqual([], [wire for node in self.network.nodes.values() for wire in node.wires])
        self.assertEqual([], self.network.getDelayedCalls())

    def node(self, node_id: str = NODE_IDS[0], **answers: bytes | list[bytes]) -> MemoryNode:
        """Add a node to the network."""
        port = 7001 + len(self.network.nodes)
        node = self.network.nodes[port] = MemoryNode(self.network, node_id, port, **answers)
        return node

    def cluster(self, size: int, **answers: bytes | list[bytes]) -> list[MemoryNode]:
        """Nodes that know each other."""
        nodes = [self.node(node_id, **answers) for node_id in NODE_IDS[:size]]
        for node in nodes:
            node.others = [other for other in nodes if other is not node]
        return nodes

    def client(self, *nodes: MemoryNode, seed: int = 1, **options: Any) -> DisqueClient:
        """A client of these nodes, closed after the test."""
        client = DisqueClient(
            [node.address for node in nodes], reactor=self.network, random=Random(seed), **options
        )
        self._clients.append(client)
        return client

    def result(self, deferred: Deferred[_T]) -> _T:
        """The result of a Deferred, without time passing."""
        self.network.settle()
        return self.successResultOf(deferred)

    def pass_s(self, seconds: float, step_s: float = 0.05) -> None:
        """Advance the clock, and deliver data meanwhile."""
        self.network.settle()
        for _ in range(round(seconds / step_s)):
            self.network.advance(step_s)
            self.network.settle()

    def failure(self, deferred: Deferred[Any], kind: type[Exception], after_s: float = 0) -> Any:
        """The exception of a Deferred that fails."""
        self.pass_s(after_s)
        return self.failureResultOf(deferred, kind).value
