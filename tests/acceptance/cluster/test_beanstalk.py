"""beanstalkd's protocol at three nodes: jobs live on when their node is killed."""

from __future__ import annotations

from contextlib import closing

from tests.acceptance.beanstalk import BeanstalkConnection
from tests.acceptance.cluster.fleet import AGREE_S, Fleet
from tests.acceptance.daemon import DaemonTestCase, free_port, wait_for

_TTR_S = 2


class ClusterTests(DaemonTestCase):
    """Three nodes with a listener each, and three copies of every job."""

    def setUp(self) -> None:
        super().setUp()
        self.fleet = Fleet(3, "beanstalk-replicate 3")
        self.addCleanup(self.fleet.discard)
        self.nodes = self.fleet.nodes
        self.ports = [free_port() for _ in self.nodes]
        for node, port in zip(self.nodes, self.ports, strict=True):
            node.words += ["--listen", "beanstalk", f"tcp:{port}:interface={node.ip}"]
        self.fleet.start()

    def test_killed(self) -> None:
        """The node of a producer is killed; a client of either protocol at the others gets each
        job, and ends it everywhere."""
        bodies = {b"job %d" % number for number in range(20)}
        with closing(BeanstalkConnection(self.ports[0], self.nodes[0].ip)) as producer:
            for body in bodies:
                self.assertTrue(producer.put(body, ttr_s=_TTR_S).startswith(b"INSERTED "))
        self.nodes[0].kill()
        done: set[bytes] = set()
        with closing(BeanstalkConnection(self.ports[1], self.nodes[1].ip)) as worker:

            def work() -> bool:
                line, _, body = worker.call(b"reserve-with-timeout 0").partition(b"\r\n")
                if line.startswith(b"RESERVED"):
                    self.assertEqual(b"DELETED\r\n", worker.call(b"delete " + line.split()[1]))
                    done.add(body[:-2])
                found = self.nodes[2].call("GETJOB", "NOHANG", "FROM", "default")
                for _queue, job_id, resp_body in found or ():
                    self.nodes[2].call("ACKJOB", job_id)
                    done.add(bytes(resp_body))
                return done == bodies

            wait_for(work, "all jobs are done", AGREE_S)

    def test_other_node(self) -> None:
        """A client that waits at one node gets a job that RESP added at another one."""
        with closing(BeanstalkConnection(self.ports[1], self.nodes[1].ip)) as worker:
            worker.send(b"reserve\r\n")
            # A message that is lost with its link costs a job its RETRY.
            options = ("REPLICATE", 1, "RETRY", 5)
            self.nodes[2].call("ADDJOB", "default", "from afar", 5000, *options)
            self.assertEqual(b"RESERVED 1 9\r\nfrom afar\r\n", worker.reply())
            self.assertEqual(b"DELETED\r\n", worker.call(b"delete 1"))
