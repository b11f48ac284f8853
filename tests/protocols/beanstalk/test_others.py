"""The requests besides put, reserve and delete."""

from __future__ import annotations

from disque_tx.commands.server.info import protocol_stats
from disque_tx.commands.server.memory import MemoryControl
from disque_tx.protocols.beanstalk.others import KICKS_MAX
from tests.protocols.beanstalk.bench import BeanstalkCase, BeanstalkClient


class ReservedTests(BeanstalkCase):
    """What a client may do with a job that it has."""

    def setUp(self) -> None:
        super().setUp()
        self.worker = self.client()
        self.worker.put(b"x")
        self.worker.send(b"reserve\r\n")

    def test_release(self) -> None:
        """A released job is ready again at once, with its new priority."""
        self.worker.put(b"other", priority=5)
        self.assertEqual(b"RELEASED\r\n", self.worker.send(b"release 1 4 0\r\n"))
        self.assertEqual(b"RESERVED 1 1\r\nx\r\n", self.worker.send(b"reserve\r\n"))
        self.assertEqual(b"4", self.stat(b"pri", b"stats-job 1"))
        self.assertEqual(b"1", self.stat(b"releases", b"stats-job 1"))
        self.assertEqual(b"0", self.stat(b"timeouts", b"stats-job 1"))

    def test_release_later(self) -> None:
        """With a delay it is ready afterwards."""
        self.assertEqual(b"RELEASED\r\n", self.worker.send(b"release 1 4 5\r\n"))
        self.assertEqual(b"delayed", self.stat(b"state", b"stats-job 1"))
        self.pass_s(4.5)
        self.assertEqual(b"NOT_FOUND\r\n", self.worker.send(b"peek-ready\r\n"))
        self.pass_s(1)
        self.assertEqual(b"FOUND 1 1\r\nx\r\n", self.worker.send(b"peek-ready\r\n"))

    def test_bury(self) -> None:
        """A buried job waits for somebody to look at it, however long, and counts as buried."""
        self.assertEqual(b"BURIED\r\n", self.worker.send(b"bury 1 77\r\n"))
        self.pass_s(200)
        self.assertEqual(b"FOUND 1 1\r\nx\r\n", self.worker.send(b"peek-buried\r\n"))
        self.assertEqual(b"buried", self.stat(b"state", b"stats-job 1"))
        for request in (b"stats", b"stats-tube default"):
            self.assertEqual(b"1", self.stat(b"current-jobs-buried", request))
            self.assertEqual(b"0", self.stat(b"current-jobs-delayed", request))
        self.assertEqual(b"KICKED 1\r\n", self.worker.send(b"kick 10\r\n"))
        self.assertEqual(b"0", self.stat(b"current-jobs-buried"))
        self.assertEqual(b"RESERVED 1 1\r\nx\r\n", self.worker.send(b"reserve\r\n"))
        self.assertEqual(b"77", self.stat(b"pri", b"stats-job 1"))
        self.assertEqual(b"1", self.stat(b"kicks", b"stats-job 1"))

    def test_buried_and_deleted(self) -> None:
        """Anybody may delete a buried job."""
        self.worker.send(b"bury 1 1\r\n")
        self.assertEqual(b"DELETED\r\n", self.client().send(b"delete 1\r\n"))
        self.assertEqual(b"0", self.stat(b"current-jobs-buried"))

    def test_disk_full(self) -> None:
        """A node that cannot write its log changes no job, by this protocol either: what was
        refused can be tried again, as often as it takes."""
        self.fill_disk(True)
        for request in (b"release 1 1 0", b"bury 1 1", b"delete 1") * 2:
            self.assertEqual(b"INTERNAL_ERROR\r\n", self.worker.send(request + b"\r\n"), request)
        self.fill_disk(False)
        for name, value in ((b"state", b"reserved"), (b"pri", b"10"), (b"releases", b"0")):
            self.assertEqual(value, self.stat(name, b"stats-job 1"))
        self.assertEqual(b"0", self.stat(b"current-jobs-buried"))
        self.assertEqual(b"0", self.stat(b"cmd-delete", b"stats-tube default"))
        self.assertEqual(b"BURIED\r\n", self.worker.send(b"bury 1 1\r\n"))

    def test_kick_refused(self) -> None:
        """A buried job that could not be kicked stays buried, where people find it."""
        self.worker.send(b"bury 1 1\r\n")
        self.fill_disk(True)
        for request in (b"kick 1", b"kick-job 1") * 2:
            self.assertEqual(b"INTERNAL_ERROR\r\n", self.worker.send(request + b"\r\n"), request)
        self.fill_disk(False)
        self.assertEqual(b"FOUND 1 1\r\nx\r\n", self.worker.send(b"peek-buried\r\n"))
        self.assertEqual(b"1", self.stat(b"current-jobs-buried"))
        self.assertEqual(b"KICKED 1\r\n", self.worker.send(b"kick 1\r\n"))
        self.assertEqual(b"1", self.stat(b"kicks", b"stats-job 1"))

    def fill_disk(self, full: bool) -> None:
        """Nothing can be written to the log, or it can again."""
        self.server.degraded = full
        assert isinstance(self.control, MemoryControl)
        self.control.log_error = "No space left on device" if full else ""

    def test_only_its_client(self) -> None:
        """No other client can end, return or renew what a client has."""
        other = self.client()
        for request in (b"delete 1", b"release 1 1 0", b"bury 1 1", b"touch 1", b"kick-job 1"):
            self.assertEqual(b"NOT_FOUND\r\n", other.send(request + b"\r\n"), request)

    def test_malformed(self) -> None:
        """What is no number is refused."""
        for request in (b"release 1 1", b"release x 1 1", b"bury 1", b"bury 1 1 1", b"touch"):
            self.worker.send(request + b" \r\n")
        reply = self.worker.send(b"release 1 1\r\nbury 1\r\ntouch x\r\npeek x\r\nkick x\r\n")
        self.assertEqual(b"BAD_FORMAT\r\n" * 5, reply)


class KickTests(BeanstalkCase):
    """Jobs that are looked at again."""

    def buried(self, count: int) -> BeanstalkClient:
        """A client, and so many buried jobs."""
        client = self.client()
        for number in range(1, count + 1):
            client.put(b"x")
            client.send(b"reserve\r\nbury %d 1\r\n" % number)
        client.received()
        return client

    def test_buried_first(self) -> None:
        """While there are buried jobs, delayed ones are left alone; the oldest comes first."""
        client = self.buried(3)
        client.put(b"d", delay_s=9)
        self.assertEqual(b"KICKED 2\r\n", client.send(b"kick 2\r\n"))
        self.assertEqual(b"FOUND 3 1\r\nx\r\n", client.send(b"peek-buried\r\n"))
        self.assertEqual(b"KICKED 1\r\nKICKED 1\r\nKICKED 0\r\n", client.send(b"kick 9\r\n" * 3))

    def test_delayed(self) -> None:
        """Of delayed jobs, the one that is due first comes first."""
        client = self.client()
        for delay_s in (30, 10, 20):
            client.put(b"%d" % delay_s, delay_s=delay_s)
        self.assertEqual(b"FOUND 2 2\r\n10\r\n", client.send(b"peek-delayed\r\n"))
        self.assertEqual(b"KICKED 2\r\n", client.send(b"kick 2\r\n"))
        self.assertEqual(b"FOUND 1 2\r\n30\r\n", client.send(b"peek-delayed\r\n"))

    def test_one(self) -> None:
        """kick-job takes one, buried or delayed, and no other."""
        client = self.buried(2)
        client.put(b"d", delay_s=9)
        self.assertEqual(b"KICKED\r\n" * 2, client.send(b"kick-job 2\r\nkick-job 3\r\n"))
        self.assertEqual(b"NOT_FOUND\r\n" * 2, client.send(b"kick-job 2\r\nkick-job 9\r\n"))

    def test_bound(self) -> None:
        """One kick does not keep all other clients waiting."""
        client = self.client()
        for _ in range(KICKS_MAX + 1):
            client.put(b"d", delay_s=9)
        self.assertEqual(b"KICKED %d\r\n" % KICKS_MAX, client.send(b"kick 5000000000\r\n"))

    def test_delayed_again_and_again(self) -> None:
        """Jobs that are delayed and kicked many times take no memory for that."""
        client = self.client()
        client.put(b"x")
        for _ in range(300):
            client.send(b"reserve\r\nrelease 1 1 99\r\nkick-job 1\r\n")
        self.assertEqual(b"300", self.stat(b"kicks", b"stats-job 1"))
        self.assertLess(len(self.tubes.by_name[b"default"].delayed._heap), 100)


class TubeTests(BeanstalkCase):
    """Tubes."""

    def test_used(self) -> None:
        """Puts go to the tube in use, which is a queue of the node."""
        client = self.client()
        self.assertEqual(b"USING a\r\nUSING a\r\n", client.send(b"use a\r\nlist-tube-used\r\n"))
        client.put(b"x")
        self.assertEqual(b":1\r\n", self.turn(b"QLEN a"))

    def test_watched(self) -> None:
        """A client watches at least one tube."""
        client = self.client()
        requests = b"watch a\r\nwatch a\r\nignore b\r\nignore default\r\nignore a\r\n"
        replies = b"WATCHING 2\r\nWATCHING 2\r\nWATCHING 2\r\nWATCHING 1\r\nNOT_IGNORED\r\n"
        self.assertEqual(replies, client.send(requests))
        self.assertEqual(b"OK 8\r\n---\n- a\n\r\n", client.send(b"list-tubes-watched\r\n"))

    def test_names(self) -> None:
        """Names of tubes have 200 bytes, of those that the protocol allows."""
        client = self.client()
        self.assertEqual(b"USING a-Z+/;.$_()9\r\n", client.send(b"use a-Z+/;.$_()9\r\n"))
        longest = b"a" * 200 + b"\r\n"
        self.assertEqual(b"USING " + longest, client.send(b"use " + longest))
        for name in (b"-a", b"", b"a b", b"a" * 201, b"\xc3\xa4", b"a\0", b"{}"):
            for word in (b"use", b"watch", b"ignore", b"stats-tube"):
                self.assertEqual(b"BAD_FORMAT\r\n", client.send(word + b" " + name + b"\r\n"))

    def test_listed(self) -> None:
        """Queues of others are listed, unless their names would break the list."""
        self.turn(b"ADDJOB resp x 0", b"ADDJOB a:b x 0")
        self.assertEqual(
            b"OK 21\r\n---\n- default\n- resp\n\r\n", self.client().send(b"list-tubes\r\n")
        )
        self.assertEqual(b"1", self.stat(b"current-jobs-ready", b"stats-tube resp"))
        self.assertEqual(b"0", self.stat(b"current-jobs-reserved", b"stats-tube default"))
        self.assertEqual(b"NOT_FOUND\r\n", self.client().send(b"stats-tube none\r\n"))

    def test_flushed(self) -> None:
        """Jobs that the node forgets are not there for this protocol either."""
        client = self.client()
        client.put(b"a", delay_s=9)
        client.put(b"b")
        client.put(b"c")
        client.send(b"reserve\r\nbury 2 1\r\nreserve\r\n")
        self.turn(b"DEBUG FLUSHALL")
        client.received()
        requests = b"peek 1\r\npeek 2\r\npeek 3\r\npeek-delayed\r\npeek-buried\r\ndelete 3\r\n"
        self.assertEqual(b"NOT_FOUND\r\n" * 6, client.send(requests))
        self.assertEqual(b"0", self.stat(b"current-jobs-buried"))
        self.assertEqual(({}, {}), (self.tubes.by_number, self.node.state.notes.by_job))

    def test_forgotten(self) -> None:
        """A tube without jobs and clients takes no memory."""
        client = self.client()
        client.send(b"use a\r\nwatch b\r\n")
        client.put(b"x")
        client.hang_up()
        self.assertEqual([b"default", b"a"], list(self.tubes.by_name))
        self.client().send(b"delete 1\r\n")
        self.assertEqual([b"default"], list(self.tubes.by_name))

    def test_unknown(self) -> None:
        """What is no request is refused, and the connection goes on."""
        client = self.client()
        requests = b"nothing\r\nPUT 1\r\nreserve 1\r\nstatsx\r\nlist-tube-used\r\n"
        replies = b"UNKNOWN_COMMAND\r\n" * 2 + b"BAD_FORMAT\r\n" * 2 + b"USING default\r\n"
        self.assertEqual(replies, client.send(requests))


class StatsTests(BeanstalkCase):
    """What operators see."""

    def test_urgent(self) -> None:
        """Jobs with a priority under 1024 are urgent, for as long as they are ready."""
        client = self.client()
        client.put(b"a", priority=1023)
        client.put(b"b", priority=1024)
        for request in (b"stats", b"stats-tube default"):
            self.assertEqual(b"1", self.stat(b"current-jobs-urgent", request))
        client.send(b"reserve\r\n")
        self.assertEqual(b"0", self.stat(b"current-jobs-urgent"))

    def test_job(self) -> None:
        """A job shows its age, its TTR, and how much of that is left."""
        client = self.client()
        client.put(b"a", ttr_s=30)
        self.pass_s(3.5)
        client.send(b"reserve\r\n")
        self.pass_s(5.5)
        fields = {name: self.stat(name, b"stats-job 1") for name in (b"age", b"ttr", b"time-left")}
        self.assertEqual({b"age": b"9", b"ttr": b"30", b"time-left": b"24"}, fields)
        self.assertEqual(b"NOT_FOUND\r\n", client.send(b"stats-job 2\r\n"))

    def test_counts(self) -> None:
        """Connections and requests are counted."""
        client = self.client()
        client.put(b"a")
        client.send(b"reserve\r\n")
        names = (
            b"cmd-put",
            b"cmd-reserve",
            b"current-producers",
            b"current-workers",
            b"total-jobs",
        )
        self.assertEqual([b"1"] * 5, [self.stat(name) for name in names])
        self.assertIn(b"cmdstat_addjob:calls=1", self.turn(b"INFO commandstats"))

    def test_uptime(self) -> None:
        """The uptime counts whole seconds, as monitors compare it with their own clock."""
        self.assertEqual(b"0", self.stat(b"uptime"))
        self.reactor.advance(7_199.5)
        self.assertEqual(b"7199", self.stat(b"uptime"))
        self.reactor.advance(1)
        self.assertEqual(b"7200", self.stat(b"uptime"))


class FigureTests(BeanstalkCase):
    """What INFO and the slow log show of these clients."""

    def figures(self) -> tuple[int, ...]:
        """Of the protocol: connected, connections, commands, errors, bytes in and out."""
        of = dict(protocol_stats(self.server))["beanstalk"]
        counts = of.connected, of.connections, of.commands, of.errors
        return *map(int, counts), int(of.input_bytes), int(of.output_bytes)

    def test_protocol(self) -> None:
        """An operator sees what comes by which protocol; RESP is not charged with it."""
        client = self.client()
        sent = b"put 1 0 60 1\r\na\r\nnothing\r\nput x\r\n"
        got = client.send(sent)
        self.assertEqual((1, 1, 1, 2, len(sent), len(got)), self.figures())
        resp = dict(protocol_stats(self.server))["resp"]
        self.assertEqual((0, 0, 0), (int(resp.connected), int(resp.commands), int(resp.errors)))
        client.hang_up()
        self.assertEqual(0, self.figures()[0])

    def test_slow_log(self) -> None:
        """A slow request shows whose it was."""
        self.server.slowlog.slower_than_us = 0
        self.client().put(b"a")
        entry = self.server.slowlog.entries[0]
        self.assertEqual((b"ADDJOB", b"beanstalk"), (entry.words[0], entry.client))
