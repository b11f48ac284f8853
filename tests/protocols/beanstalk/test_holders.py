"""Which connection has a job, and since when it has it no more."""

from __future__ import annotations

from tests.protocols.beanstalk.bench import BeanstalkCase


class HolderTests(BeanstalkCase):
    """Reserved jobs whose lease ends otherwise than by a request of their client."""

    def test_lease_over(self) -> None:
        """A client whose TTR is over has the job no more, also before somebody else has it."""
        client = self.client()
        client.put(b"x", ttr_s=3)
        client.send(b"reserve\r\n")
        self.pass_s(3.2)
        self.assertEqual(b"ready", self.stat(b"state", b"stats-job 1"))
        for request in (b"release 1 1 0", b"bury 1 1", b"touch 1"):
            self.assertEqual(b"NOT_FOUND\r\n", client.send(request + b"\r\n"))
        self.assertEqual(b"0", self.stat(b"current-jobs-reserved"))

    def test_former_holder_hangs_up(self) -> None:
        """The end of a connection returns what it has, not what it had: the job stays with the
        client that got it since."""
        client, other = self.client(), self.client()
        client.put(b"x", ttr_s=3)
        client.send(b"reserve\r\n")
        self.pass_s(3.2)
        self.assertEqual(b"RESERVED 1 1\r\nx\r\n", other.send(b"reserve\r\n"))
        client.hang_up()
        self.assertEqual(b"reserved", self.stat(b"state", b"stats-job 1"))
        self.assertEqual(b"TOUCHED\r\n", other.send(b"touch 1\r\n"))

    def test_gone(self) -> None:
        """A job that the node has forgotten does not hurry its client."""
        client = self.client()
        client.put(b"x", ttr_s=3)
        client.send(b"reserve\r\n")
        self.turn(b"DEBUG FLUSHALL")
        self.pass_s(2.5)
        self.assertEqual(b"TIMED_OUT\r\n", client.send(b"reserve-with-timeout 0\r\n"))
