"""What is asked of each node, for all that look at a whole cluster."""

from __future__ import annotations

import json
import time
from functools import partial

from disque_tx.cli.options import parse
from disque_tx.cli.verbs.base.members import Members
from disque_tx.cli.verbs.base.survey import _ahead_s, _maxmemory, survey, view, whole_survey
from disque_tx.client.blocking import Disque
from disque_tx.messages.nodes import NodeEntry
from disque_tx.worker.base.status import WorkerStatus
from tests.acceptance.daemon import free_port
from tests.cli.double import ScriptedServer
from tests.cli.livenode import LiveNode, VerbCase
from tests.cli.verbs.base.test_members import HELLO


class ViewTests(VerbCase):
    """The state of one node."""

    def test_clock(self) -> None:
        """A clock that is ahead of this machine's, or behind it, is shown so: leases and RETRY
        times of that node are wrong by as much."""
        for ahead_s in (100, -100):
            now_s = partial(lambda behind_s: time.time() - behind_s, ahead_s)
            found = view(self.client, now_s)
            self.assertEqual(ahead_s, round(found.clock_s, -1))

    def test_figures(self) -> None:
        """The memory limit and the paused queues of a node are shown, as it has them."""
        for name, how in (("a", "in"), ("b", "all"), ("c", "none")):
            self.add(name, "x")
            self.call("PAUSE", name, how)
        self.call("CONFIG", "SET", "maxmemory", 123_000_000)
        found = view(self.client)
        self.assertEqual((2, 123_000_000), (found.paused, found.maxmemory))
        self.assertEqual(self.call("CLUSTER", "MYID").decode(), found.id)
        self.assertEqual(self.node.address, found.address)

    def test_cannot_say(self) -> None:
        """A node whose operator has disabled TIME and CONFIG is shown without these figures."""
        server = ScriptedServer(HELLO, *[b"-ERR unknown command\r\n"] * 2)
        self.addCleanup(server.stop)
        client = Disque(f"disque://{server.address}")
        self.addCleanup(client.close)
        self.assertEqual((0.0, 0), (_ahead_s(client, time.time), _maxmemory(client)))
        self.assertEqual([b"TIME", b"CONFIG"], [words[0] for words in server.requests[1:]])


class FailureTests(VerbCase):
    """Queues whose jobs fail."""

    def test_version(self) -> None:
        """A queue that fails is shown with the worker that failed last, and with the version of its
        program: after an upgrade that says what to go back to."""
        worker = self.connect()
        said = json.dumps({"worker": "w1", "version": "2.5"})
        worker.call("CLIENT", "ANNOUNCE", said)
        worker.call("CLIENT", "SETNAME", WorkerStatus("w1", 4, 1, ("mail",)).encoded())
        self.add("mail", *"abcdefgh", retry=60)
        for _ in range(8):
            ((_queue, job_id, _body),) = worker.call("GETJOB", "FROM", "mail")
            worker.call("NACK", "REASON", "no disk", job_id)
        with Members(parse([], {}), [self.node.address]) as members:
            (found,) = whole_survey(members, [self.node.address]).failures
        self.assertEqual(("mail", 8, 0), (found.name, found.failed, found.timed_out))
        self.assertEqual(("w1", "2.5", "no disk"), (found.worker, found.version, found.error))


class SurveyTests(VerbCase):
    """The nodes that are asked."""

    def members(self, *addresses: str) -> Members:
        """Connections to these nodes."""
        members = Members(parse([], {}), addresses)
        self.addCleanup(members.close)
        return members

    def test_listed(self) -> None:
        """Nodes that the first one lists are asked as well, and those that do not answer are named
        with the reason; but not those that are no members yet."""
        other = LiveNode(name=b"d" * 40)
        self.addCleanup(other.stop)
        gone_port = free_port()
        membership = self.node.node.node.membership
        membership.add(NodeEntry(b"d" * 40, b"127.0.0.1", other.port, 0, 0))
        membership.add(NodeEntry(b"c" * 40, b"127.0.0.1", gone_port, 0, 0))
        self.call("CLUSTER", "MEET", "127.0.0.1", free_port())
        members = self.members(self.node.address)
        found = survey(members, [self.node.address])
        asked = [one.address for one in found.views.values()]
        self.assertEqual([self.node.address, other.address], asked)
        self.assertEqual([f"127.0.0.1:{gone_port}"], list(found.silent))
        found = survey(members, [self.node.address], discover=False)
        self.assertEqual((1, {}), (len(found.views), found.silent))
