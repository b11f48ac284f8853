"""What was acknowledged is still there, whatever happens to the process."""

from __future__ import annotations

import contextlib
import json
import random
import re
import resource
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any

from tests.acceptance.daemon import Daemon, DaemonTestCase, wait_for
from tests.acceptance.load import GONE, Load
from tests.acceptance.resp import Connection, encode

VECTORS = Path(__file__).resolve().parents[1] / "vectors"
_ROUNDS = 4
_ALWAYS = ("appendonly yes", "appendfsync always", "auto-aof-rewrite-percentage 0")


def add_many(connection: Connection, count: int, queue: str = "q", *options: str) -> list[str]:
    """Add jobs in one go; returns their IDs."""
    connection.send_raw(
        b"".join(encode("ADDJOB", queue, f"body {n}", 0, *options) for n in range(count))
    )
    return [str(connection.read()) for _ in range(count)]


def job_ids(connection: Connection) -> set[str]:
    """All jobs the daemon knows."""
    return set(connection.call("JSCAN", 0, "BUSYLOOP")[1])


def some(ids: set[str]) -> set[str]:
    """Enough of a set to see what went wrong."""
    return set(sorted(ids)[:5])


def shown(connection: Connection, job_id: str) -> dict[bytes, Any]:
    """SHOW as a mapping."""
    flat = connection.call("SHOW", job_id)
    return dict(zip(flat[::2], flat[1::2], strict=True))


class CrashTests(DaemonTestCase):
    """kill -9 at any moment, ``appendfsync always``."""

    def test_killed_under_load(self) -> None:
        """Nothing accepted is lost, nothing with RETRY 0 comes twice, nothing acked comes back."""
        daemon = self.daemon(*_ALWAYS)
        load = Load(lambda: Connection(("127.0.0.1", daemon.port)))
        for _ in range(_ROUNDS):
            daemon.start()
            load.begin(producers=3, consumers=2)
            time.sleep(random.uniform(0.3, 1.0))
            daemon.kill()
            load.end()
        daemon.start()
        client = daemon.client()
        kept = job_ids(client)
        never = load.added - set(load.delivered)
        self.assertEqual(set(), some(never - kept), "neither delivered nor there")
        self.assertEqual(set(), some(load.added - load.once - kept - load.asked), "gone")
        self.assertEqual(set(), some(load.acked & kept), "acknowledged and still there")
        self._drain(load, client)
        often = load.added - load.once
        self.assertEqual(set(), some(often - load.asked - set(load.delivered)), "not delivered")
        twice = {i for i in load.once if load.delivered.get(i, 0) > 1}
        self.assertEqual(set(), some(twice), "at most once, delivered twice")
        self.assertEqual(set(), some(load.revived), "acknowledged and delivered again")
        self.assertGreater(len(load.added), 500)
        self.assertGreater(len(load.acked), 50)

    def _drain(self, load: Load, client: Connection) -> None:
        """Take and acknowledge what is delivered, until nothing has come for three times RETRY."""
        deadline_s = time.monotonic() + 3
        while time.monotonic() < deadline_s:
            ids = load.fetch(client, 1000)
            if ids:
                client.call("ACKJOB", *ids)
                deadline_s = time.monotonic() + 3

    def test_delayed_at_most_once(self) -> None:
        """A RETRY 0 job whose delay a crash interrupts is delivered once, when it is due (J36)."""
        daemon = self.daemon(*_ALWAYS).start()
        job_id = daemon.client().call("ADDJOB", "q", "b", 0, "RETRY", 0, "DELAY", 2)
        daemon.kill()
        client = daemon.start().client()
        self.assertIsNone(client.call("GETJOB", "NOHANG", "FROM", "q"))
        self.assertEqual(
            [[b"q", job_id.encode(), b"b"]], client.call("GETJOB", "TIMEOUT", 5000, "FROM", "q")
        )
        daemon.kill()
        client = daemon.start().client()
        self.assertIsNone(client.call("GETJOB", "TIMEOUT", 500, "FROM", "q"))

    def fill_disk(self, daemon: Daemon) -> Connection:
        """A client of a daemon whose log cannot grow any more."""
        client = daemon.start().client()
        client.call("ADDJOB", "q", bytes(50_000), 0)
        size = (daemon.folder / "disque.aof").stat().st_size
        self.limit_files(daemon, size + 10)
        return client

    def limit_files(self, daemon: Daemon, size_bytes: int) -> None:
        """Let no file of the daemon grow larger."""
        _soft, hard = resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (size_bytes, hard))

    def test_full_disk(self) -> None:
        """With ``always``, what cannot be written is not acknowledged, and the process ends."""
        daemon = self.daemon(*_ALWAYS)
        client = self.fill_disk(daemon)
        client.send("ADDJOB", "q", "b", 0)
        self.assertRaises(GONE, client.read)
        self.assertEqual(1, daemon.wait())
        self.assertIn("File too large", daemon.log())
        self.assertEqual(1, len(job_ids(daemon.start().client())))

    def test_full_disk_everysec(self) -> None:
        """With ``everysec`` the daemon lives, and refuses what it could not keep."""
        daemon = self.daemon("appendonly yes", "appendfsync everysec")
        client = self.fill_disk(daemon)
        client.call("ADDJOB", "q", "b", 0)
        error = "MISCONF Errors writing to the AOF file: File too large"
        wait_for(lambda: client.error("PING") == error, "the error shows")
        self.assertEqual(error, client.error("ADDJOB", "q", "b", 0))
        self.assertEqual(2, client.call("QLEN", "q"))
        self.limit_files(daemon, 1 << 30)
        wait_for(lambda: client.error("PING") == "PONG", "there is room again")
        self.assertEqual(0, daemon.terminate())
        self.assertEqual(2, len(job_ids(daemon.start().client())))


class OrderlyStopTests(DaemonTestCase):
    """SIGTERM and SHUTDOWN lose nothing, whatever the policy (J30)."""

    def test_sigterm(self) -> None:
        """Jobs that were acknowledged a moment before SIGTERM are there afterwards."""
        daemon = self.running("appendonly yes", "appendfsync everysec")
        ids = add_many(daemon.client(), 3000)
        self.assertEqual(0, daemon.terminate())
        self.assertEqual(set(ids), job_ids(daemon.start().client()))

    def test_pipelined_before_shutdown(self) -> None:
        """Jobs added in the same write as SHUTDOWN are there afterwards."""
        daemon = self.running("appendonly yes", "appendfsync no")
        daemon.client().send_raw(encode("ADDJOB", "q", "b", 0) * 10 + encode("SHUTDOWN"))
        self.assertEqual(0, daemon.wait())
        self.assertEqual(10, len(job_ids(daemon.start().client())))

    def test_upgrade(self) -> None:
        """The operators' recipe for an upgrade keeps every queue as it was, without a log."""
        daemon = self.running(in_file=True)
        client = daemon.client()
        often = add_many(client, 5, "often")
        once = add_many(client, 3, "once", "RETRY", "0")
        delayed = add_many(client, 1, "late", "DELAY", "1000")
        fetched = add_many(client, 1, "fetched")
        client.call("GETJOB", "FROM", "fetched")
        client.call("ACKJOB", *add_many(client, 1, "acked"))
        client.call("CONFIG", "SET", "aof-enqueue-jobs-once", "yes")
        client.call("CONFIG", "REWRITE")
        self.assertIn("aof-enqueue-jobs-once yes", daemon.config.read_text())
        client.send("SHUTDOWN", "REWRITE-AOF")
        self.assertEqual(0, daemon.wait())

        client = daemon.start().client()
        self.assertNotIn("aof-enqueue-jobs-once yes", daemon.config.read_text())
        self.assertEqual({*often, *once, *delayed, *fetched}, job_ids(client))
        for queue, ids in (("often", often), ("once", once), ("late", []), ("fetched", [])):
            self.assertEqual(
                ids, [job[1].decode() for job in client.call("QPEEK", queue, 10)], queue
            )
        for job_id in often + once:
            self.assertEqual(0, shown(client, job_id)[b"additional-deliveries"])
        self.assertEqual(
            [b"aof-enqueue-jobs-once", b"no"], client.call("CONFIG", "GET", "aof-enqueue*")
        )

    def test_enqueue_once_without_a_file(self) -> None:
        """A missing log is not taken for an empty one when its jobs were asked for."""
        daemon = self.daemon("aof-enqueue-jobs-once yes")
        daemon.spawn()
        self.assertEqual(1, daemon.wait())
        self.assertIn("aof-enqueue-jobs-once", daemon.log())


class OriginalFilesTests(DaemonTestCase):
    """Files that Disque 1.0-rc1 wrote, and damaged ones."""

    def original(self, *directives: str) -> Daemon:
        """A daemon in a folder that a node of the original left behind."""
        daemon = self.daemon("appendonly yes", *directives)
        shutil.copy(VECTORS / "aof" / "node0.aof", daemon.folder / "disque.aof")
        shutil.copy(VECTORS / "nodes-conf" / "nodes-node0.conf", daemon.folder / "nodes.conf")
        return daemon

    def log_file(self, daemon: Daemon) -> Path:
        """The daemon's log."""
        return daemon.folder / "disque.aof"

    def test_takes_over(self) -> None:
        """A node of the original is replaced by this daemon in its folder, with all its jobs."""
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
        """A record that a crash cut short is removed from the log, and kept beside it."""
        daemon = self.original()
        path = self.log_file(daemon)
        with path.open("r+b") as file:
            file.truncate(3693)
        tail = path.read_bytes()[3640:]
        self.assertEqual("12", daemon.start().info()["registered_jobs"])
        self.assertEqual(3640, path.stat().st_size)
        self.assertEqual(tail, path.with_name("disque.aof.cut-3640").read_bytes())

    def test_torn_tail_refused(self) -> None:
        """``aof-load-truncated no`` leaves the decision to the operator."""
        daemon = self.original("aof-load-truncated no")
        with self.log_file(daemon).open("r+b") as file:
            file.truncate(3693)
        daemon.spawn()
        self.assertEqual(1, daemon.wait())
        self.assertIn("3640", daemon.log())
        self.assertEqual(3693, self.log_file(daemon).stat().st_size)

    def test_damage(self) -> None:
        """Damage in the middle is no torn tail: the start is refused, and the place is named."""
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
        """Clients are told to wait, INFO shows the progress, and everything is there at the end."""
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
        """A start that takes too long for the operator is broken off, without harm to the log."""
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


class RewriteTests(DaemonTestCase):
    """The log is replaced while the daemon works."""

    def test_under_load(self) -> None:
        """BGREWRITEAOF loses neither what came before it nor what came meanwhile."""
        daemon = self.running(*_ALWAYS)
        client = daemon.client()
        before = add_many(client, 20_000)
        during: list[str] = []
        stop = threading.Event()

        def add() -> None:
            adder = daemon.client()
            with contextlib.suppress(*GONE):
                while not stop.is_set():
                    during.extend(add_many(adder, 50))

        thread = threading.Thread(target=add)
        thread.start()
        self.addCleanup(stop.set)
        gone = [job[1].decode() for job in client.call("GETJOB", "COUNT", 500, "FROM", "q")]
        self.assertEqual(
            "Background append only file rewriting started", client.call("BGREWRITEAOF")
        )
        self.assertEqual(500, client.call("ACKJOB", *gone))
        wait_for(lambda: daemon.info()["aof_rewrite_in_progress"] == "0", "it is rewritten")
        self.assertEqual("ok", daemon.info()["aof_last_bgrewrite_status"])
        daemon.kill()
        stop.set()
        thread.join()
        client = daemon.start().client()
        self.assertEqual(set(), {*before, *during} - set(gone) - job_ids(client))
        self.assertEqual(set(), set(gone) & job_ids(client))

    def test_switched_at_run_time(self) -> None:
        """CONFIG SET appendonly begins and ends a log that holds what there is."""
        daemon = self.running("appendfsync always", in_file=True)
        client = daemon.client()
        ids = add_many(client, 100)
        self.assertEqual("OK", client.call("CONFIG", "SET", "appendonly", "yes"))
        ids += add_many(client, 100)
        wait_for(lambda: daemon.info()["aof_state"] == "on", "the first log is written")
        client.call("CONFIG", "REWRITE")
        daemon.kill()
        client = daemon.start().client()
        self.assertEqual(set(ids), job_ids(client))
        self.assertEqual("OK", client.call("CONFIG", "SET", "appendonly", "no"))
        self.assertEqual([b"appendonly", b"no"], client.call("CONFIG", "GET", "appendonly"))
        add_many(client, 100)
        daemon.kill()
        self.assertEqual(set(ids), job_ids(daemon.start().client()))

    def test_interrupted(self) -> None:
        """A rewrite that a crash interrupts does no harm to the log."""
        daemon = self.running(*_ALWAYS)
        client = daemon.client()
        ids = add_many(client, 20_000)
        client.call("BGREWRITEAOF")
        daemon.terminate(signal.SIGKILL)
        self.assertEqual(set(ids), job_ids(daemon.start().client()))


def connected(daemon: Daemon) -> Connection | None:
    """A connection, if the daemon listens already."""
    try:
        return daemon.client()
    except OSError:
        return None


def jscan(name: str) -> Any:
    """A recorded state of the original."""
    return json.loads((VECTORS / "aof" / name).read_text())
