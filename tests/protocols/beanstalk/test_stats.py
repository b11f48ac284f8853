"""Whole reports about jobs, tubes and the node, as monitors of beanstalkd read them."""

from __future__ import annotations

from tests.protocols.beanstalk.bench import BeanstalkCase

#: What depends on the machine and the moment.
_OTHER = {
    "pid", "version", "rusage-utime", "rusage-stime", "id", "hostname", "os", "platform",
    "max-job-size",
}  # fmt: skip


class ReportTests(BeanstalkCase):
    """A tube with a job in each state."""

    def setUp(self) -> None:
        super().setUp()
        self.one = self.client()
        self.one.send(b"use mail\r\nwatch mail\r\n")

    def report(self, request: bytes) -> dict[str, str]:
        """The fields of a report, in which nothing is said twice."""
        reply = self.client().send(request + b"\r\n")
        head, _, body = reply.partition(b"\r\n")
        self.assertEqual(b"OK %d" % (len(body) - 2), head)
        text = body.decode().removeprefix("---\n").removesuffix("\r\n")
        pairs = [line.partition(": ")[::2] for line in text.splitlines()]
        found = dict(pairs)
        self.assertEqual(len(pairs), len(found))
        return found

    def fill(self) -> None:
        """Put seven jobs; of them two are ready, one of these urgent, one is delayed, one reserved,
        one released with a delay, one buried, and one deleted."""
        one = self.one
        for body, priority in ((b"r", 5), (b"b", 5), (b"d", 5), (b"l", 5)):
            one.put(body, priority, ttr_s=60)
        one.send(b"reserve\r\n" * 4)
        one.send(b"bury 2 7\r\ndelete 3\r\nrelease 4 9 30\r\n")
        one.put(b"urgent", 1023)
        one.put(b"ready", 1024)
        one.put(b"delayed", 2000, delay_s=50)
        self.pass_s(10)

    def test_jobs(self) -> None:
        """A job is reported with its state, how long that lasts, and what happened to it."""
        self.fill()
        zero = dict.fromkeys(("timeouts", "releases", "buries", "kicks", "file"), "0")
        plain = {"tube": "mail", "ttr": "60", "age": "10", "delay": "0", "time-left": "0", **zero}
        expected = {
            1: {"state": "reserved", "pri": "5", "reserves": "1", "time-left": "50"},
            2: {"state": "buried", "pri": "7", "reserves": "1", "buries": "1"},
            4: {"state": "delayed", "pri": "9", "reserves": "1", "releases": "1", "delay": "30"},
            5: {"state": "ready", "pri": "1023", "reserves": "0"},
            7: {"state": "delayed", "pri": "2000", "reserves": "0", "delay": "50"},
        }
        left = {1: range(45, 61), 4: range(15, 21), 7: range(35, 41)}
        for number, changes in expected.items():
            found = self.report(b"stats-job %d" % number)
            wanted = {**plain, "id": str(number), **changes}
            if number in left:
                seconds = int(found.pop("time-left"))
                self.assertIn(seconds, left[number], number)
                wanted.pop("time-left")
            self.assertIn(int(found.pop("age")), (9, 10, 11))
            wanted.pop("age")
            self.assertEqual(wanted, found)
        self.assertEqual(b"NOT_FOUND\r\n", self.client().send(b"stats-job 3\r\n"))

    def test_tube(self) -> None:
        """A tube is reported with how many jobs it has in each state, and what was done."""
        self.fill()
        expected = {
            "name": "mail", "current-jobs-urgent": "1", "current-jobs-ready": "2",
            "current-jobs-reserved": "1", "current-jobs-delayed": "2", "current-jobs-buried": "1",
            "total-jobs": "7", "current-using": "1", "current-watching": "1",
            "current-waiting": "0", "cmd-delete": "1", "cmd-pause-tube": "0", "pause": "0",
            "pause-time-left": "0",
        }  # fmt: skip
        self.assertEqual(expected, self.report(b"stats-tube mail"))
        self.one.send(b"pause-tube mail 60\r\n")
        self.pass_s(5)
        found = self.report(b"stats-tube mail")
        self.assertIn(int(found["pause-time-left"]), (53, 54, 55))
        self.assertEqual(("60", "1"), (found["pause"], found["cmd-pause-tube"]))
        self.assertEqual(b"NOT_FOUND\r\n", self.client().send(b"stats-tube none\r\n"))

    def test_node(self) -> None:
        """The node is reported with the sums of its tubes, the commands that were used, and its
        clients."""
        self.fill()
        waiting = self.client()
        waiting.send(b"watch empty\r\nignore default\r\nreserve\r\n")
        found = self.report(b"stats")
        self.assertLessEqual(_OTHER, set(found))
        commands = {
            "put": 7, "use": 1, "watch": 2, "ignore": 1, "reserve": 5, "bury": 1, "delete": 1,
            "release": 1, "stats": 1,
        }  # fmt: skip
        used = {
            name.removeprefix("cmd-"): int(count)
            for name, count in found.items()
            if name.startswith("cmd-") and count != "0"
        }
        self.assertEqual(commands, used)
        expected = {
            "current-jobs-urgent": "1", "current-jobs-ready": "2", "current-jobs-reserved": "1",
            "current-jobs-delayed": "2", "current-jobs-buried": "1", "job-timeouts": "0",
            "total-jobs": "7", "current-tubes": "3", "current-producers": "1",
            "current-workers": "2", "current-waiting": "1", "draining": "false",
            "current-connections": "3", "total-connections": "3",
        }  # fmt: skip
        self.assertEqual(expected, {name: found[name] for name in expected})
        self.assertIn(int(found["uptime"]), (9, 10, 11))
        waiting.hang_up()
        found = self.report(b"stats")
        self.assertEqual(("0", "1"), (found["current-waiting"], found["current-workers"]))
        rest = set(found) - _OTHER - set(expected) - {"uptime"}
        self.assertEqual({"0"}, {found[name] for name in rest if name.startswith("binlog")})


class BuriedTests(BeanstalkCase):
    """Buried jobs, until they are kicked or deleted."""

    def test_counted(self) -> None:
        """Whatever ends the burial of a job, it is not counted as buried any more."""
        one = self.client()
        for body in (b"1", b"2", b"3"):
            one.put(body)
        one.send(b"reserve\r\n" * 3)
        one.send(b"bury 1 5\r\nbury 2 5\r\nbury 3 5\r\n")
        self.assertEqual(b"3", self.stat(b"current-jobs-buried"))
        self.assertEqual(b"KICKED 1\r\n", one.send(b"kick 1\r\n"))
        self.assertEqual(b"2", self.stat(b"current-jobs-buried", b"stats-tube default"))
        self.assertEqual(b"KICKED\r\n", one.send(b"kick-job 3\r\n"))
        self.assertEqual(b"DELETED\r\n", one.send(b"delete 2\r\n"))
        for request in (b"stats", b"stats-tube default"):
            self.assertEqual(b"0", self.stat(b"current-jobs-buried", request))
            self.assertEqual(b"2", self.stat(b"current-jobs-ready", request))
            self.assertEqual(b"0", self.stat(b"current-jobs-delayed", request))
        self.assertEqual(b"NOT_FOUND\r\n", one.send(b"peek-buried\r\n"))
