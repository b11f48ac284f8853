"""Acknowledged jobs survive whatever happens to the process."""

from __future__ import annotations

import contextlib
import random
import resource
import signal
import threading
import time

from tests.acceptance.daemon import Daemon, DaemonTestCase, wait_for
from tests.acceptance.disque import disque
from tests.acceptance.load import GONE, Load, add_many, job_ids, shown
from tests.acceptance.resp import Connection, encode

_ROUNDS = 4
_ALWAYS = ("appendonly yes", "appendfsync always", "auto-aof-rewrite-percentage 0")


def first_few(ids: set[str]) -> set[str]:
    """A few elements of a set, enough for a message of a failed test."""
    return set(sorted(ids)[:5])


class CrashTests(DaemonTestCase):
    """The process is killed at any moment, with ``appendfsync always``."""

    def test_killed_under_load(self) -> None:
        """No accepted job is lost, no job with RETRY 0 is delivered twice, and no acknowledged job
        is delivered again."""
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
        self.assertEqual(set(), first_few(never - kept), "neither delivered nor kept")
        self.assertEqual(set(), first_few(load.added - load.once - kept - load.ack_sent), "lost")
        self.assertEqual(set(), first_few(load.acked & kept), "acknowledged but still kept")
        self._drain(load, client)
        often = load.added - load.once
        self.assertEqual(
            set(), first_few(often - load.ack_sent - set(load.delivered)), "not delivered"
        )
        twice = {i for i in load.once if load.delivered.get(i, 0) > 1}
        self.assertEqual(set(), first_few(twice), "at most once, delivered twice")
        self.assertEqual(set(), first_few(load.redelivered), "acknowledged and delivered again")
        self.assertGreater(len(load.added), 50)
        self.assertGreater(len(load.acked), 5)

    def _drain(self, load: Load, client: Connection) -> None:
        """Fetch and acknowledge jobs until none has been delivered for three times RETRY."""
        deadline_s = time.monotonic() + 3
        while time.monotonic() < deadline_s:
            ids = load.fetch(client, 1000)
            if ids:
                client.call("ACKJOB", *ids)
                deadline_s = time.monotonic() + 3

    def test_delayed_at_most_once(self) -> None:
        """A job with RETRY 0 whose delay is interrupted by a crash is delivered once; after the
        restart the delay starts again."""
        daemon = self.daemon(*_ALWAYS).start()
        job_id = daemon.client().call("ADDJOB", "q", "b", 0, "RETRY", 0, "DELAY", 15)
        daemon.kill()
        client = daemon.start().client()
        self.assertIsNone(client.call("GETJOB", "NOHANG", "FROM", "q"))
        self.assertEqual(
            [[b"q", job_id.encode(), b"b"]], client.call("GETJOB", "TIMEOUT", 60000, "FROM", "q")
        )
        daemon.kill()
        client = daemon.start().client()
        self.assertIsNone(client.call("GETJOB", "TIMEOUT", 500, "FROM", "q"))

    def fill_disk(self, daemon: Daemon) -> Connection:
        """Return a client of a daemon whose log cannot grow any more."""
        client = daemon.start().client()
        client.call("ADDJOB", "q", bytes(50_000), 0)
        size = (daemon.folder / "disque.aof").stat().st_size
        self.limit_files(daemon, size + 10)
        return client

    def limit_files(self, daemon: Daemon, size_bytes: int) -> None:
        """Limit the size of all files that the daemon writes."""
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
        """With ``everysec`` the daemon continues, and refuses jobs that it could not write."""
        daemon = self.daemon("appendonly yes", "appendfsync everysec")
        client = self.fill_disk(daemon)
        client.call("ADDJOB", "q", "b", 0)
        error = "MISCONF Errors writing to the AOF file: File too large"
        wait_for(lambda: client.error("PING") == error, "the error is reported")
        self.assertEqual(error, client.error("ADDJOB", "q", "b", 0))
        self.assertEqual(2, client.call("QLEN", "q"))
        self.limit_files(daemon, 1 << 30)
        wait_for(lambda: client.error("PING") == "PONG", "there is room again")
        self.assertEqual(0, daemon.terminate())
        self.assertEqual(2, len(job_ids(daemon.start().client())))


class OrderlyStopTests(DaemonTestCase):
    """SIGTERM and SHUTDOWN lose no job, with any fsync policy."""

    def test_sigterm(self) -> None:
        """Jobs that were acknowledged just before SIGTERM are there after the restart."""
        daemon = self.running("appendonly yes", "appendfsync everysec")
        ids = add_many(daemon.client(), 3000)
        self.assertEqual(0, daemon.terminate())
        self.assertEqual(set(ids), job_ids(daemon.start().client()))

    def test_plain_restart(self) -> None:
        """After SIGTERM and a start every queue is as it was, at once; after kill -9 the jobs are
        counted, and can be flushed."""
        daemon = self.running("appendonly yes", "appendfsync everysec")
        client = daemon.client()
        often = add_many(client, 20, "often")
        once = add_many(client, 20, "once", "RETRY", "0")
        client.call("GETJOB", "COUNT", "2", "FROM", "once")
        for _ in range(2):
            self.assertEqual(0, daemon.terminate())
            client = daemon.start().client()
            for queue, ids in (("often", often), ("once", once[2:])):
                peeked = [job[1].decode() for job in client.call("QPEEK", queue, 99)]
                self.assertEqual(ids, peeked)
        daemon.kill()
        client = daemon.start().client()
        for queue, loaded in (("often", 20), ("once", 20)):
            counts = client.call("QCOUNT", queue)
            counted = dict(zip(counts[::2], counts[1::2], strict=True))
            self.assertEqual((0, loaded), (counted[b"queued"], counted[b"loaded"]))
            self.assertEqual(loaded, client.call("QFLUSH", queue, "STATE", "loaded"))
        self.assertEqual(set(), job_ids(client))

    def test_paused(self) -> None:
        """A queue that somebody paused stays paused over a crash, and it is known who did that."""
        daemon = self.running("appendonly yes", in_file=True)
        client = daemon.client()
        client.call("CLIENT", "SETNAME", "ann")
        self.assertEqual("in", client.call("PAUSE", "q", "in"))
        daemon.kill()
        client = daemon.start().client()
        self.assertEqual("in", client.call("PAUSE", "q", "state"))
        told = client.call("QSTAT", "q", "WITHPAUSE")
        found = dict(zip(told[::2], told[1::2], strict=True))
        self.assertTrue(found[b"paused-by"].endswith(b" ann"), found)
        self.assertLess(found[b"age"], 100)
        self.assertGreater(found[b"paused-at"], 1_700_000_000)

    def test_dead_letters(self) -> None:
        """Dead letters are listed and requeued right after a crash, long before their RETRY."""
        daemon = self.running("appendonly yes", "appendfsync always", in_file=True)
        client = daemon.client()
        client.call("QPOLICY", "SET", "q", "max-deliveries", "1")
        (job_id,) = add_many(client, 1, "q")
        client.call("GETJOB", "FROM", "q")
        client.call("NACK", job_id)
        daemon.kill()
        client = daemon.start().client()
        port = str(daemon.port)
        self.assertEqual(0, client.call("QLEN", "dead:q"))
        for words in (("dead", "list"), ("dead", "show", job_id, "--queue", "dead:q")):
            status, output, _ = disque("-p", port, *words)
            self.assertEqual((0, True), (status, job_id in output), output)
        requeued = disque("-p", port, "dead", "requeue", "--all", "--yes")
        self.assertEqual((0, "1 requeued\n"), requeued[:2])
        self.assertEqual(1, client.call("QLEN", "q"))

    def test_pipelined_before_shutdown(self) -> None:
        """Jobs added in the same write as SHUTDOWN are there after the restart."""
        daemon = self.running("appendonly yes", "appendfsync no")
        daemon.client().send_raw(encode("ADDJOB", "q", "b", 0) * 10 + encode("SHUTDOWN"))
        self.assertEqual(0, daemon.wait())
        self.assertEqual(10, len(job_ids(daemon.start().client())))

    def test_upgrade(self) -> None:
        """The documented steps of an upgrade keep every queue, even without a permanent log."""
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
        """When jobs are to be loaded from a log that does not exist, the start fails instead of
        losing them."""
        daemon = self.daemon("aof-enqueue-jobs-once yes")
        daemon.spawn()
        self.assertEqual(1, daemon.wait())
        self.assertIn("aof-enqueue-jobs-once", daemon.log())


class RewriteTests(DaemonTestCase):
    """The log is rewritten while the daemon works."""

    def test_under_load(self) -> None:
        """BGREWRITEAOF loses neither jobs added before it nor jobs added during it."""
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
        wait_for(lambda: daemon.info()["aof_rewrite_in_progress"] == "0", "the rewrite is finished")
        self.assertEqual("ok", daemon.info()["aof_last_bgrewrite_status"])
        daemon.kill()
        stop.set()
        thread.join()
        client = daemon.start().client()
        self.assertEqual(set(), {*before, *during} - set(gone) - job_ids(client))
        self.assertEqual(set(), set(gone) & job_ids(client))

    def test_switched_at_run_time(self) -> None:
        """CONFIG SET appendonly starts a log with all existing jobs, and ends it."""
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
        """A crash during a rewrite does not damage the log."""
        daemon = self.running(*_ALWAYS)
        client = daemon.client()
        ids = add_many(client, 20_000)
        client.call("BGREWRITEAOF")
        daemon.terminate(signal.SIGKILL)
        self.assertEqual(set(ids), job_ids(daemon.start().client()))


class FolderTests(DaemonTestCase):
    """Nodes that share a folder, and people who delete files in it."""

    def test_two_nodes(self) -> None:
        """A second node with the same ``dir`` and its own nodes file does not start, and does not
        harm the first one."""
        first = self.daemon(*_ALWAYS).start()
        job_id = first.client().call("ADDJOB", "q", "b", 0)
        for _ in range(2):
            second = self.daemon(*_ALWAYS, "cluster-config-file other.conf", folder=first.folder)
            second.spawn()
            self.assertEqual(1, second.wait())
            self.assertIn("disque.aof is in use by another node. Give every", second.log())
            first.client().call("BGREWRITEAOF")
            wait_for(
                lambda: first.info()["aof_rewrite_in_progress"] == "0", "the rewrite is finished"
            )
        first.kill()
        self.assertEqual({str(job_id)}, job_ids(first.start().client()))

    def test_log_removed(self) -> None:
        """When somebody removes the log, the daemon notices and soon writes it again, with all
        jobs."""
        daemon = self.daemon(*_ALWAYS).start()
        job_id = daemon.client().call("ADDJOB", "q", "b", 0)
        log = daemon.folder / "disque.aof"
        log.unlink()
        wait_for(log.exists, "the log exists again")
        wait_for(lambda: daemon.info()["aof_last_write_status"] == "ok", "writing works again")
        self.assertIn("was removed, moved or replaced", daemon.log())
        daemon.kill()
        self.assertEqual({str(job_id)}, job_ids(daemon.start().client()))
