"""The requests of beanstalkd's protocol, by bytes in and out."""

from __future__ import annotations

import socket

from tests.protocols.beanstalk.bench import REFUSAL, BeanstalkCase
from tests.services.nodebench import drive


class PutTests(BeanstalkCase):
    """Producers."""

    def test_cycle(self) -> None:
        """A job is put, reserved and deleted under the number that put returned."""
        client = self.client()
        self.assertEqual(b"INSERTED 1\r\n", client.put(b"hello"))
        self.assertEqual(b"RESERVED 1 5\r\nhello\r\n", client.send(b"reserve\r\n"))
        self.assertEqual(b"DELETED\r\n", client.send(b"delete 1\r\n"))
        self.assertEqual(b"NOT_FOUND\r\n", client.send(b"delete 1\r\n"))
        self.assertEqual(0, len(self.node.jobs))
        self.assertEqual(({}, {}), (self.tubes.by_number, self.node.state.notes.by_job))

    def test_pipelined(self) -> None:
        """A client may send everything at once, and gets the replies in order."""
        client = self.client()
        requests = b"put 1 0 9 1\r\na\r\nreserve\r\ndelete 1\r\nreserve-with-timeout 0\r\n"
        replies = b"INSERTED 1\r\nRESERVED 1 1\r\na\r\nDELETED\r\nTIMED_OUT\r\n"
        self.assertEqual(replies, client.send(requests))

    def test_malformed(self) -> None:
        """What is not a put is refused, and nothing is added."""
        client = self.client()
        lines = (b"1 0 60", b"1 0 60 x", b"-1 0 60 1", b"4294967296 0 60 1", b"1 0 60 1 1", b"")
        for line in lines:
            self.assertEqual(b"BAD_FORMAT\r\n", client.send(b"put " + line + b"\r\n"), line)
        self.assertEqual(b"EXPECTED_CRLF\r\n", client.send(b"put 1 0 60 1\r\nabc"))
        self.assertEqual(0, len(self.node.jobs))

    def test_too_big(self) -> None:
        """A job over the limit is refused, its body is not taken for requests."""
        self.settings.beanstalk_max_job_size = 4
        client = self.client()
        self.assertEqual(b"JOB_TOO_BIG\r\n", client.put(b"quit\r\n"))
        self.assertEqual(b"INSERTED 1\r\n", client.put(b"four"))

    def test_priorities(self) -> None:
        """Smaller priorities come first, and within one the oldest job, over all watched tubes."""
        client = self.client()
        puts = ((b"a", b"1", 5), (b"b", b"2", 3), (b"a", b"3", 3), (b"b", b"4", 4))
        for tube, body, priority in puts:
            client.send(b"use %s\r\n" % tube)
            client.put(body, priority)
        client.send(b"watch a\r\nwatch b\r\n")
        bodies = [client.send(b"reserve\r\n").split(b"\r\n")[1] for _ in range(4)]
        self.assertEqual([b"2", b"3", b"4", b"1"], bodies)

    def test_priority_of_others(self) -> None:
        """Jobs of RESP clients have priority 1024, and GETJOB follows priorities, too."""
        self.turn(b"ADDJOB default resp 0")
        client = self.client()
        client.put(b"later", 1025)
        client.put(b"sooner", 1023)
        self.assertIn(b"sooner", self.turn(b"GETJOB FROM default"))
        self.assertEqual(b"RESERVED 3 4\r\nresp\r\n", client.send(b"reserve\r\n"))
        self.assertIn(b"later", self.turn(b"GETJOB FROM default"))

    def test_number_of_others(self) -> None:
        """A job of a RESP client keeps the number under which it was seen first."""
        self.turn(b"ADDJOB default resp 0")
        client = self.client()
        for _ in range(2):
            self.assertEqual(b"FOUND 1 4\r\nresp\r\n", client.send(b"peek-ready\r\n"))
        self.assertEqual(b"RESERVED 1 4\r\nresp\r\n", client.send(b"reserve\r\n"))

    def test_delay(self) -> None:
        """A delayed job is ready when its delay is over, not before."""
        client = self.client()
        client.put(b"x", delay_s=5)
        self.assertEqual(b"TIMED_OUT\r\n", client.send(b"reserve-with-timeout 0\r\n"))
        self.assertEqual(b"FOUND 1 1\r\nx\r\n", client.send(b"peek-delayed\r\n"))
        self.assertEqual(b"1", self.stat(b"current-jobs-delayed"))
        self.assertEqual(b"", client.send(b"reserve-with-timeout 6\r\n"))
        self.pass_s(5.2)
        self.assertEqual(b"RESERVED 1 1\r\nx\r\n", client.received())

    def test_draining(self) -> None:
        """A node that leaves takes no jobs, so that producers go elsewhere."""
        client = self.client()
        self.turn(b"CLUSTER LEAVING yes")
        self.assertEqual(b"DRAINING\r\n", client.put(b"x"))
        self.assertEqual(b"true", self.stat(b"draining"))

    def test_paused_in(self) -> None:
        """A queue that takes no jobs sends producers elsewhere."""
        self.turn(b"PAUSE default in")
        self.assertEqual(b"DRAINING\r\n", self.client().put(b"x"))

    def test_out_of_memory(self) -> None:
        """A full node refuses jobs, and goes on to serve."""
        client = self.client()
        client.put(b"x")
        self.server.eviction_allowed = False
        self.node.memory.limit = 1_000
        self.assertEqual(b"OUT_OF_MEMORY\r\n", client.put(b"y"))
        self.assertEqual(b"RESERVED 1 1\r\nx\r\n", client.send(b"reserve\r\n"))

    def test_copies(self) -> None:
        """As many copies are made as the settings say; with 0 as many as ADDJOB makes."""
        for setting, copies in ((0, -1), (1, 1), (2, 2)):
            self.settings.beanstalk_replicate = setting
            self.assertEqual(copies, self.tubes.replicate())

    def test_too_few_nodes(self) -> None:
        """More copies than there are nodes is an error of the server, for every put."""
        self.settings.beanstalk_replicate = 3
        self.assertEqual(b"INTERNAL_ERROR\r\n", self.client().put(b"x"))


class ReserveTests(BeanstalkCase):
    """Consumers."""

    def test_waiting(self) -> None:
        """Clients that wait get jobs as they come, the one that waited for longest first."""
        first, second, producer = self.client(), self.client(), self.client()
        first.send(b"reserve\r\n")
        second.send(b"reserve\r\n")
        self.assertEqual(b"2", self.stat(b"current-waiting"))
        producer.put(b"a")
        producer.put(b"b")
        self.assertEqual(b"RESERVED 1 1\r\na\r\n", first.received())
        self.assertEqual(b"RESERVED 2 1\r\nb\r\n", second.received())
        self.assertEqual(b"0", self.stat(b"current-waiting"))

    def test_timeout(self) -> None:
        """A wait ends on time, and the requests behind it are executed."""
        client = self.client()
        self.assertEqual(b"", client.send(b"reserve-with-timeout 2\r\nlist-tube-used\r\n"))
        self.pass_s(2.2)
        self.assertEqual(b"TIMED_OUT\r\nUSING default\r\n", client.received())
        self.assertEqual(b"BAD_FORMAT\r\n", client.send(b"reserve-with-timeout soon\r\n"))

    def test_gone(self) -> None:
        """Nothing is fetched for a client that hung up while it waited."""
        client = self.client()
        client.send(b"reserve\r\n")
        client.hang_up()
        self.client().put(b"x")
        self.assertEqual(b"1", self.stat(b"current-jobs-ready"))

    def test_hung_up(self) -> None:
        """What a client had goes back when its connection ends."""
        client, other = self.client(), self.client()
        client.put(b"x")
        client.send(b"reserve\r\n")
        other.send(b"reserve\r\n")
        client.hang_up()
        self.assertEqual(b"RESERVED 1 1\r\nx\r\n", other.received())
        self.assertEqual(b"0", self.stat(b"timeouts", b"stats-job 1"))

    def test_hung_up_with_many(self) -> None:
        """A client that had very many jobs holds up nobody: they go back some at a time."""
        client = self.client()
        for _ in range(450):
            client.put(b"x")
            client.send(b"reserve\r\n")
        client.hang_up()
        self.assertEqual(b"200", self.stat(b"current-jobs-ready"))
        self.pass_s(1)
        self.assertEqual(b"450", self.stat(b"current-jobs-ready"))

    def test_ttr(self) -> None:
        """A job whose TTR is over goes to another client, and the first one has lost it."""
        client, other = self.client(), self.client()
        client.put(b"x", ttr_s=3)
        self.pass_s(2)  # TTR counts from the reservation
        client.send(b"reserve\r\n")
        self.pass_s(2)
        other.send(b"reserve\r\n")
        self.assertEqual(b"", other.received())
        self.pass_s(1.2)
        self.assertEqual(b"RESERVED 1 1\r\nx\r\n", other.received())
        for request in (b"delete 1", b"release 1 1 0", b"bury 1 1", b"touch 1"):
            self.assertEqual(b"NOT_FOUND\r\n", client.send(request + b"\r\n"))
        self.assertEqual(b"1", self.stat(b"job-timeouts"))
        self.assertEqual(b"2", self.stat(b"reserves", b"stats-job 1"))

    def test_touch(self) -> None:
        """A client that needs longer renews its TTR."""
        client = self.client()
        client.put(b"x", ttr_s=3)
        client.send(b"reserve\r\n")
        for _ in range(3):
            self.pass_s(2)
            self.assertEqual(b"TOUCHED\r\n", client.send(b"touch 1\r\n"))
        self.assertEqual(b"DELETED\r\n", client.send(b"delete 1\r\n"))

    def test_deadline_soon(self) -> None:
        """In the last second of a TTR a client is told so instead of waiting for another job."""
        client = self.client()
        client.put(b"x", ttr_s=3)
        client.send(b"reserve\r\n")
        self.pass_s(2.1)
        self.assertEqual(b"DEADLINE_SOON\r\n", client.send(b"reserve\r\n"))
        client.put(b"y")
        self.assertEqual(b"RESERVED 2 1\r\ny\r\n", client.send(b"reserve\r\n"))

    def test_next_deadline(self) -> None:
        """When the job whose TTR ends first is done or renewed, the next one counts."""
        client = self.client()
        for body, ttr_s in ((b"x", 3), (b"y", 5), (b"z", 9)):
            client.put(body, ttr_s=ttr_s)
            client.send(b"reserve\r\n")
        client.send(b"delete 1\r\n")
        self.pass_s(2.1)
        self.assertEqual(b"TIMED_OUT\r\n", client.send(b"reserve-with-timeout 0\r\n"))
        self.pass_s(2)
        self.assertEqual(b"DEADLINE_SOON\r\n", client.send(b"reserve-with-timeout 0\r\n"))
        client.send(b"touch 2\r\n")
        self.assertEqual(b"TIMED_OUT\r\n", client.send(b"reserve-with-timeout 0\r\n"))
        self.pass_s(4.1)
        self.assertEqual(b"DEADLINE_SOON\r\n", client.send(b"reserve-with-timeout 0\r\n"))

    def test_deadline_while_waiting(self) -> None:
        """A client that waits is woken for it."""
        client = self.client()
        client.put(b"x", ttr_s=3)
        client.send(b"reserve\r\nreserve-with-timeout 60\r\n")
        client.received()
        self.pass_s(1.8)
        self.assertEqual(b"", client.received())
        self.pass_s(0.4)
        self.assertEqual(b"DEADLINE_SOON\r\n", client.received())

    def test_job_by_number(self) -> None:
        """reserve-job takes ready, delayed and buried jobs, and none that a client has."""
        client = self.client()
        client.put(b"r")
        client.put(b"d", delay_s=100)
        client.put(b"b", priority=1)
        client.send(b"reserve\r\nbury 3 7\r\n")
        for number, body in ((1, b"r"), (2, b"d"), (3, b"b")):
            request = b"reserve-job %d\r\n" % number
            client.received()
            self.assertEqual(b"RESERVED %d 1\r\n%s\r\n" % (number, body), client.send(request))
            self.assertEqual(b"NOT_FOUND\r\n", self.client().send(request))
        self.assertEqual(b"NOT_FOUND\r\n", client.send(b"peek-buried\r\n"))
        self.assertEqual(b"NOT_FOUND\r\n", client.send(b"peek-delayed\r\n"))
        self.assertEqual(b"BAD_FORMAT\r\n", client.send(b"reserve-job x\r\n"))
        self.assertEqual(b"DELETED\r\n" * 3, client.send(b"delete 1\r\ndelete 2\r\ndelete 3\r\n"))

    def test_resp_consumer(self) -> None:
        """A RESP client gets what a beanstalk client put, and may acknowledge it."""
        client = self.client()
        client.put(b"x")
        reply = self.turn(b"GETJOB FROM default")
        job_id = reply.split(b"\r\n")[5]
        self.assertEqual(b"reserved", self.stat(b"state", b"stats-job 1"))
        self.assertEqual(b"NOT_FOUND\r\n", client.send(b"delete 1\r\n"))
        self.assertEqual(b":1\r\n", self.turn(b"ACKJOB " + job_id))
        self.assertEqual(b"NOT_FOUND\r\n", client.send(b"peek 1\r\n"))

    def test_at_most_once(self) -> None:
        """A job with RETRY 0 is never delivered again, whatever its client does."""
        self.turn(b"ADDJOB default x 0 RETRY 0")
        client = self.client()
        self.assertEqual(b"RESERVED 1 1\r\nx\r\n", client.send(b"reserve\r\n"))
        self.assertEqual(b"NOT_FOUND\r\n", client.send(b"release 1 1 0\r\n"))
        self.assertEqual(b"NOT_FOUND\r\n", client.send(b"bury 1 1\r\n"))
        self.assertEqual(b"DELETED\r\n", client.send(b"delete 1\r\n"))


class AdmissionTests(BeanstalkCase):
    """Who may connect."""

    def test_listed(self) -> None:
        """Operators see the client, and can close its connection."""
        client = self.client()
        client.send(b"reserve\r\n")
        self.assertIn(b"name=beanstalk ", self.turn(b"CLIENT LIST"))
        self.assertEqual(b":1\r\n", self.turn(b"CLIENT KILL ID 1"))
        self.assertTrue(client.transport.disconnected)

    def test_protected(self) -> None:
        """Protected mode and maxclients hold."""
        self.assertEqual(REFUSAL, self.client("192.0.2.1").received())
        self.settings.maxclients = 1
        self.client()
        self.assertEqual(REFUSAL, self.client().received())
        self.assertEqual(1, self.tubes.connected)

    def test_password(self) -> None:
        """The protocol knows no password: once there is one, only this host is served."""
        self.settings.protected_mode = False
        self.settings.requirepass = b"secret"
        refused = self.client("192.0.2.1")
        self.assertEqual(REFUSAL, refused.received())
        self.assertTrue(refused.transport.disconnecting)
        self.assertIn("requirepass", self.logged())
        self.assertEqual(b"INSERTED 1\r\n", self.client().put(b"x"))

    def test_quit(self) -> None:
        """quit ends the connection, without a reply."""
        client = self.client()
        self.assertEqual(b"", client.send(b"quit\r\nlist-tubes\r\n"))
        self.assertTrue(client.transport.disconnecting)

    def test_too_much(self) -> None:
        """A client that waits and sends megabytes meanwhile is disconnected."""
        client = self.client()
        client.send(b"reserve\r\n")
        client.send(b"x" * 2_000_000)
        self.assertTrue(client.transport.disconnected)

    def test_much(self) -> None:
        """A client that waits may send a job of any allowed size meanwhile, which is put when the
        wait is over, but not many of them."""
        self.settings.beanstalk_max_job_size = 3_000_000
        client, other = self.client(), self.client()
        client.send(b"reserve\r\n")
        self.assertEqual(b"", client.put(b"x" * 3_000_000))
        other.put(b"y")
        self.assertEqual(b"RESERVED 1 1\r\ny\r\nINSERTED 2\r\n", client.received())
        client.send(b"delete 1\r\ndelete 2\r\nreserve\r\n")
        client.put(b"x" * 3_000_000)
        self.assertFalse(client.transport.disconnected)
        client.put(b"x" * 1_500_000)
        self.assertTrue(client.transport.disconnected)

    def test_fast_acceptor(self) -> None:
        """On real sockets the node reads and writes by itself."""
        mine, its = socket.socketpair()
        self.addCleanup(mine.close)
        mine.settimeout(5)
        self.hub.adopt(its, self.beanstalk)
        mine.sendall(b"put 1 0 60 1\r\nx\r\nreserve\r\n")
        drive(self.reactor)
        self.assertEqual(b"INSERTED 1\r\nRESERVED 1 1\r\nx\r\n", mine.recv(100))
        mine.close()
        drive(self.reactor)
        self.assertEqual(b"1", self.stat(b"current-jobs-ready"))
