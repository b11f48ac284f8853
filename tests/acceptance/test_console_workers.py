"""Workers in the console of a cluster: what they do, and how far they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from tests.acceptance.cluster.fleet import AGREE_S
from tests.acceptance.consolebench import MARKUP, Api, ConsoleCase
from tests.acceptance.daemon import Daemon, environment, free_port, wait_for
from tests.acceptance.disque import disque
from tests.acceptance.test_console_nodes import _ANY_NODE

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
        self.page = self.browser(_ANY_NODE)

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
        self.go(f"jobs/{quote(job_id, safe='')}", "40%: <img", "In flight at a worker")
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
