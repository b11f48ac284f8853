"""Logs of the original, damaged logs, and logs that take a while to load."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from tests.acceptance.daemon import Daemon, DaemonTestCase, wait_for
from tests.acceptance.load import add_many, job_ids, shown
from tests.acceptance.resp import Connection

VECTORS = Path(__file__).resolve().parents[1] / "vectors"


class OriginalFilesTests(DaemonTestCase):
    """Files that Disque 1.0-rc1 wrote, intact and damaged."""

    def original(self, *directives: str) -> Daemon:
        """A daemon in a folder with the files of a node of the original."""
        daemon = self.daemon("appendonly yes", *directives)
        shutil.copy(VECTORS / "aof" / "node0.aof", daemon.folder / "disque.aof")
        shutil.copy(VECTORS / "nodes-conf" / "nodes-node0.conf", daemon.folder / "nodes.conf")
        return daemon

    def log_file(self, daemon: Daemon) -> Path:
        """The daemon's log."""
        return daemon.folder / "disque.aof"

    def test_takes_over(self) -> None:
        """This daemon replaces a node of the original in its folder, with all its jobs."""
        expected = {
            job["id"]: job["_label"] for job in jscan("jscan-loaded.json")["after_load"]["jobs"]
        }
        client = self.original().start().client()
        self.assertEqual(set(expected), job_ids(client))
        self.assertEqual(
            b"607768646469a007233844ee71633dcea14c5092", client.call("CLUSTER", "MYID")
        )
        for job in jscan("jscan-loaded.json")["after_load"]["jobs"]:
            mine = shown(client, job["id"])
            for name in ("repl", "ctime", "delay", "retry", "nacks", "additional-deliveries"):
                self.assertEqual(job[name], mine[name.encode()], (job["_label"], name))

    def test_torn_tail(self) -> None:
        """A record that a crash cut short is removed from the log, and saved beside it."""
        daemon = self.original()
        path = self.log_file(daemon)
        with path.open("r+b") as file:
            file.truncate(3693)
        tail = path.read_bytes()[3640:]
        self.assertEqual("12", daemon.start().info()["registered_jobs"])
        self.assertEqual(3640, path.stat().st_size)
        self.assertEqual(tail, path.with_name("disque.aof.cut-3640").read_bytes())

    def test_torn_tail_refused(self) -> None:
        """With ``aof-load-truncated no`` the decision is left to the operator."""
        daemon = self.original("aof-load-truncated no")
        with self.log_file(daemon).open("r+b") as file:
            file.truncate(3693)
        daemon.spawn()
        self.assertEqual(1, daemon.wait())
        self.assertIn("3640", daemon.log())
        self.assertEqual(3693, self.log_file(daemon).stat().st_size)

    def test_damage(self) -> None:
        """Damage in the middle is not a torn tail: the start is refused, and the error names the
        offset."""
        daemon = self.original()
        data = bytearray(self.log_file(daemon).read_bytes())
        offset = data.index(b"*2\r\n", 1000)
        data[offset] = ord("X")
        self.log_file(daemon).write_bytes(data)
        daemon.spawn()
        self.assertEqual(1, daemon.wait())
        self.assertIn(f"is damaged at offset {offset}", daemon.log())
        self.assertEqual(bytes(data), self.log_file(daemon).read_bytes())


class LoadingTests(DaemonTestCase):
    """A log that takes a while to load."""

    def test_loading(self) -> None:
        """While loading, clients receive an error that asks them to wait, and INFO shows the
        progress; at the end all jobs are there."""
        daemon = self.running("appendonly yes", "appendfsync no")
        client = daemon.client()
        for _ in range(20):
            add_many(client, 5000)
        self.assertEqual(0, daemon.terminate())
        daemon.spawn()
        client = wait_for(lambda: connected(daemon), "the daemon listens")
        self.assertEqual("LOADING Disque is loading the dataset in memory", client.error("PING"))
        text = client.call("INFO", "persistence").decode()
        self.assertIn("loading:1\r\n", text)
        self.assertIn("aof_state:off\r\n", text)
        progress = re.search(r"loading_loaded_perc:(\d+\.\d\d)\r", text)
        self.assertIsNotNone(progress)
        wait_for(lambda: client.error("PING") == "PONG", "everything is loaded", 60)
        self.assertIn(b"registered_jobs:100000\r\n", client.call("INFO", "jobs"))

    def test_sigterm_while_loading(self) -> None:
        """An operator can stop a start that takes too long, without damage to the log."""
        daemon = self.running("appendonly yes", "appendfsync no")
        client = daemon.client()
        for _ in range(10):
            add_many(client, 5000)
        daemon.terminate()
        size = (daemon.folder / "disque.aof").stat().st_size
        daemon.spawn()
        client = wait_for(lambda: connected(daemon), "the daemon listens")
        self.assertEqual("LOADING", client.error("PING")[:7])
        self.assertEqual(0, daemon.terminate())
        self.assertEqual(size, (daemon.folder / "disque.aof").stat().st_size)


def connected(daemon: Daemon) -> Connection | None:
    """A connection, if the daemon already listens."""
    try:
        return daemon.client()
    except OSError:
        return None


def jscan(name: str) -> Any:
    """A recorded state of the original."""
    return json.loads((VECTORS / "aof" / name).read_text())
