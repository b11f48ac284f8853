"""The console of a cluster of three nodes, one of which may die."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Final
from urllib.parse import quote

from tests.acceptance.cluster.fleet import AGREE_S, Fleet
from tests.acceptance.consolebench import Api, ConsoleCase, letter
from tests.acceptance.daemon import free_port, wait_for

_QUEUED: Final = (
    "[...document.querySelectorAll('.tile')].find((one) => one.innerText.startsWith('Queued'))"
    ".innerText.split('\\n')[1]"
)
_SUMMARY: Final = "document.getElementById('cluster').innerText"
_LACKING: Final = "document.getElementById('lacking').innerText"
#: A dead or hung node is to be known within 3 s; the rest is for a busy machine.
_NOTICED_S: Final = 10.0
#: Long enough for one refresh of a page, and for several seconds of a heartbeat.
_WATCHED_S: Final = 5.0


class ClusterCase(ConsoleCase):
    """Three nodes with a console each, and a browser at that of the first."""

    directives: tuple[str, ...] = ()

    def setUp(self) -> None:
        super().setUp()
        self.fleet = Fleet(3, "cluster-node-timeout 2000", *self.directives)
        self.addCleanup(self.fleet.discard)
        self.ports = [free_port() for _ in self.fleet.nodes]
        for node, port in zip(self.fleet.nodes, self.ports, strict=True):
            node.words += ["--listen", "http", f"tcp:{port}:interface={node.ip}"]
        self.fleet.start()
        self.first, self.second, self.third = self.fleet.nodes
        self.apis = [
            Api(node.ip, port) for node, port in zip(self.fleet.nodes, self.ports, strict=True)
        ]
        self.url = f"http://{self.first.ip}:{self.ports[0]}/"
        self.page = self.browser()

    def go(self, place: str, *texts: str) -> None:
        """Open a page of the first node's console, and wait until it shows these texts."""
        self.page.open(f"{self.url}#/{place}")
        for text in texts:
            self.page.wait_for_text(text)


class NodesTests(ClusterCase):
    """Nodes that are there, and nodes that are not."""

    def test_killed(self) -> None:
        """With one of three nodes killed, no page says that all is well: which node is missing in
        the figures, for how long, and what to do."""
        self.go("", "All is well.")
        self.page.wait(f"{_SUMMARY} === '3 nodes'")
        address = f"{self.third.ip}:{self.third.port}"
        self.third.kill()
        self.page.wait(f"{_SUMMARY} === '2 of 3 nodes'")
        self.assertIn("bad", self.page.run("document.getElementById('cluster').className"))
        self.page.wait(f"{_LACKING}.includes('2 of 3 nodes: {address} has not answered for')")
        self.page.wait_for_text(f"{address} ")
        self.page.wait("document.querySelector('ol.findings .badge.bad') !== null")
        self.assertNotIn("All is well", self.page.text())
        self.page.click("Queues")
        self.page.wait(f"{_LACKING}.includes('2 of 3 nodes')")

    def test_hung(self) -> None:
        """A node of this page that hangs is no live one: that is said within seconds, and the page
        goes on at another node, with what it showed."""
        self.apis[1].add("mail", "x")
        self.go("queues/mail", "Live, every")
        self.page.wait(f"{_SUMMARY} === '3 nodes'")
        os.kill(self.first.pid, signal.SIGSTOP)
        self.addCleanup(os.kill, self.first.pid, signal.SIGCONT)
        began_s = time.monotonic()
        self.page.wait_for_text("This node does not answer")
        self.assertLess(time.monotonic() - began_s, _NOTICED_S)
        others = [
            f"http://{node.ip}:{port}"
            for node, port in zip(self.fleet.nodes[1:], self.ports[1:], strict=True)
        ]
        self.page.wait(f"{json.dumps(others)}.includes(location.origin)")
        self.page.wait("document.querySelector('h1')?.innerText === 'mail'")
        self.page.wait(f"{_SUMMARY} === '2 of 3 nodes'")

    def test_requests(self) -> None:
        """An open page does not ask its node every second whether it is there: the node says so by
        events."""
        self.go("nodes", "3 nodes, all connected")
        self.assertLessEqual(self.asked(), 2)

    def test_no_events(self) -> None:
        """Where a proxy holds events back, the page asks its node for them, and knows nevertheless
        when it hangs."""
        silent = "window.EventSource = class { close() {} };"
        self.page.call("Page.addScriptToEvaluateOnNewDocument", source=silent)
        self.go("nodes", "3 nodes, all connected")
        self.assertGreater(self.asked(), 2)
        os.kill(self.first.pid, signal.SIGSTOP)
        self.addCleanup(os.kill, self.first.pid, signal.SIGCONT)
        self.page.wait_for_text("This node does not answer")

    def asked(self) -> int:
        """How often the page asks for the nodes in some seconds."""
        self.page.run("performance.clearResourceTimings()")
        time.sleep(_WATCHED_S)
        return int(
            self.page.run(
                "performance.getEntriesByType('resource')"
                ".filter((one) => one.name.endsWith('/api/v1/nodes')).length"
            )
        )

    def test_console_links(self) -> None:
        """From the list of nodes one goes to the console of another."""
        self.go("nodes", "3 nodes, all connected")
        self.page.wait("document.querySelectorAll('td a').length === 2")
        links = self.page.run("[...document.querySelectorAll('td a')].map((one) => one.href)")
        expected = {
            f"http://{node.ip}:{port}/#/nodes"
            for node, port in zip(self.fleet.nodes[1:], self.ports[1:], strict=True)
        }
        self.assertEqual(expected, set(links))


class FiguresTests(ClusterCase):
    """What there is at other nodes, and what is done with it."""

    def test_jobs_elsewhere(self) -> None:
        """Jobs of all nodes are counted, listed, shown and ended, wherever the page comes from; a
        switch narrows that to its node."""
        ids = [
            api.add("mail", f"body {number}", retry_s=300) for number, api in enumerate(self.apis)
        ]
        self.go("queues/mail", "body 0", "body 1", "body 2")
        self.page.click("This node")
        self.page.wait_for_text(f"of this node only, {self.first.ip}:{self.first.port}")
        self.page.wait_for_text("body 0")
        self.assertNotIn("body 2", self.page.text())
        self.page.click("Cluster")
        self.page.wait_for_text("body 2")
        self.go(f"jobs/{quote(ids[2], safe='')}", "body 2", "Waits in mail")
        address = f"{self.third.ip}:{self.third.port}"
        self.assertIn(f"1 asked for, 1 node has it: {address}", self.page.text())
        self.page.click("Acknowledge…")
        self.page.click("Acknowledge")
        self.page.wait_for_text("The job is done.")
        wait_for(lambda: self.apis[2]("GET", "counts/mail")["queued"] == 0, "it is gone there")

    def test_switched(self) -> None:
        """Figures of all nodes are never shown as those of one, not even until these are there."""
        self.apis[2].add("mail", "body 2", retry_s=300)
        self.go("queues/mail", "body 2")
        both = self.page.run(
            "(() => { const of = (text) => document.body.innerText.includes(text);"
            " [...document.querySelectorAll('#scope button')]"
            ".find((one) => one.innerText === 'This node').click();"
            " return of('of this node only') && of('body 2'); })()"
        )
        self.assertFalse(both)
        self.page.wait_for_text("of this node only")
        self.assertNotIn("body 2", self.page.text())

    def test_flush(self) -> None:
        """A flush says how many jobs it ends, and on which nodes; it ends those and no others."""
        for api in self.apis:
            api.add("mail", "x", retry_s=300)
        self.go("queues/mail", "Flush…", "Live, every")
        self.page.click("This node")
        self.page.wait_for_text("of this node only")
        self.page.wait("document.querySelectorAll('tbody tr').length >= 1")
        self.page.click("Flush…")
        self.page.wait_for_text("This ends 1 job that is queued at this node.")
        self.page.click("Cancel")
        self.page.click("Cluster")
        self.page.wait(f"{_QUEUED}.startsWith('3')")
        self.page.click("Flush…")
        self.page.wait_for_text("This ends 3 jobs that are queued on all nodes.")
        self.page.type("mail")
        self.page.click("End the jobs")
        self.page.wait_for_text("3 jobs ended.")

    def test_dead_letters_elsewhere(self) -> None:
        """Dead letters of all nodes are listed by what is alike in their reasons, also where a
        policy names their queue, and put back."""
        self.first.call("QPOLICY", "SET", "mail", "dead-queue", "graveyard")
        for number, api in enumerate(self.apis):
            reason = f"PaymentDeclined: card of customer {4711 + number} declined"
            api.add("graveyard", letter(number, reason), retry_s=300)
        similar = "PaymentDeclined: card of customer … declined"
        self.go("queues/mail", similar)
        self.page.click(f"Requeue: {similar}")
        self.page.click("Requeue")
        self.page.wait_for_text("3 jobs requeued.")
        counts = wait_for(lambda: self.counted("graveyard"), "all are gone", AGREE_S)
        self.assertEqual(0, counts["queued"])

    def counted(self, queue: str) -> dict[str, int] | None:
        """The counts of a queue over all nodes, once it is empty."""
        counts: dict[str, int] = self.apis[0]("GET", f"counts/{queue}?cluster=1")
        return counts if counts["queued"] == 0 else None

    def test_overview(self) -> None:
        """The first page sums over all nodes."""
        for api in self.apis:
            api.add("mail", "x", retry_s=300)
        self.go("", "Queues that wait longest")
        self.page.wait(f"{_QUEUED}.startsWith('3')")
        self.page.click("This node")
        self.page.wait(f"{_QUEUED}.startsWith('1')")


class LifeTests(ClusterCase):
    """What happened to a job, by the event logs of all nodes."""

    directives = ("eventlog yes",)

    def test_attempts_elsewhere(self) -> None:
        """Attempts at other nodes are shown with their errors, while the job is there and when it
        is done."""
        job_id = self.apis[1].add("mail", "x", retry_s=300)
        place = f"jobs/{quote(job_id, safe='')}"
        self.attempt("the mail server refused the address")
        self.go(place, "Waits in mail", "the mail server refused the address")
        self.attempt("timeout after 30 s")
        self.page.wait_for_text("timeout after 30 s")
        self.apis[1]("POST", f"{place}/ack")
        self.page.open("about:blank")
        self.go(place, "the mail server refused the address", "timeout after 30 s", "Acknowledged")

    def attempt(self, reason: str) -> None:
        """A worker at the second node takes the job, and gives it back."""
        (job,) = self.apis[1]("POST", "queues/mail/lease")["jobs"]
        self.apis[1]("POST", f"jobs/{quote(job['id'], safe='')}/nack", {"reason": reason})
