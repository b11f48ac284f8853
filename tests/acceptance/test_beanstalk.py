"""beanstalkd's protocol: beside the real beanstalkd, with a real client, through kill -9."""

from __future__ import annotations

import re
from contextlib import closing

import greenstalk

from tests.acceptance.beanstalk import BeanstalkConnection, run_beanstalkd
from tests.acceptance.daemon import Daemon, DaemonTestCase, free_port

_LINE = b"list-tube-used\r\n"
#: Requests whose replies are compared, in this order, each with how many replies it has.
_SCRIPT: list[tuple[bytes, int]] = [
    (b"put 1 0 60 5\r\nhello\r\n", 1),
    (b"put  1  0  60  5\r\nhello\r\n", 1),
    (b"put 1 0 60 5 \r\n", 1),
    (b"put 1 0 60 5 9\r\n", 1),
    (b"put -1 0 60 5\r\n", 1),
    (b"put 4294967296 0 60 5\r\n", 1),
    (b"put 4294967295 0 4294967295 5\r\nhello\r\n", 1),
    (b"put\r\nput \r\nPUT 1 0 1 1\r\n", 3),
    (b"put 1 0 60 65536\r\n" + b"x" * 65536 + b"\r\n" + _LINE, 2),
    (b"put 1 0 60 4294967296\r\n", 1),
    (b"use  foo\r\nuse foo bar\r\nuse \r\nuse\r\nuse -foo\r\nuse f(oo)$;.+/_-\r\n", 6),
    (b"use " + b"a" * 200 + b"\r\nuse " + b"a" * 201 + b"\r\n", 2),
    (b"use default\r\n" + b"x" * 230 + b"\r\n" + _LINE, 3),
    (b"a" * 222 + b"\r\n" + b"a" * 500 + b"\r\n" + _LINE, 3),
    (b"foo\r\n\r\nreserve 5\r\nreserves\r\nreserve-with-timeout\r\nuse foo\0bar\r\n", 6),
    (b"watch foo\r\nwatch foo\r\nignore foo\r\nignore default\r\nignore zzz\r\n", 5),
    (b"list-tubes-watched\r\nlist-tubes\r\nlist-tube-used\r\nlist-tubes x\r\n", 4),
    (b"peek 2\r\npeek 99\r\npeek x\r\npeek\r\npeek-ready\r\npeek-ready x\r\n", 6),
    (b"peek-buried\r\npeek-delayed\r\n", 2),
    (b"delete 99\r\ndelete x\r\ndelete 1 2\r\ndelete\r\ndelete -1\r\ndelete 0\r\n", 6),
    (b"reserve-with-timeout 0\r\nreserve-job 1\r\nreserve-job 2\r\nreserve-job x\r\n", 4),
    (b"stats-job 1\r\nstats-job 2\r\nstats-job 77\r\nstats-job x\r\n", 4),
    (b"touch 1\r\ntouch 3\r\ntouch x\r\n", 3),
    (b"release 1 7 0\r\nrelease 1 7 0\r\nrelease 1 7\r\nbury 2 9\r\nbury 2 9\r\nbury 2\r\n", 6),
    (b"peek-buried\r\nstats-tube default\r\nkick-job 2\r\nkick-job 2\r\nkick 5\r\n", 5),
    (b"put 5 100 60 1\r\nd\r\npeek-delayed\r\nstats-tube default\r\nkick 5\r\n", 4),
    (b"reserve\r\nreserve\r\nreserve\r\nreserve\r\nreserve-with-timeout 0\r\n", 5),
    (b"stats-tube default\r\nstats-tube none\r\nstats-tube -\r\n", 3),
    (b"release 1 3 50\r\nstats-job 1\r\npeek-delayed\r\ndelete 1\r\ndelete 2\r\n", 5),
    (b"pause-tube default 0\r\npause-tube none 0\r\npause-tube default\r\n", 3),
    (b"pause-tube default x\r\npause-tube  default 0\r\nquitter\r\n", 2),
]
#: Fields whose values depend on the moment, or on how a job that is reserved is counted.
_MOMENTARY = re.compile(rb"(age|time-left|pause-time-left): \d+\n")


def replies(port: int) -> list[tuple[bytes, list[bytes]]]:
    """What a server replies to the script."""
    with closing(BeanstalkConnection(port)) as connection:
        found = []
        for data, count in _SCRIPT:
            connection.send(data)
            found.append((data[:70], [_steady(connection.reply()) for _ in range(count)]))
        return found


def _steady(reply: bytes) -> bytes:
    """A reply without what depends on the moment."""
    if not reply.startswith(b"OK "):
        return reply
    return _MOMENTARY.sub(b"", reply.partition(b"\r\n")[2])


class BeanstalkTests(DaemonTestCase):
    """One daemon with a listener."""

    def setUp(self) -> None:
        super().setUp()
        self.port = free_port()

    def started(self, *directives: str) -> Daemon:
        """A daemon."""
        listen = f"listen beanstalk tcp:{self.port}:interface=127.0.0.1"
        return self.running(listen, *directives)

    def client(self) -> BeanstalkConnection:
        """A connection."""
        connection = BeanstalkConnection(self.port)
        self.addCleanup(connection.close)
        return connection

    def test_like_beanstalkd(self) -> None:
        """Clients get from the daemon, byte for byte, what they get from beanstalkd."""
        port = run_beanstalkd(self)
        self.started()
        for expected, found in zip(replies(port), replies(self.port), strict=True):
            self.assertEqual(expected, found)

    def test_greenstalk(self) -> None:
        """A client library that people use works with the daemon."""
        self.started()
        address = ("127.0.0.1", self.port)
        with greenstalk.Client(address, use="mail", watch=["mail"]) as client:
            first = client.put("first", priority=9)
            second = client.put("second", priority=1)
            job = client.reserve(timeout=0)
            self.assertEqual((second, "second"), (job.id, job.body))
            client.bury(job)
            self.assertEqual(second, client.peek_buried().id)
            self.assertEqual(1, client.kick(10))
            client.delete(client.reserve_job(second))
            job = client.reserve()
            client.touch(job)
            client.release(job, delay=60)
            self.assertEqual("delayed", client.stats_job(first)["state"])
            client.kick_job(first)
            self.assertEqual(1, client.stats_tube("mail")["current-jobs-ready"])
            self.assertIn("mail", client.tubes())
            client.delete(first)
            self.assertRaises(greenstalk.TimedOutError, client.reserve, timeout=0)
            self.assertRaises(greenstalk.NotFoundError, client.peek, first)
            self.assertRaises(greenstalk.JobTooBigError, client.put, "x" * 70_000)
            self.assertEqual(0, client.stats()["current-jobs-ready"])

    def test_killed(self) -> None:
        """After kill -9 jobs have their numbers and priorities, and buried ones are buried."""
        daemon = self.started("appendonly yes", "appendfsync always")
        before = self.client()
        for body, priority in ((b"one", 9), (b"two", 1), (b"three", 5)):
            before.put(body, priority)
        before.call(b"reserve")
        self.assertEqual(b"BURIED\r\n", before.call(b"bury 2 4"))
        self.assertEqual(b"RESERVED 3 5\r\nthree\r\n", before.call(b"reserve"))
        daemon.kill()
        daemon.start()
        client = self.client()
        self.assertEqual(b"FOUND 2 3\r\ntwo\r\n", client.call(b"peek-buried"))
        self.assertEqual(b"RESERVED 3 5\r\nthree\r\n", client.call(b"reserve"))
        self.assertEqual(b"RESERVED 1 3\r\none\r\n", client.call(b"reserve"))
        self.assertEqual(b"TIMED_OUT\r\n", client.call(b"reserve-with-timeout 0"))
        self.assertEqual(b"INSERTED 4\r\n", client.put(b"four"))
        self.assertIn(b"\npri: 4\n", client.call(b"stats-job 2"))

    def test_stopped(self) -> None:
        """A stop in order keeps the same, with clients that wait and jobs in their hands."""
        daemon = self.started("appendonly yes")
        client, waiting = self.client(), self.client()
        client.put(b"one")
        client.call(b"reserve")
        waiting.send(b"reserve\r\n")
        self.assertEqual(0, daemon.terminate())
        self.assertIn(waiting.reply(), (b"INTERNAL_ERROR\r\n", b"DRAINING\r\n"))
        daemon.start()
        self.assertEqual(b"RESERVED 1 3\r\none\r\n", self.client().call(b"reserve"))
