"""Workers in the console of a cluster: what they do, and how far they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from tests.acceptance.cluster.fleet import AGREE_S
from tests.acceptance.consolebench import MARKUP, READING, Api, ConsoleCase, announcement
from tests.acceptance.daemon import Daemon, environment, free_port, wait_for
from tests.acceptance.disque import disque

_ROOT: Final = Path(__file__).resolve().parents[2]
_WORK: Final = "from disque_tx.cli.verbs.workers.work import command; command()"
_HANDLERS: Final = "tests.worker.handlers"


class WorkersCase(ConsoleCase):
    """Two nodes, at whose consoles one looks, and workers as processes of their own. ``apis``: of
    each node; ``page``: at the console of the first."""

    def setUp(self) -> None:
        super().setUp()
        self.done = self.folder() / "done"
        self.done.touch()
        self.nodes = [
            Daemon(self.folder(), "cluster-node-timeout 2000", ip=f"127.0.0.{number}")
            for number in (1, 2)
        ]
        ports = [free_port() for _ in self.nodes]
        for node, port in zip(self.nodes, ports, strict=True):
            self.addCleanup(node.discard)
            node.words += ["--listen", "http", f"tcp:{port}:interface={node.ip}"]
            node.start()
        first, second = self.nodes
        first.client().call("CLUSTER", "MEET", second.ip, second.port)
        self.apis = [Api(node.ip, port) for node, port in zip(self.nodes, ports, strict=True)]
        wait_for(self.agreed, "both nodes answer", AGREE_S)
        self.url = f"http://{first.ip}:{ports[0]}/"
        self.page = self.browser()

    def agreed(self) -> bool:
        """Whether each node has the answers of both."""
        found = [api("GET", "figures?scope=cluster") for api in self.apis]
        return all((one["nodes"], one["nodes_missing"]) == (2, []) for one in found)

    def go(self, place: str, *texts: str) -> None:
        """Open a page of the first node's console, and wait until it shows these texts."""
        self.page.open(f"{self.url}#/{place}")
        for text in texts:
            self.page.wait_for_text(text)

    def work(self, node: Daemon, target: str, *words: str) -> subprocess.Popen[bytes]:
        """Start a worker that is connected to this node only."""
        with open(self.done.with_name("worker.out"), "ab") as output:
            worker = subprocess.Popen(
                [sys.executable, "-c", _WORK, f"{_HANDLERS}:{target}", *words]
                + ["--addresses", f"{node.ip}:{node.port}"],
                env=environment(DONE=str(self.done)),
                cwd=_ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        self.addCleanup(worker.wait)
        self.addCleanup(worker.kill)
        return worker

    def listed(self, number: int = 0) -> dict[str, Any]:
        """The workers by name, as a node lists those of the cluster."""
        found = self.apis[number]("GET", "workers?scope=cluster")["workers"]
        return {worker["worker"]: worker for worker in found}

    def has(self, *names: str) -> bool:
        """Whether these workers are listed, and no others."""
        return set(self.listed()) == set(names)

    def output(self) -> str:
        """What the workers have logged."""
        return self.done.with_name("worker.out").read_text()

    def recorded(self) -> list[bytes]:
        """What the handlers have written."""
        return self.done.read_bytes().splitlines()


class ProgressTests(WorkersCase):
    """``job.progress(0.4, "page 40")``."""

    def shown(self, number: int, job_id: str) -> Any:
        """What a node says about a job in the cluster."""
        return self.apis[number]("GET", f"jobs/{quote(job_id, safe='')}?scope=cluster")

    def test_seen(self) -> None:
        """How far a job is, is seen at every node, whatever the worker writes about it: by the API,
        in the console and by the command line."""
        job_id = self.apis[0].add("pages", MARKUP, replicate=2, retry_s=300)
        self.work(self.nodes[1], "pages", "-q", "pages", "--time-limit", "600")
        wait_for(lambda: "progress" in self.shown(0, job_id), "the progress is known", 20)
        for number in (0, 1):
            found = self.shown(number, job_id)
            self.assertEqual((0.4, MARKUP), (found["progress"], found["progress_note"]))
            self.assertLess(found["progress_age"], 60_000)
        self.go(f"jobs/{quote(job_id, safe='')}", "40%: <img", "In flight at worker")
        bar = self.page.run("document.querySelector('main progress').value")
        self.assertEqual(0.4, bar)
        self.assertNotEqual("markup", self.page.run("document.title"))
        _status, seen, _ = disque("-p", self.nodes[0].port, "--json", "watch", "pages", "--once")
        self.assertIn('"fraction": 0.4', seen)
        self.clean(self.page)

    def test_other_holder(self) -> None:
        """A consumer that has lost its node goes on at another one that has a copy: what it reports
        there is seen everywhere, too."""
        job_id = self.apis[0].add("q", "x", replicate=2, retry_s=300)
        first, second = (node.client() for node in self.nodes)
        first.call("GETJOB", "FROM", "q")
        second.call("WORKING", job_id, "PROGRESS", "0.75", "NOTE", "elsewhere")
        for number in (0, 1):
            found = self.shown(number, job_id)
            self.assertEqual((0.75, "elsewhere"), (found["progress"], found["progress_note"]))
        first.call("NACK", job_id)
        self.assertNotIn("progress", self.shown(0, job_id))


class PageTests(WorkersCase):
    """The page of workers."""

    def test_of_a_queue(self) -> None:
        """The page of a queue shows who takes jobs from it, at whichever node, and how far a query
        of Spark is behind; nothing for a queue that nobody names."""
        behind = [{"queue": "mail <i>", "queued": 12_000, "oldest_s": 31.5}]
        text = announcement(worker=f"Spark query {MARKUP}", queues=["x"], behind=behind, jobs=[])
        client = self.nodes[1].client()
        client.call("CLIENT", "ANNOUNCE", text)
        self.go(f"queues/{quote('mail <i>')}", "Consumers", f"Spark query {MARKUP}: 12,000 behind")
        self.page.wait_for_text("takes jobs")
        self.go("queues/x", "Consumers", f"Spark query {MARKUP}")
        self.go("queues/y")
        self.page.wait("document.querySelector('h1').textContent == 'y'")
        self.page.wait_for_text("No job waits here")
        self.assertNotIn("Consumers", self.page.text())
        self.clean(self.page)

    def test_all(self) -> None:
        """Each worker is listed once, of all nodes, with what it does and for how long; one that is
        killed vanishes after a minute, and until then is said to be gone."""
        job_id = self.apis[0].add("pages", "page <b>7</b>", replicate=2, retry_s=300)
        first = self.work(self.nodes[0], "pages", "-q", "pages", "--name", "first")
        wait_for(self.recorded, "a job is worked on", 20)
        self.work(self.nodes[1], "pages", "-q", "pages", "--name", "second", "-c", "3")
        wait_for(lambda: self.has("first", "second"), "both are listed", 20)
        wait_for(lambda: self.listed()["first"]["jobs"], "its job is told", 20)
        for number in (0, 1):
            worker = self.listed(number)["first"]
            (job,) = worker["jobs"]
            self.assertEqual((job_id, "pages", 0.4), (job["id"], job["queue"], job["progress"]))
            self.assertEqual((["pages"], False), (worker["queues"], worker["control"]))
        self.assertEqual(3, self.listed()["second"]["slots"])
        self.go("workers", "first", "second", "40%: page <b>7</b>", "takes jobs")
        self.page.wait_for_text("2 workers cannot be controlled from here")
        buttons = "[...document.querySelectorAll('tbody button')]"
        shown = self.page.run(f"{buttons}.filter((one) => one.checkVisibility()).length")
        self.assertEqual(0, shown)
        self.page.click("pages")
        self.page.wait_for_text("In flight at worker first for")
        self.go("workers", "second")
        first.kill()
        self.page.wait_for_text("connection lost")
        self.clean(self.page)

    def test_missing(self) -> None:
        """A node that does not answer is named: its workers are not in the list."""
        self.work(self.nodes[1], "pages", "-q", "pages", "--name", "second")
        wait_for(lambda: self.has("second"), "it is listed", 20)
        self.go("workers", "second")
        self.nodes[1].kill()
        address = f"{self.nodes[1].ip}:{self.nodes[1].port}"
        self.page.wait_for_text(f"1 of 2 nodes: {address}")


class ControlTests(WorkersCase):
    """Commands to workers that were started with --remote-control."""

    def work_on(self, node: Daemon, name: str) -> subprocess.Popen[bytes]:
        """A worker that takes commands, and does one job at a time."""
        words = ("-q", "pages", "--name", name, "-c", "1", "--remote-control")
        worker = self.work(node, "signed", *words)
        wait_for(lambda: name in self.listed(), f"{name} is listed", 20)
        return worker

    def signed(self) -> list[str]:
        """Who has done jobs, in order."""
        return [line.split()[0].decode() for line in self.recorded()]

    def test_stop_taking(self) -> None:
        """A worker that is to take no more jobs leaves them to the others, until it is
        to take them again. Everybody sees who gave the command."""
        first = self.work_on(self.nodes[0], "first")
        self.work_on(self.nodes[1], "second")
        self.go("workers", "first", "second", "takes jobs")
        self.page.click("Stop taking jobs: first")
        self.page.wait_for_text("first will take no more jobs")
        self.page.wait_for_text("takes no jobs")
        for number in range(4):
            self.apis[0].add("pages", str(number), retry_s=300)
        wait_for(lambda: len(self.recorded()) == 4, "all jobs are done", 30)
        self.assertEqual(["second"] * 4, self.signed())
        self.page.click("Take jobs again: first")
        wait_for(lambda: self.listed()["first"]["state"] == "taking", "it takes jobs", 20)
        for number in range(4):
            self.apis[0].add("pages", str(number), retry_s=300)
        wait_for(lambda: "first" in self.signed(), "it does jobs again", 30)
        self.assertIsNone(first.poll())
        self.go("actions", "WORKER first stop-taking", "WORKER first take")
        self.assertIn("Command 'stop-taking' by HTTP client 127.0.0.1", self.output())
        self.clean(self.page)

    def test_stop(self) -> None:
        """A worker that is to stop does the job that it has, and ends with status 0."""
        first = self.work_on(self.nodes[0], "first")
        self.apis[0].add("pages", "last", retry_s=300)
        wait_for(self.recorded, "the job is worked on", 20)
        self.go("workers", "first")
        self.page.click("Stop first after its jobs")
        self.page.wait("!!document.querySelector('dialog')")
        self.page.click("Stop after its jobs")
        self.page.wait_for_text("first will stop after its jobs")
        self.assertEqual(0, first.wait(20))
        wait_for(lambda: self.counts("pages") == 0, "its job is done", 20)
        self.page.wait_for_text("No workers")

    def counts(self, queue: str) -> int:
        """The jobs of a queue at the first node that are not done."""
        found = self.apis[0]("GET", f"counts/{queue}?cluster=1")
        return int(found["queued"]) + int(found["in_flight"])


class ReaderTests(ConsoleCase):
    """Who may only look."""

    def test_reader(self) -> None:
        """Who has the read-only password sees the workers, and can tell them nothing."""
        self.serve("requirepass secret", f"readonly-password {READING!r}", password=READING)
        self.announce(announcement(), "secret")
        path = "workers/00c0ffee00c0ffee/command"
        with self.assertRaises(AssertionError) as caught:
            self.api("POST", path, {"command": "stop"})
        self.assertEqual("NOPERM", caught.exception.args[0]["code"])
        page = self.browser()
        page.open(f"{self.url}#/workers")
        page.wait_for_text("Log in to this node")
        page.type(READING)
        page.press("Enter")
        page.wait_for_text("web1:4711")
        self.assertEqual(0, page.run("document.querySelectorAll('tbody button').length"))
        self.assertNotIn(
            "cannot be controlled", page.run("document.querySelector('main').innerText")
        )
