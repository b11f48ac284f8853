"""The load generator of the benchmark beside other servers, on servers that are here."""

from __future__ import annotations

import shutil

from twisted.trial.unittest import SkipTest

from benchmarks.peers.servers import Nats
from tests.acceptance.beanstalk import run_beanstalkd
from tests.acceptance.daemon import DaemonTestCase, free_port
from tests.acceptance.redisserver import RedisServer
from tests.acceptance.resp import Connection
from tests.benchmarks.generator import GeneratorError, load

_CYCLES = ("-n", "320", "-c", "4", "-d", "16", "-q", "2")


class PeerloadTests(DaemonTestCase):
    """What is reported is what the server counted; a queue is empty after the cycles, as their
    jobs would be delivered in the next round, else."""

    def assert_cycles(self, kind: str, port: int, *options: str) -> None:
        """All jobs of a run are done, and jobs arrive at a consumer that waits."""
        result = load(kind, port, *_CYCLES, *options)
        self.assertEqual((320, 0), (result["jobs"], result["errors"]))
        blocked = load(kind, port, "-m", "blocked", "-n", "10", *options)
        self.assertEqual((10, 0), (blocked["jobs"], blocked["errors"]))

    def test_disque(self) -> None:
        """ADDJOB, GETJOB and ACKJOB."""
        daemon = self.running()
        self.assert_cycles("disque", daemon.port)
        self.assertEqual("0", daemon.info()["registered_jobs"])
        load("disque", daemon.port, "-m", "add", "-n", "40", "-d", "20")
        self.assertEqual(40, daemon.client().call("QLEN", "q0"))

    def test_disque_refuses(self) -> None:
        """More copies than there are nodes: an error is told, and counted as no job."""
        result = load("disque", self.running().port, *_CYCLES, "-r", "3")
        self.assertIn("NOREPL", result["first_error"])
        self.assertEqual(0, result["jobs"])

    def test_streams(self) -> None:
        """XADD, XREADGROUP, XACK and XDEL: nothing is pending, and nothing is kept."""
        server = RedisServer(self.folder()).start()
        self.addCleanup(server.stop)
        self.assert_cycles("streams", server.port)
        client = Connection(("127.0.0.1", server.port))
        self.addCleanup(client.close)
        (group,) = client.call("XINFO", "GROUPS", "q0")
        said = dict(zip(group[::2], group[1::2], strict=True))
        self.assertEqual(0, said[b"pending"])
        self.assertEqual(0, client.call("XLEN", "q0"))

    def test_beanstalk(self) -> None:
        """Put, reserve and delete."""
        self.assert_cycles("beanstalk", run_beanstalkd(self))

    def test_nats(self) -> None:
        """JetStream, three replicas."""
        if shutil.which("nats-server", path="/usr/bin:/usr/sbin:/usr/local/bin") is None:
            raise SkipTest("nats-server is not installed.")
        nats = Nats(self.folder(), 3)
        self.addCleanup(nats.stop)
        self.assert_cycles("nats", nats.port, "-r", "3")

    def test_nobody_listens(self) -> None:
        """A run without a server ends with an error."""
        with self.assertRaisesRegex(GeneratorError, "connect"):
            load("disque", free_port())
