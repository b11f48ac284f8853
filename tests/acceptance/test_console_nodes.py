"""History, search, actions, findings and dead letters of a cluster in its console: two daemons of
one process and one of two, which are four nodes."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from tests.acceptance.cluster.fleet import AGREE_S
from tests.acceptance.consolebench import Api, ConsoleCase, letter
from tests.acceptance.daemon import Daemon, free_port, wait_for
from tests.acceptance.processes.group import Group

_NODES: Final = 4
_LACKING: Final = "document.getElementById('lacking').innerText"
_CHOOSE_ONE: Final = """(() => {
    document.querySelector('#scope button[data-value=daemon]').click();
    return document.getElementById('main').inert;
})()"""
#: A node that is killed is to be named within 3 s; the rest is for a busy machine.
_NAMED_S: Final = 10.0
#: Long: the page knows of a node that is killed before the other nodes say that it has failed.
_DIRECTIVES: Final = ("cluster-node-timeout 20000",)


class NodesCase(ConsoleCase):
    """``daemons``: the last one has two processes. ``apis``: of each daemon. ``page``: at the
    console of the first."""

    def setUp(self) -> None:
        super().setUp()
        self.group = Group(self.folder(), 2, *_DIRECTIVES, ip="127.0.0.3")
        self.daemons = [
            *(Daemon(self.folder(), *_DIRECTIVES, ip=f"127.0.0.{number}") for number in (1, 2)),
            self.group,
        ]
        ports = [free_port() for _ in self.daemons]
        for daemon, port in zip(self.daemons, ports, strict=True):
            self.addCleanup(daemon.discard)
            daemon.words += ["--listen", "http", f"tcp:{port}:interface={daemon.ip}"]
            daemon.start()
        self.first, self.second = self.daemons[:2]
        client = self.first.client()
        client.call("CLUSTER", "MEET", self.second.ip, self.second.port)
        for row in self.group.rows().values():
            client.call("CLUSTER", "MEET", self.group.ip, int(row["port"]))
        self.apis = [Api(daemon.ip, port) for daemon, port in zip(self.daemons, ports, strict=True)]
        wait_for(self.agreed, "all nodes answer", AGREE_S)
        self.url = f"http://{self.first.ip}:{ports[0]}/"
        self.page = self.browser()

    def agreed(self) -> bool:
        """Whether each daemon has the answers of all nodes."""
        found = [api("GET", "figures?scope=cluster") for api in self.apis]
        return all((one["nodes"], one["nodes_missing"]) == (_NODES, []) for one in found)

    def go(self, place: str, *texts: str) -> None:
        """Open a page of the first node's console, and wait until it shows these texts."""
        self.page.open(f"{self.url}#/{place}")
        for text in texts:
            self.page.wait_for_text(text)

    def each_process(self) -> list[tuple[str, int]]:
        """The addresses of all nodes for clients."""
        own = [(self.group.ip, self.group.own_port(number)) for number in (1, 2)]
        return [(self.first.ip, self.first.port), (self.second.ip, self.second.port), *own]

    def add(self, queue: str, body: str, address: tuple[str, int]) -> str:
        """A job that one node alone has."""
        client = self.first.client(address)
        words = ("ADDJOB", queue, body, "0", "REPLICATE", "1", "RETRY", "300")
        return str(client.call(*words))


class HistoryTests(NodesCase):
    """What happened, over all nodes."""

    def added(self, path: str) -> int:
        """How many jobs were added within the span of a history."""
        found = self.apis[0]("GET", path)
        per_s: list[float] = found["samples"]["added"]
        return round(sum(per_s) * int(found["step_s"]))

    def has_added(self, path: str, jobs: int) -> bool:
        """Whether all nodes together have added so many jobs."""
        return self.added(f"{path}&scope=cluster") == jobs

    def test_sum(self) -> None:
        """The history of a queue and of the cluster is the sum of all nodes, processes included;
        that of one node is its own."""
        for number, address in enumerate(self.each_process()):
            for _ in range(number + 1):
                self.add("mail", "x", address)
        for path in ("queues/mail/history?span=15m", "history?span=15m"):
            wait_for(partial(self.has_added, path, 10), path, AGREE_S)
            self.assertEqual(1, self.added(f"{path}&scope=node"))
        found = self.apis[0]("GET", "history?span=15m&scope=cluster")
        self.assertEqual(_NODES, len([m for m in found["marks"] if m["kind"] == "restart"]))
        self.assertEqual((_NODES, []), (found["nodes"], found["nodes_missing"]))
        self.go("", "What happened besides", "Restart")
        self.clean(self.page)

    def test_killed_meanwhile(self) -> None:
        """It is named as soon on a page that is asked for once a minute only: the connection to it
        has ended."""
        self.go("nosuch", "No such page")
        self.page.wait("document.getElementById('cluster').innerText === '4 nodes'")
        self.kill()

    def kill(self) -> str:
        """Kill the second daemon, and wait until the page says that it is missing; its address."""
        self.second.kill()
        began_s = time.monotonic()
        address = f"{self.second.ip}:{self.second.port}"
        self.page.wait(f"{_LACKING}.includes('3 of 4 nodes: {address}')")
        self.assertLess(time.monotonic() - began_s, _NAMED_S)
        return address

    def test_killed(self) -> None:
        """A node that is killed is named at once as the one that is missing, on the page that is
        open, which goes on: its charts, its findings and its figures are of the others."""
        self.go("", "All is well.")
        self.page.wait("document.getElementById('cluster').innerText === '4 nodes'")
        address = self.kill()
        self.page.wait("document.querySelector('ol.findings .badge.bad') !== null")
        self.assertIn(address, self.page.run("document.querySelector('ol.findings').innerText"))
        found = self.apis[0]("GET", "history?span=15m&scope=cluster")
        self.assertEqual((3, 1), (found["nodes"], len(found["nodes_missing"])))
        self.page.wait("document.getElementById('live').innerText.startsWith('Live')")


class TroublesTests(NodesCase):
    """Jobs that fail, wherever that is."""

    def test_failures(self) -> None:
        """Failures of one queue at several nodes are one finding, with their number and error."""
        for address in self.each_process():
            client = self.first.client(address)
            for _ in range(3):
                job_id = self.add("bills", "x", address)
                client.call("GETJOB", "NOHANG", "FROM", "bills")
                client.call("NACK", "DELAY", "600", "REASON", "PaymentDeclined: no cover", job_id)
        self.go("", "PaymentDeclined: no cover")
        shown = self.page.run("document.querySelector('ol.findings').innerText")
        self.assertEqual(1, shown.count("PaymentDeclined"), shown)
        self.assertIn("12", shown)


class SearchTests(NodesCase):
    """Jobs are found, wherever they are."""

    def test_elsewhere(self) -> None:
        """A search finds the jobs of each node and process, and one leads to their pages."""
        ids = [
            self.add("mail", f"needle {number}", address)
            for number, address in enumerate(self.each_process())
        ]
        self.go("search?text=needle", "4 jobs found; that is all.")
        for number in range(len(ids)):
            self.page.wait_for_text(f"needle {number}")
        self.page.click(ids[3])
        self.page.wait_for_text("Waits in mail")
        self.page.click("Acknowledge…")
        self.page.click("Acknowledge")
        self.page.wait_for_text("The job is done.")
        self.go("search?text=needle", "3 jobs found; that is all.")

    def test_missing(self) -> None:
        """A search says which node did not answer: what is not found may be there."""
        self.add("mail", "needle 0", self.each_process()[2])
        self.second.kill()
        address = f"{self.second.ip}:{self.second.port}"
        self.go("search?text=needle", "1 job found; that is all", f"{address} did not answer")


class ActionsTests(NodesCase):
    """Who changed what, at all nodes."""

    def test_all(self) -> None:
        """Actions of all nodes are on one page, each with its node, the newest first; a switch
        narrows that to one."""
        for number, (ip, port) in enumerate(self.each_process()):
            self.first.client((ip, port)).call("NOTE", f"deployed {number}")
            time.sleep(0.002)  # within a millisecond, the order of two nodes' actions is unknown
        texts = [f"deployed {number}" for number in range(_NODES)]
        self.go("actions", *texts)
        shown = self.page.text()
        places = [shown.index(text) for text in texts]
        self.assertEqual(sorted(places, reverse=True), places)
        for ip, port in self.each_process():
            self.page.wait_for_text(f"{ip}:{port}")
        self.page.click("This node")
        self.page.wait("!document.querySelector('main').innerText.includes('deployed 3')")
        self.page.wait_for_text("deployed 0")


class LettersTests(NodesCase):
    """Dead letters, wherever they lie."""

    def setUp(self) -> None:
        super().setUp()
        for number, address in enumerate(self.each_process()):
            self.add("dead:mail", letter(number, f"timeout after {number} s"), address)
            self.add("dead:mail", letter(10 + number, "no such host"), address)

    def counts(self, queue: str) -> dict[str, Any]:
        """The counts of a queue over all nodes."""
        path = f"counts/{quote(queue, safe='')}?cluster=1"
        counts: dict[str, Any] = self.apis[0]("GET", path)
        return counts

    def test_requeued(self) -> None:
        """Letters that match a filter are requeued at every node, those of one node where that is
        chosen; the others stay, and the list of actions says how many there were."""
        self.go("queues/mail", "no such host")
        self.page.click_at("document.querySelector('[aria-label=\"Text in dead letters\"]')", "it")
        self.page.type("timeout")
        self.page.wait_for_text("4 letters of 8 have “timeout” in them.")
        self.page.click("Requeue all…")
        self.page.wait_for_text("Requeue 4 jobs?")
        self.page.click("Requeue")
        self.page.wait_for_text("4 jobs requeued.")
        wait_for(lambda: self.counts("dead:mail")["queued"] == 4, "their letters are gone", AGREE_S)
        self.assertEqual(4, self.counts("mail")["queued"])
        (row,) = [
            row
            for row in self.apis[2]("GET", "actions?scope=cluster")["actions"]
            if row["command"] == "requeue"
        ]
        self.assertEqual(4, row["jobs"])

    def test_changed_scope(self) -> None:
        """From the moment in which somebody chooses one node, no button of the page for all of them
        can be used: it would name the jobs of all nodes, and act at one."""
        self.go("queues/mail", "no such host")
        self.assertIs(True, self.page.run(_CHOOSE_ONE))
        self.page.wait("!document.getElementById('main').inert")
        self.page.click("Drop all…")
        self.page.wait_for_text("Drop 2 dead letters of mail?")

    def test_one_node(self) -> None:
        """What is done at one node leaves the letters of the others alone."""
        self.go("queues/mail", "no such host")
        self.page.click("This node")
        self.page.wait_for_text("of this node only")
        self.page.click("Drop all…")
        self.page.wait_for_text("Drop 2 dead letters of mail?")
        self.page.click("Drop")
        self.page.click("Now")
        self.page.wait_for_text("2 jobs dropped.")
        self.assertEqual(6, self.counts("dead:mail")["queued"])
