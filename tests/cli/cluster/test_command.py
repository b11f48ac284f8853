"""``disque cluster`` on nodes in threads, which have no links to each other."""

from __future__ import annotations

import csv
import json

from disque_tx.cli.cluster import command
from disque_tx.client.values import ClusterNode
from disque_tx.diagnosis.facts import Survey, SurveyedNode
from tests.cli.livenode import LiveNode, VerbCase
from tests.client.scripted import ScriptedNode
from tests.commands.desk import ME


class ClusterTests(VerbCase):
    """What is asked of the nodes, and what the exit status says."""

    def known(self) -> dict[bytes, bytes]:
        """The IDs and addresses of the other nodes that the node knows."""
        lines = self.connect().call("CLUSTER", "NODES").splitlines()
        words = [line.split() for line in lines if b"myself" not in line]
        return {found[0]: found[1] for found in words}

    def test_meet(self) -> None:
        """The first node is told the addresses of the others."""
        other = LiveNode(name=b"f" * 40)
        self.addCleanup(other.stop)
        words = ("cluster", "meet", self.node.address, other.address, "--yes", "--timeout", "0")
        status, _, errors = self.disque(*words)
        self.assertEqual(1, status)
        self.assertIn("has no link to", errors)
        self.assertEqual([other.address.encode()], list(self.known().values()))

    def test_info(self) -> None:
        """A node that nothing is wrong with is shown as such; one that another does not know is
        not."""
        self.assertEqual([["ok", "0/0"]], self.info(self.node.address))
        other = LiveNode(name=b"f" * 40)
        self.addCleanup(other.stop)
        unknown = [["unknown to some", "0/0"]] * 2
        self.assertEqual(unknown, self.info(self.node.address, other.address))

    def test_info_of_silent(self) -> None:
        """A node that does not answer is in the table as well, and scripts see it by the status."""
        gone = ScriptedNode()
        gone.close()
        status, output, _ = self.disque("cluster", "info", self.node.address, gone.address)
        rows = [line.split("\t") for line in output.splitlines()[1:]]
        self.assertEqual((1, [self.node.address, gone.address]), (status, [r[0] for r in rows]))
        self.assertEqual(["?", "unreachable", *["?"] * 6], rows[-1][1:])

    def test_timeout(self) -> None:
        """A time that is none is refused before anything is changed."""
        for seconds in ("-0.1", "86401", "x"):
            for words in (("create", "a:1", "b:2"), ("meet", "a:1", "b:2")):
                status, _, errors = self.disque("cluster", *words, "--yes", "--timeout", seconds)
                self.assertEqual(2, status)
                self.assertIn("Invalid value for '--timeout'", errors)

    def test_info_for_programs(self) -> None:
        """Programs get whole IDs and numbers, as JSON or CSV, and a row of each node that does not
        answer, with the reason."""
        self.add("q", "a", "b")
        gone = ScriptedNode()
        gone.close()
        addresses = sorted((self.node.address, gone.address))
        words = ("cluster", "info", *addresses)
        status, output, _ = self.disque(*words, "--json")
        found, missing = json.loads(output)
        self.assertEqual((1, self.node.address), (status, found["node"]))
        self.assertEqual((ME.decode(), ["ok"]), (found["id"], found["state"]))
        self.assertEqual((2, 1, 0), (found["jobs"], found["queues"], found["others"]))
        self.assertEqual((gone.address, ["unreachable"]), (missing["node"], missing["state"]))
        self.assertIn("refused", missing["why"])
        status, output, _ = self.disque(*words, "--csv")
        rows = list(csv.DictReader(output.splitlines()))
        self.assertEqual(1, status)
        self.assertEqual(["ok", "unreachable"], [row["state"] for row in rows])
        self.assertEqual([ME.decode(), ""], [row["id"] for row in rows])
        self.assertEqual(["2", ""], [row["jobs"] for row in rows])
        self.assertEqual(missing["why"], rows[1]["why"])

    def info(self, *addresses: str) -> list[list[str]]:
        """The state of each node, and how many links it has."""
        status, output, _ = self.disque("cluster", "info", *addresses)
        self.assertEqual(0, status)
        head, *rows = [line.split("\t") for line in output.splitlines()]
        return [[row[head.index(name)] for name in ("state", "links")] for row in rows]

    def test_forget(self) -> None:
        """All other nodes forget it; a node that nobody knows is a mistake of the caller."""
        self.connect().call("CLUSTER", "MEET", "127.0.0.1", 1)
        (node_id,) = self.known()
        words = ("cluster", "forget", self.node.address, node_id.decode(), "--yes")
        status, output, _ = self.disque(*words)
        self.assertIn("is forgotten by 1 node.", output)
        self.assertEqual({}, self.known())
        self.assertEqual(0, status)
        status, _, errors = self.disque(*words)
        self.assertEqual(2, status)
        self.assertIn("No node knows", errors)

    def test_forget_all(self) -> None:
        """A node that cannot be asked would bring the forgotten one back, and is named; the node
        that is forgotten is not asked, and whoever forgets one that still runs is warned."""
        other = LiveNode(name=b"f" * 40)
        self.addCleanup(other.stop)
        gone = ScriptedNode()
        gone.close()
        self.connect().call("CLUSTER", "MEET", "127.0.0.1", 1)
        (node_id,) = self.known()
        words = ("cluster", "forget", self.node.address, node_id.decode().upper())
        status, _, errors = self.disque(*words)
        self.assertEqual(
            (2, True), (status, "There is no terminal to ask on; use --yes." in errors)
        )
        survey = Survey({}, {gone.address: "Connection refused."})
        known = ClusterNode(node_id.decode(), "10.0.0.9:1", frozenset(), 0, 0, True)
        for name, address in ((ME.decode(), self.node.address), ("f" * 40, other.address)):
            table = {known.id: known}
            survey.views[name] = SurveyedNode(address, name, table, {}, 0, 0, 0.0)
        self.patch(command, "survey", lambda *_, **__: survey)
        status, output, errors = self.disque(*words, "--yes")
        expected = (1, f"{node_id.decode()} is forgotten by 2 nodes.\n")
        self.assertEqual(expected, (status, output))
        self.assertEqual(
            f"{gone.address} could not be asked (Connection refused). It will bring the node back:"
            " make sure that it answers, and repeat this.\n",
            errors,
        )
        self.assertEqual("Make 2 nodes forget a?", command._warning(survey, "a", 2))
        alive = " It still runs: let it leave first (disque cluster evacuate), then stop it."
        self.assertTrue(command._warning(survey, "f" * 40, 1).endswith(alive))

    def test_forget_words(self) -> None:
        """An ID that is none is refused before anybody is asked."""
        for words in (("a" * 39,), ("a" * 41,)):
            status, _, errors = self.disque("cluster", "forget", "127.0.0.1:1", *words, "--yes")
            self.assertEqual(2, status)
            self.assertIn("NODE-ID has 40 characters; see disque cluster nodes.", errors)

    def test_check(self) -> None:
        """The check says what is wrong and what to do, where nodes listen, and how many answered;
        programs get the same as a document, and scripts the status."""
        self.connect().call("PAUSE", "q", "in")
        words = ("cluster", "check", self.node.address)
        status, output, _ = self.disque(*words)
        note = f"note: {self.node.address}: has 1 paused queue among its first 1000"
        lines = [note, "    PAUSE queue none, if this is not intended."]
        self.assertEqual(
            (0, [*lines, "1 node answered: no problem"]), (status, output.splitlines())
        )
        status, output, _ = self.disque(*words, "--json")
        found = json.loads(output)
        self.assertEqual((0, [self.node.address]), (status, found["nodes"]))
        (finding,) = found["findings"]
        self.assertEqual(("note", self.node.address), (finding["severity"], finding["node"]))
        self.assertEqual({self.node.address: {"clients": [], "bus": []}}, found["listening"])
        gone = ScriptedNode()
        gone.close()
        status, output, _ = self.disque(*words, gone.address)
        self.assertEqual((1, "1 node answered: 1 problem"), (status, output.splitlines()[-1]))

    def test_create(self) -> None:
        """A cluster is made of nodes that know no others; those that do are named, with whom they
        know, and so are the same node twice and different versions; nothing is changed then."""
        self.connect().call("CLUSTER", "MEET", "127.0.0.1", 1)
        (node_id,) = self.known()
        other = LiveNode(name=b"f" * 40)
        self.addCleanup(other.stop)
        words = ("cluster", "create", "--yes", "--timeout", "0")
        status, _, errors = self.disque(
            *words, self.node.address, "localhost:" + str(self.node.port)
        )
        self.assertEqual(1, status)
        self.assertIn("Two of the addresses are the same node. Nothing was changed.", errors)
        gone = ScriptedNode()
        gone.close()
        status, _, errors = self.disque(*words, other.address, gone.address)
        self.assertEqual(1, status)
        self.assertIn(f"Not all nodes answer ({gone.address}: ", errors)
        self.assertIn("). Nothing was changed.", errors)
        self.assertEqual([node_id], list(self.known()))

    def test_downgrade(self) -> None:
        """Whoever goes back to originals is told what gets lost, by the exit status as well."""
        words = ("cluster", "downgrade", self.node.address)
        nothing = f"{self.node.address}: nothing\n"
        self.assertEqual((0, nothing, ""), self.disque(*words))
        connection = self.connect()
        connection.call("QPOLICY", "SET", "a", "ttl", 5)
        self.disque("schedule", "set", "s", "@daily", "q", "b")
        status, output, _ = self.disque(*words)
        self.assertEqual((1, True), (status, output != nothing))
        status, output, errors = self.disque(*words, "--do", "--yes")
        self.assertEqual((0, nothing), (status, output))
        self.assertIn("Deleted: policies of 1 pattern, 1 schedule.", errors)


class EvacuateTests(VerbCase):
    """``disque cluster evacuate``."""

    def test_empty(self) -> None:
        """A node without jobs is empty as soon as the others can know; the exit status says so."""
        words = ("cluster", "evacuate", self.node.address, "--yes", "--timeout", "30")
        status, output, _ = self.disque(*words)
        self.assertEqual(
            (0, f"{self.node.address} is empty, and can be stopped.\n"), (status, output)
        )

    def test_jobs_left(self) -> None:
        """One whose jobs nobody takes is not, and why is said; --cancel ends it."""
        self.connect().call("ADDJOB", "q", "body", "0")
        words = ("cluster", "evacuate", self.node.address, "--yes")
        status, _, errors = self.disque(*words, "--timeout", "3")
        self.assertEqual(1, status)
        self.assertIn("1 job left: no other node takes jobs", errors)
        self.assertEqual("yes", self.connect().call("CLUSTER", "LEAVING"))
        self.assertEqual(0, self.disque(*words, "--cancel")[0])
        self.assertEqual("no", self.connect().call("CLUSTER", "LEAVING"))

    def test_started(self) -> None:
        """Without --wait the command returns at once."""
        status, output, _ = self.disque("cluster", "evacuate", self.node.address, "--yes")
        self.assertEqual(0, status)
        self.assertIn("gives its jobs away", output)
