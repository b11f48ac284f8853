"""``disque health``."""

from __future__ import annotations

import json
import signal
import socket

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.connection import ServerConnection
from disque_tx.cli.verbs.server.health import Unhealthy, examine
from tests.cli.double import ScriptedServer
from tests.cli.livenode import VerbCase
from tests.client.scripted import bulk


class HealthTests(SynchronousTestCase):
    """Nodes that answer but do not serve clients."""

    def test_standing_aside(self) -> None:
        """A node that shares its ID with an earlier process refuses jobs, so a probe must report it
        as unhealthy."""
        fields = b"loading:0\r\ncluster_standing_aside:yes\r\n"
        info = b"$%d\r\n%b\r\n" % (len(fields), fields)
        refusal = b"-ERR REPLICATE must be at least 1\r\n"
        server = ScriptedServer(b"+PONG\r\n", info, b"+no\r\n", refusal)
        self.addCleanup(server.stop)
        connection = ServerConnection(server.address, None)
        self.addCleanup(connection.close)
        error = self.assertRaises(Unhealthy, examine, connection)
        self.assertIn("stands aside", str(error))
        self.assertIn([b"INFO", b"ALL"], server.requests)  # INFO without ALL lacks the field

    def test_memory(self) -> None:
        """The limit of an original is asked for, if CONFIG was not taken from it; a node that is
        full and has no other one takes no jobs."""
        fields = b"loading:0\r\nused_memory:80\r\n"
        info = b"$%d\r\n%b\r\n" % (len(fields), fields)
        alone = b"+aa 127.0.0.1:1 myself 0 0 connected\r\n"
        serves = [b"+PONG\r\n", info, b"+no\r\n", b"-ERR REPLICATE must be at least 1\r\n"]
        name = b"$9\r\nmaxmemory\r\n"
        for limit, full in (
            (b"*2\r\n%b$3\r\n100\r\n" % name, True), (b"*2\r\n%b$3\r\n120\r\n" % name, False),
            (b"*2\r\n%b$1\r\n0\r\n" % name, False), (b"*0\r\n", False), (b"*-1\r\n", False),
            (b"-ERR unknown command 'CONFIG'\r\n", False), (b"$2\r\n12\r\n", False),
        ):  # fmt: skip
            server = ScriptedServer(*serves, limit, alone)
            self.addCleanup(server.stop)
            connection = ServerConnection(server.address, None)
            self.addCleanup(connection.close)
            if full:
                error = self.assertRaises(Unhealthy, examine, connection)
                self.assertIn("memory is above 75 %", str(error))
            else:
                examine(connection)


_INFO = b"loading:0\r\nused_memory:76\r\nmaxmemory:100\r\n"
_LEAVES, _STAYS = b"+yes\r\n", b"+no\r\n"
_PASSED = b"-ERR REPLICATE must be at least 1\r\n"
_OTHER = bulk(b"aa 127.0.0.1:1 myself 0 0 connected\nbb 127.0.0.1:2 - 0 0 connected\n")
_ALONE = bulk(b"aa 127.0.0.1:1 myself 0 0 connected\nbb 127.0.0.1:2 fail 0 0 disconnected\n")


class ReasonTests(VerbCase):
    """Everything that a node can fail by, as a script gets it."""

    def probe(self, *answers: bytes, password: str = "") -> dict[str, object]:
        """The document about a node with these answers, which are all that is asked."""
        server = ScriptedServer(*answers)
        self.addCleanup(server.stop)
        words = ("-a", password, "health") if password else ("health",)
        status, output, errors = self.disque(*words, "--json", port=server.port)
        found: dict[str, object] = json.loads(output)
        self.assertEqual(("", str(server.address)), (errors, found.pop("node")))
        self.assertEqual(0 if found["healthy"] else 1, status)
        self.assertEqual(len(answers), len(server.requests))
        return found

    def test_reasons(self) -> None:
        """The first thing that is wrong is the reason, in words that say what to look at."""
        pong, info = b"+PONG\r\n", bulk(_INFO)
        cases: list[tuple[str, tuple[bytes, ...]]] = [
            ("it answers PING with MISCONF disk", (b"-MISCONF disk\r\n",)),
            ("it answers INFO with ERR no", (pong, b"-ERR no\r\n")),
            ("it is reading its log", (pong, bulk(b"loading:1\r\n"))),
            ("it is leaving the cluster", (pong, info, _LEAVES)),
            ("it answers CLUSTER with ERR no", (pong, info, b"-ERR no\r\n")),
            ("it takes no jobs: OOM full", (pong, info, _STAYS, b"-OOM full\r\n")),
            ("it takes no jobs: D-1", (pong, info, _STAYS, b"+D-1\r\n")),
            ("it takes no jobs: an unexpected reply", (pong, info, _STAYS, b":1\r\n")),
            (
                "it takes no jobs: its memory is above 75 %, and it has no other node",
                (pong, info, _STAYS, _PASSED, _ALONE),
            ),
        ]
        for why, answers in cases:
            self.assertEqual({"healthy": False, "why": why}, self.probe(*answers))

    def test_healthy(self) -> None:
        """A node whose memory is used up to three quarters takes jobs itself, and beyond that it
        has others keep them; the password for reading suffices to ask."""
        pong = b"+PONG\r\n"
        well: dict[str, object] = {"healthy": True, "why": None}
        just = bulk(_INFO.replace(b"76", b"75"))
        self.assertEqual(well, self.probe(pong, just, _STAYS, _PASSED))
        self.assertEqual(well, self.probe(pong, bulk(_INFO), _STAYS, _PASSED, _OTHER))
        self.assertEqual(well, self.probe(pong, just, _STAYS, b"-NOPERM no\r\n"))
        unlimited = bulk(_INFO.replace(b"100", b"0"))
        self.assertEqual(well, self.probe(pong, unlimited, _STAYS, _PASSED))

    def test_password(self) -> None:
        """A password that the node refuses is the reason, and nothing more is asked."""
        why = "it refuses the password: ERR invalid password"
        found = self.probe(b"-ERR invalid password\r\n", password="x")
        self.assertEqual({"healthy": False, "why": why}, found)

    def test_time(self) -> None:
        """A node that does not answer ends the probe in time, and the process is as before: its
        timer is off and its own handler is back."""
        before = signal.signal(signal.SIGALRM, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        listening = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listening.close)
        at = listening.getsockname()[1]
        found = self.disque("health", "--timeout", 0.05, port=at)
        self.assertEqual((1, "", f"127.0.0.1:{at}: it did not answer within 0.05 s\n"), found)
        self.assertEqual(signal.SIG_IGN, signal.getsignal(signal.SIGALRM))
        self.assertEqual(0, self.disque("--timeout", 50, "health")[0])
        self.assertEqual((0.0, 0.0), signal.getitimer(signal.ITIMER_REAL))
        self.assertEqual(signal.SIG_IGN, signal.getsignal(signal.SIGALRM))

    def test_address(self) -> None:
        """The node may be named instead of the options; what is no address is not asked."""
        expected = (0, f"{self.node.address}: serves\n", "")
        self.assertEqual(expected, self.disque("health", self.node.address, port=1))
        status, output, errors = self.disque("health", "no address:x")
        self.assertEqual((2, ""), (status, output))
        self.assertIn("Error: ", errors)


class StatusTests(VerbCase):
    """What a probe sees of ``disque health``."""

    def test_exit_status(self) -> None:
        """0 if the node serves; 1, and a line that says why, if it does not."""
        self.assertEqual((0, f"{self.node.address}: serves\n", ""), self.disque("health"))
        self.connect().call("CLUSTER", "LEAVING", "yes")
        status, output, errors = self.disque("health")
        self.assertEqual((1, ""), (status, output))
        self.assertIn("it is leaving the cluster", errors)
