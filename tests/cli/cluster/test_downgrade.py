"""``disque cluster downgrade``: all that it says."""

from __future__ import annotations

import json
from contextlib import closing

from disque_tx.client.blocking import Disque
from tests.cli.livenode import LiveNode, VerbCase
from tests.client.scripted import NODE_IDS, ScriptedNode, array, bulk


class DowngradeTests(VerbCase):
    """A node with all that originals do not know, and nodes that are different."""

    def lose(self, patterns: int, schedules: int) -> None:
        """Policies and schedules, two keys, and a job in a backoff."""
        for number in range(patterns):
            self.call("QPOLICY", "SET", f"p{number}", "ttl", 5)
        for number in range(schedules):
            self.disque("schedule", "set", f"s{number}", "@daily", "q", "b")
        for key in ("k", "l"):
            self.call("ADDJOB", "q", "x", 0, "UNIQUE", key)
        self.call("QPOLICY", "SET", "p0", "retry-delay", 60)
        self.call("ADDJOB", "p0", "x", 0, "RETRY", 60)
        ((_, job_id, _),) = self.call("GETJOB", "FROM", "p0")
        self.call("NACK", job_id)

    def said(self, *words: str) -> tuple[int, list[str], str]:
        """The exit status, the lines without the address, and the errors."""
        status, output, errors = self.disque("cluster", "downgrade", self.node.address, *words)
        return status, output.replace(f"{self.node.address}: ", "").splitlines(), errors

    def test_many(self) -> None:
        """Of each kind it is said how many there are, with the names of the first five."""
        self.lose(6, 7)
        expected = [
            "policies of 6 patterns: p0, p1, p2, p3, p4 and 1 more",
            "7 schedules: s0, s1, s2, s3, s4 and 2 more",
            "2 keys of jobs: ADDJOB with UNIQUE is refused by originals",
            "1 job in a backoff: it ends with RETRY, perhaps sooner",
        ]
        self.assertEqual((1, expected, ""), self.said())

    def test_few(self) -> None:
        """Up to five names are all of them; programs get what there is as a document."""
        self.lose(5, 1)
        status, lines, _ = self.said()
        self.assertEqual("policies of 5 patterns: p0, p1, p2, p3, p4", lines[0])
        self.assertEqual("1 schedule: s0", lines[1])
        status, (line,), _ = self.said("--json")
        self.assertEqual(1, status)
        (found,) = json.loads(line).values()
        counts = {name.split(":")[0]: count for name, count in found.pop("counts").items()}
        self.assertEqual({"keys of jobs": 2, "jobs in a backoff": 1}, counts)
        patterns = [f"p{number}" for number in range(5)]
        rest = {"policies": patterns, "schedules": ["s0"], "keys_in_log": False}
        self.assertEqual(rest, found)

    def test_contradiction(self) -> None:
        """Whoever asks for both is asked which one, and nothing is deleted."""
        self.lose(1, 0)
        status, _, errors = self.disque(
            "cluster", "downgrade", self.node.address, "--check", "--do", "--yes"
        )
        self.assertEqual(2, status)
        self.assertIn("Use --check or --do.", errors)
        self.assertEqual(1, len(self.client.policy_list()))

    def test_deleted(self) -> None:
        """What is to be deleted is deleted, and it is said how much that was; what is left is
        listed after that."""
        self.lose(2, 1)
        status, lines, errors = self.said("--do", "--yes")
        self.assertEqual("Deleted: policies of 2 patterns, 1 schedule.\n", errors)
        self.assertEqual(1, status)
        self.assertEqual("2 keys of jobs: ADDJOB with UNIQUE is refused by originals", lines[0])
        self.assertEqual(([], []), (self.call("QPOLICY", "LIST"), self.call("SCHEDULE", "LIST")))
        self.lose(1, 0)
        status, output, errors = self.disque("cluster", "downgrade", self.node.address, "--do")
        self.assertEqual((2, ""), (status, output))
        self.assertIn("--yes", errors)
        self.assertEqual(1, len(self.client.policy_list()))

    def test_one_kind(self) -> None:
        """Policies without schedules are deleted, and schedules without policies; where there are
        neither, none is said to have been deleted."""
        for policies, schedules in ((1, 0), (0, 1), (0, 0)):
            for number in range(policies):
                self.call("QPOLICY", "SET", f"p{number}", "ttl", 5)
            for number in range(schedules):
                self.disque("schedule", "set", f"s{number}", "@daily", "q", "b")
            patterns = "1 pattern" if policies else "0 patterns"
            schedule = "1 schedule" if schedules else "0 schedules"
            deleted = f"Deleted: policies of {patterns}, {schedule}.\n"
            self.assertEqual((0, ["nothing"], deleted), self.said("--do", "--yes"))

    def test_deleted_once(self) -> None:
        """One node deletes for all of the cluster, which learn it from that one: what it had is
        what was deleted."""
        other = LiveNode(name=b"d" * 40)
        self.addCleanup(other.stop)
        self.lose(2, 1)
        with closing(Disque(other.address)) as client:
            client.policy_set("kept", {"ttl": "5"})
            words = ("cluster", "downgrade", self.node.address, other.address, "--do", "--yes")
            _status, _output, errors = self.disque(*words)
            left = len(self.client.policy_list()), len(client.policy_list())
        of_this = "Deleted: policies of 2 patterns, 1 schedule.\n"
        of_other = "Deleted: policies of 1 pattern, 0 schedules.\n"
        self.assertIn((errors, left), ((of_this, (0, 1)), (of_other, (2, 0))))

    def test_deleted_beside_originals(self) -> None:
        """Originals that are in the cluster already do not keep policies from being deleted at the
        nodes that know them, whichever node is asked first."""
        self.lose(2, 1)
        addresses = [self.node.address]
        for number in range(6):
            name = f"{number:040x}"
            table = f"{name} 127.0.0.1:1 myself 0 0 connected\n"
            cluster = {"CLUSTER MYID": bulk(name), "CLUSTER NODES": bulk(table)}
            original = ScriptedNode(name, INFO=bulk(""), **cluster)
            self.addCleanup(original.close)
            addresses.append(original.address)
        status, output, errors = self.disque("cluster", "downgrade", *addresses, "--do", "--yes")
        self.assertEqual("Deleted: policies of 2 patterns, 1 schedule.\n", errors)
        self.assertEqual((1, 6), (status, output.count(": nothing\n")))
        self.assertEqual([], self.call("QPOLICY", "LIST"))

    def test_others(self) -> None:
        """An original loses nothing; keys in a log need a program, which is named; a node that
        cannot be asked might lose anything."""
        name, table = NODE_IDS[0], f"{NODE_IDS[0]} 127.0.0.1:1 myself 0 0 connected\n"
        cluster = {"CLUSTER MYID": bulk(name), "CLUSTER NODES": bulk(table)}
        original = ScriptedNode(name, INFO=bulk(""), **cluster)
        logged = ScriptedNode(
            NODE_IDS[1],
            **{**cluster, "CLUSTER MYID": bulk(NODE_IDS[1])},
            INFO=bulk("keys:1\r\njobs_in_backoff:0\r\naof_enabled:1\r\n"),
            QPOLICY=array(),
            SCHEDULE=b"-ERR unknown command 'SCHEDULE'\r\n",
        )
        gone = ScriptedNode()
        gone.close()
        for node in (original, logged):
            self.addCleanup(node.close)
        words = ("cluster", "downgrade")
        at = original.address
        self.assertEqual((0, f"{at}: nothing\n", ""), self.disque(*words, at))
        status, output, _ = self.disque(*words, logged.address)
        lines = [line.removeprefix(f"{logged.address}: ") for line in output.splitlines()]
        keys = "1 key of jobs: ADDJOB with UNIQUE is refused by originals"
        log = "keys in the log: once the node is stopped, disque-check-aof --original"
        self.assertEqual((1, [keys, log]), (status, lines))
        status, output, errors = self.disque(*words, at, gone.address)
        self.assertEqual((1, f"{at}: nothing\n"), (status, output))
        self.assertRegex(errors, rf"^{gone.address} could not be asked \(.* refused\)\.\n\Z")
