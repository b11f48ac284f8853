"""How long a join waits for its nodes, what it repeats meanwhile, and what it reports."""

from __future__ import annotations

import socket

from disque_tx.cli.cluster.joining import (
    BusConfig,
    MeetAddress,
    NodeJoining,
    NotJoined,
    answering,
    bus_config,
    causes,
    resolve_for_meet,
)
from disque_tx.cli.options import parse
from disque_tx.cli.verbs.base.members import Members
from disque_tx.client.blocking.client import Disque
from tests.acceptance.daemon import free_port
from tests.client.scripted import NODE_IDS, ScriptedNode, ScriptedTestCase, array, bulk

A, B = NODE_IDS[:2]


def table(own: str, *others: str) -> bytes:
    """CLUSTER NODES of a node that has links to these; a word behind an ID is a flag."""
    lines = [f"{own} 127.0.0.1:1 myself 0 0 connected\n"]
    for other in others:
        name, _, flag = other.partition(" ")
        lines.append(f"{name} 127.0.0.1:2 {flag or '-'} 0 0 connected\n")
    return bulk("".join(lines))


class WaitingTestCase(ScriptedTestCase):
    """Scripted nodes, and clients of them."""

    def members(self, *nodes: ScriptedNode) -> Members:
        """The nodes as members."""
        members = Members(parse([], {}), [node.address for node in nodes])
        self.addCleanup(members.close)
        return members

    def known(self, name: str, *tables: bytes) -> ScriptedNode:
        """A node whose table changes."""
        node = self.node(name, INFO=bulk("disque_version:1.0\r\n"))
        node.answer("CLUSTER MYID", bulk(name))
        node.answer("CLUSTER MEET", b"+OK\r\n")
        node.answer("CLUSTER NODES", *tables)
        return node


class JoiningTests(WaitingTestCase):
    """``NodeJoining``."""

    def join(self, first: ScriptedNode, second: ScriptedNode, why: list[str]) -> NodeJoining:
        """Makes these two nodes know each other."""
        places = [MeetAddress("10.0.0.9", 7711, 8000), MeetAddress("10.0.0.8", 1)]
        return NodeJoining(
            self.members(first, second),
            first.address,
            [first.address, second.address],
            places,
            {A, B},
            causes=why,
            sleep=self.time.sleep,
            now_s=self.time.now_s,
        )

    def meets(self, node: ScriptedNode) -> list[list[bytes]]:
        """The arguments of its MEETs."""
        return [words[2:] for words in node.requests if words[1] == b"MEET"]

    def test_progress(self) -> None:
        """Each link counts once when it is there, and is taken back when it is lost; it ends with
        the last one. A MEET is sent once in five seconds."""
        first = self.known(A, table(A), table(A, B), table(A, f"{B} fail?"), table(A, B))
        second = self.known(B, table(B), table(B), table(B), table(B), table(B, A))
        seen: list[int] = []
        joining = self.join(first, second, [])
        self.assertEqual(4, joining.pairs)
        joining.run(60.0, seen.append)
        self.assertEqual([2, 1, -1, 1, 1], seen)
        meet = [[b"10.0.0.9", b"7711", b"8000"], [b"10.0.0.8", b"1"]]
        self.assertEqual((meet, []), (self.meets(first), self.meets(second)))
        self.assertEqual([0.2] * 4, self.time.sleeps_s)

    def test_again(self) -> None:
        """A MEET that had no success, as packets get lost, is sent again every five seconds."""
        first, second = self.known(A, table(A)), self.known(B, table(B, A))
        joining = self.join(first, second, [])
        self.assertRaises(NotJoined, joining.run, 9.7, [].append)
        self.assertEqual(2 * 2, len(self.meets(first)))

    def test_report(self) -> None:
        """What is missing is said of each node, with what it is likely due to and what to do."""
        first, second = self.known(A, table(A, f"{B} handshake")), self.known(B, table(B, A))
        gone = self.node("c" * 40)
        gone.close()
        joining = self.join(first, second, ["No cable.", "No wire."])
        joining._addresses.append(gone.address)
        error = str(self.assertRaises(NotJoined, joining.run, 0.0, [].append))
        first_line, silent, missing, *more = error.splitlines()
        self.assertEqual("After 0 s not all nodes know each other:", first_line)
        self.assertTrue(silent.startswith(f"  {gone.address} does not answer: "), silent)
        self.assertEqual(f"  {first.address} has no link to {B}", missing)
        self.assertEqual(["Likely cause: No cable.", "Likely cause: No wire."], more[:2])
        advice = (
            "Each node must reach the bus port of every other: the port + 10000, or its"
            " cluster-bus-port. It is safe to run this again."
        )
        self.assertEqual([advice], more[2:])


class AnsweringTests(WaitingTestCase):
    """``answering``: nodes that have just been started."""

    def ask(self, timeout_s: float) -> tuple[list[str], list[str], float]:
        """One node answers and one does not: which is silent in the end, what is said, and how long
        that takes, on a clock on which pauses are 20 times as long."""
        alive, gone = self.known(A, table(A)), self.node(B)
        gone.close()
        self.gone = gone.address
        said: list[str] = []
        clock = self.time
        begun_s = clock.s
        found = answering(
            self.members(alive),
            (alive.address, gone.address),
            timeout_s,
            said.append,
            lambda seconds: clock.sleep(20 * seconds),
            clock.now_s,
        )
        self.assertEqual([alive.address], list(found.of))
        return list(found.silent), said, clock.s - begun_s

    def test_patience(self) -> None:
        """It waits 15 seconds at most, and less if the caller gives less time; it says so once."""
        for timeout_s, waited_s in ((60.0, 15.0), (1.0, 1.0)):
            silent, said, took_s = self.ask(timeout_s)
            self.assertEqual([self.gone], silent)
            text = f"Waiting for {self.gone} to answer, up to {waited_s:g} s"
            self.assertEqual([text], said)
            self.assertTrue(waited_s <= took_s <= waited_s + 4.0, took_s)

    def test_all_answer(self) -> None:
        """Nothing is waited for, and nothing is said, when all answer at once."""
        alive = self.known(A, table(A))
        found = answering(self.members(alive), (alive.address,), 60.0, self.fail, self.time.sleep)
        self.assertEqual(({}, []), (found.silent, self.time.sleeps_s))


class _ConfiguredNode(ScriptedNode):
    """A node with some directives."""

    def __init__(self, values: dict[str, str]) -> None:
        self._values = values
        super().__init__()

    def _respond(self, sock: socket.socket, words: list[bytes]) -> None:
        if words[0] == b"CONFIG":
            value = self._values.get(words[2].decode())
            self.answer("CONFIG", array() if value is None else array(bulk(words[2]), bulk(value)))
        super()._respond(sock, words)


class CauseTests(WaitingTestCase):
    """Why nodes may not reach each other."""

    def config(self, **values: str) -> BusConfig:
        """What is found out about a node with these directives; it knows no others."""
        node = _ConfiguredNode({name.replace("_", "-"): value for name, value in values.items()})
        self.addCleanup(node.close)
        client = Disque(f"disque://{node.address}", environment=self.environment)
        self.addCleanup(client.close)
        return bus_config(client)

    def test_config(self) -> None:
        """A bus is open with TLS or if the operator says so, and its port is the announced one
        before the own one; of an original nothing is known."""
        closed = {"cluster_bus_tls": "no", "cluster_insecure": "no"}
        self.assertEqual(BusConfig(False, ()), self.config(**closed))
        for name in closed:
            opened = self.config(**{**closed, name: "yes"})
            self.assertEqual(BusConfig(True, ()), opened, name)
            only = {other: "no" for other in closed if other != name}
            self.assertEqual(BusConfig(None, ()), self.config(**only))
        places = {"bind": "10.0.0.1 ::1", "cluster_bus_port": "8000"}
        found = self.config(**closed, **places, cluster_announce_bus_port="0")
        self.assertEqual(BusConfig(False, ("10.0.0.1", "::1"), 8000), found)
        found = self.config(**closed, **places, cluster_announce_bus_port="9000")
        self.assertEqual(9000, found.port)

    def test_causes(self) -> None:
        """A bus that is not open to the network is the cause for addresses that are not of the
        host itself, and for no others."""
        closed, bound = BusConfig(False, ()), BusConfig(False, ("10.0.0.1", "127.0.0.2", "name"))
        reached = (
            (closed, "127.0.0.1", True), (closed, "::1", True), (closed, "10.0.0.1", False),
            (bound, "127.0.0.2", True), (bound, "127.0.0.1", False), (bound, "10.0.0.1", False),
            (BusConfig(None, ()), "10.0.0.1", True), (BusConfig(True, ()), "10.0.0.1", True),
        )  # fmt: skip
        for config, ip, listens in reached:
            self.assertEqual(listens, config.listens_at(ip), (config, ip))
        places = {"a:1": "10.0.0.1", "b:1": "10.0.0.2", "c:1": "10.0.0.3"}
        (why,) = causes({"a:1": BusConfig(True, ()), "b:1": closed}, places)
        expected = (
            "The bus of b:1 listens on loopback only, and other nodes must reach it at 10.0.0.2."
            " Enable TLS (cluster-bus-tls yes), or set cluster-insecure yes on a network that"
            " strangers cannot reach; then restart the node."
        )
        self.assertEqual(expected, why)

    def test_unreachable(self) -> None:
        """The address for MEET is that at which a node is reached from here; one that is gone by
        then is an error."""
        node = self.node()
        at = resolve_for_meet(f"localhost:{node.port}")
        self.assertIn(at.ip, ("127.0.0.1", "::1"))
        self.assertEqual((node.port, 0), (at.port, at.bus_port))
        port = free_port()
        error = self.assertRaises(NotJoined, resolve_for_meet, f"127.0.0.1:{port}")
        self.assertIn(f"127.0.0.1:{port} cannot be reached any more: ", str(error))
