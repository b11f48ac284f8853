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


class StatusTests(VerbCase):
    """What a probe sees of ``disque health``."""

    def test_exit_status(self) -> None:
        """0 if the node serves; 1, and a line that says why, if it does not."""
        self.assertEqual((0, f"{self.node.address}: serves\n", ""), self.disque("health"))
        self.connect().call("CLUSTER", "LEAVING", "yes")
        status, output, errors = self.disque("health")
        self.assertEqual((1, ""), (status, output))
        self.assertIn("it is leaving the cluster", errors)
