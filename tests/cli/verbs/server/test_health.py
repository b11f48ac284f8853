"""``disque health``."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.connection import ServerConnection
from disque_tx.cli.verbs.server.health import Unhealthy, examine
from tests.cli.double import ScriptedServer
from tests.cli.livenode import VerbCase


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


class StatusTests(VerbCase):
    """What a probe sees of ``disque health``."""

    def test_exit_status(self) -> None:
        """0 if the node serves; 1, and a line that says why, if it does not."""
        self.assertEqual((0, f"{self.node.address}: serves\n", ""), self.disque("health"))
        self.connect().call("CLUSTER", "LEAVING", "yes")
        status, output, errors = self.disque("health")
        self.assertEqual((1, ""), (status, output))
        self.assertIn("it is leaving the cluster", errors)
