"""Loading the log: files of the original, damaged files, and how long it takes."""

from __future__ import annotations

import errno
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.jobs.job import Job
from disque_tx.engine.aof.loader import SLICE_S
from disque_tx.errors import ConfigError
from disque_tx.messages.records import QUEUED, STATE_NAMES
from disque_tx.services.machine.memoryfiles import MemoryFiles
from disque_tx.wire.files.aof import load_record
from tests.engine.aof.bench import PATH, WALL_US, Bench, loaded, settings, vector, vector_json


class SteppingTime:
    """A clock that advances by the same time at every reading."""

    def __init__(self, step_s: float) -> None:
        self.now_s = 0.0
        self.step_s = step_s

    def __call__(self) -> float:
        self.now_s += self.step_s
        return self.now_s


def seen(bench: Bench) -> dict[str, dict[str, Any]]:
    """The jobs in the form of JSCAN in the vectors, without volatile fields."""
    return {job.id.decode(): _shown(job) for job in bench.node.jobs.table.values()}


def _shown(job: Job) -> dict[str, Any]:
    return {
        "queue": job.queue.decode(),
        "state": STATE_NAMES[job.state].decode(),
        "repl": job.repl,
        "ctime": job.ctime,
        "delay": job.delay_s,
        "retry": job.retry_s,
        "nacks": job.nacks,
        "additional-deliveries": job.deliveries,
        "nodes-delivered": sorted(node.decode() for node in job.nodes),
        "body": job.body,
    }


def expected(name: str) -> dict[str, dict[str, Any]]:
    """What the original showed after loading."""
    jobs = {}
    for row in vector_json(name)["after_load"]["jobs"]:
        body = row["body"]
        raw = bytes.fromhex(body["hex"]) if isinstance(body, dict) else body.encode()
        shown = {key: value for key, value in row.items() if key in _KEYS}
        shown["nodes-delivered"] = sorted(row["nodes-delivered"])
        jobs[row["id"]] = {**shown, "body": raw}
    return jobs


_KEYS = _shown(Job(b"", b"", b"", (), 0, 0, delay_s=0, retry_s=0, repl=0)).keys()


class OriginalFilesTests(SynchronousTestCase):
    """A node takes over the files of an original."""

    def test_loaded(self) -> None:
        """After a restart the jobs are as the original would have them."""
        bench = loaded(vector("aof/node0.aof"))
        self.assertEqual(expected("aof/jscan-loaded.json"), seen(bench))

    def test_own_requeue_times(self) -> None:
        """RETRY and DELAY count from the load: at-most-once jobs whose DELAY has not ended are
        delivered, others that may have been delivered are not."""
        bench = loaded(vector("aof/node0.aof"))
        labels = vector_json("aof/jscan-loaded.json")["labels"]

        def due_s(label: str) -> int:
            job = bench.node.jobs.get(labels[label].encode())
            assert job is not None
            return round((job.qtime_ms - bench.now_ms) / 1000) if job.qtime_ms else -1

        self.assertAlmostEqual(300, due_s("plain"), delta=1)
        self.assertEqual(7200, due_s("delay"))
        self.assertEqual(3600, due_s("retry0_delay"))
        self.assertEqual(-1, due_s("retry0"))
        self.assertEqual(-1, due_s("fetched_retry0"))

    def test_enqueued_once(self) -> None:
        """With ``aof-enqueue-jobs-once`` jobs that were queued are queued again, without counting a
        delivery, at-most-once jobs as well."""
        bench = loaded(vector("aof/node0.aof"), aof_enqueue_jobs_once=True, appendonly=False)
        wanted = expected("aof/jscan-loaded-enqueue-once.json")
        labels = vector_json("aof/jscan-loaded.json")["labels"]
        for job in wanted.values():
            job["additional-deliveries"] = 0
        for label in ("retry0", "fetched_retry0"):
            wanted[labels[label]]["state"] = "queued"
        self.assertEqual(wanted, seen(bench))
        self.assertTrue(bench.aof.loaded_once)

    def test_rewritten(self) -> None:
        """A file that the original rewrote is loaded the same way; an at-most-once job that was
        marked as delivered is not queued."""
        content = vector("aof/node0-bgrewrite.aof")
        bench = loaded(content, aof_enqueue_jobs_once=True)
        wanted = expected("aof/jscan-loaded-rewritten-enqueue-once.json")
        labels = vector_json("aof/jscan-loaded.json")["labels"]
        for job in wanted.values():
            job["additional-deliveries"] = 0
        wanted[labels["retry0"]]["state"] = "queued"
        self.assertEqual(wanted, seen(bench))

    def test_shutdown_rewrite(self) -> None:
        """The procedure for upgrading from the original keeps the queues, including at-most-once
        jobs."""
        content = vector("aof/shutdown-rewrite.aof")
        bench = loaded(content, aof_enqueue_jobs_once=True, appendonly=False)
        wanted = expected("aof/jscan-shutdown-rewrite-enqueue-once.json")
        labels = vector_json("aof/jscan-shutdown-rewrite-enqueue-once.json")["labels"]
        for job in wanted.values():
            job["additional-deliveries"] = 0
        wanted[labels["queued_retry0"]]["state"] = "queued"
        self.assertEqual(wanted, seen(bench))

    def test_every_node(self) -> None:
        """The files of all nodes of a cluster contain the jobs that no record marks as ended."""
        for name in ("node1", "node2"):
            bench = loaded(vector(f"aof/{name}.aof"))
            alive: set[str] = set()
            for row in vector_json(f"aof/{name}.aof.json"):
                if row["command"] == "LOADJOB":
                    alive.add(row["job"]["id"])
                else:
                    alive.discard(row["args"][0])
            self.assertEqual(alive, set(seen(bench)))


class CaseTests(SynchronousTestCase):
    """Damaged and unusual files, and how the original treated them."""

    #: The original executes any command in its file; here it counts as damage
    #: (cluster protocol, section 14.6).
    stricter = ("ping_command",)

    def content(self, edit: dict[str, Any]) -> bytes:
        data = vector("aof/node0.aof")
        data = data[: edit.get("truncate_to", len(data))]
        at = edit.get("insert_at", len(data))
        data = data[:at] + bytes.fromhex(edit.get("insert_hex", "")) + data[at:]
        return data + bytes.fromhex(edit.get("append_hex", ""))

    def test_cases(self) -> None:
        """Each case is loaded, truncated, or refused, as by the original."""
        for case in vector_json("aof/aof-cases.json")["cases"]:
            name, load = case["name"], case["load"]
            content = self.content(case["edit"])
            self.assertEqual(case["size"], len(content), name)
            bench = Bench(MemoryFiles(), settings())
            bench.files.replace(PATH, content)
            done = bench.start()
            if load["exit_code"] == 1 or name in self.stricter:
                self.failureResultOf(done, ConfigError)
                self.assertEqual(content, bench.files.open(PATH).read(0, 10_000), name)
                continue
            self.successResultOf(done)
            self.assertEqual(load["registered_jobs"], len(bench.node.jobs), name)
            self.assertEqual(load["file_size_after"], bench.files.open(PATH).size(), name)

    def test_tail_is_kept(self) -> None:
        """The removed tail is kept in a file, so that an operator can see what was lost."""
        whole = vector("aof/node0.aof")
        files = MemoryFiles()
        files.put(PATH, whole[:3693])
        bench = Bench(files, settings())
        self.successResultOf(bench.start())
        files.crash()
        self.assertEqual(whole[:3640], files.content(PATH))
        self.assertEqual(whole[3640:3693], files.content(PATH + ".cut-3640"))

    def test_cut_is_not_durable(self) -> None:
        """As long as the cut may come undone nobody is told that the file was cut, and the start
        fails; the tail is there already."""

        class Failing(MemoryFiles):
            """A disk that fails after the first sync of a folder."""

            def sync_folder(self, path: str) -> None:
                super().sync_folder(path)
                self.sync_error = errno.EIO

        whole = vector("aof/node0.aof")
        files = Failing()
        files.put(PATH, whole[:3693])
        bench = Bench(files, settings())
        error = self.failureResultOf(bench.start(), ConfigError).value
        self.assertEqual(
            f"The append only file {PATH} can't be read or repaired: Input/output error. Check the"
            " disk.",
            str(error),
        )
        self.assertEqual([], [line for line in bench.log.lines if "cut" in line])
        self.assertEqual(whole[3640:3693], files.content(PATH + ".cut-3640"))

    def test_tail_cannot_be_kept(self) -> None:
        """While there is no room for the tail the log stays as it is, however often the node is
        started: what an operator could still read in it is not lost."""
        whole = vector("aof/node0.aof")[:3693]
        files = MemoryFiles()
        files.put(PATH, whole)
        for _ in range(2):
            files.room_bytes = 10
            self.failureResultOf(Bench(files, settings()).start(), ConfigError)
            self.assertEqual(whole, files.content(PATH))
            self.assertEqual(0, files.open_files)
        files.room_bytes = -1
        self.successResultOf(Bench(files, settings()).start())
        self.assertEqual(whole[3640:], files.content(PATH + ".cut-3640"))

    def test_no_cut_without_permission(self) -> None:
        """With ``aof-load-truncated no`` the file is not changed, and the error says how to
        truncate it."""
        bench = loaded(vector("aof/node0.aof")[:3693])
        bench = Bench(MemoryFiles(), settings(aof_load_truncated=False))
        bench.files.replace(PATH, vector("aof/node0.aof")[:3693])
        error = self.failureResultOf(bench.start(), ConfigError).value
        self.assertEqual(
            f"The append only file {PATH} ends within the record at offset 3640. Make a copy of"
            f" it, then run 'disque-check-aof --fix {PATH}', or set 'aof-load-truncated yes', and"
            " start again.",
            str(error),
        )

    def test_damage_is_named(self) -> None:
        """The error names the file, the offset, and what to do."""
        bench = Bench(MemoryFiles(), settings())
        bench.files.replace(PATH, vector("aof/node0.aof") + b"\0")
        error = self.failureResultOf(bench.start(), ConfigError).value
        self.assertEqual(
            f"Bad file format: the append only file {PATH} is damaged at offset 3703: expected"
            " '*', found '\\x00' in the record at offset 3703. Make a copy of it, then run"
            f" 'disque-check-aof --fix {PATH}' and start again.",
            str(error),
        )
        self.assertFalse(bench.aof.loading)

    def test_wrong_length_is_no_tail(self) -> None:
        """One flipped digit must not discard every job after it."""
        content = vector("aof/node0.aof").replace(b"$138\r\n", b"$9138\r\n", 1)
        self.assertNotEqual(vector("aof/node0.aof"), content)
        files = MemoryFiles()
        files.put(PATH, content)
        error = self.failureResultOf(Bench(files, settings()).start(), ConfigError).value
        self.assertEqual(
            f"Bad file format: the append only file {PATH} is damaged at offset 0: the record is"
            " incomplete, but others follow it. Make a copy of it, then run 'disque-check-aof --fix"
            f" {PATH}' and start again.",
            str(error),
        )
        self.assertEqual(content, files.content(PATH))

    def test_arguments_are_counted(self) -> None:
        """A record with too many or too few arguments is damaged."""
        for record in (b"*1\r\n$7\r\nLOADJOB\r\n", b"*3\r\n$6\r\nDELJOB\r\n$1\r\na\r\n$1\r\nb\r\n"):
            bench = Bench(MemoryFiles(), settings())
            bench.files.replace(PATH, record)
            self.failureResultOf(bench.start(), ConfigError)


class StartTests(SynchronousTestCase):
    """Which file is loaded, and when."""

    def test_off(self) -> None:
        """With the log disabled no file is read, created or written."""
        files = MemoryFiles()
        files.put(PATH, b"not looked at")
        bench = Bench(files, settings(appendonly=False))
        self.successResultOf(bench.start())
        bench.turn(bench.add)
        self.assertEqual(b"not looked at", files.content(PATH))

    def test_new(self) -> None:
        """The first start creates the file durably."""
        files = MemoryFiles()
        bench = Bench(files, settings())
        self.successResultOf(bench.start())
        files.crash()
        self.assertEqual([PATH], files.paths())

    def test_name_is_not_durable(self) -> None:
        """A new log whose name may be lost by a crash is not used: the start fails, says why, and
        holds nothing of it."""
        files = MemoryFiles()
        files.sync_error = errno.EIO
        error = self.failureResultOf(Bench(files, settings()).start(), ConfigError).value
        self.assertEqual(
            f"Can't open the append only file {PATH}: Input/output error. Check 'dir' and"
            " 'appendfilename'; 'aof-enqueue-jobs-once yes' needs a file to load.",
            str(error),
        )
        self.assertEqual(0, files.open_files)
        files.sync_error = 0
        self.successResultOf(Bench(files, settings()).start())

    def test_nothing_to_enqueue(self) -> None:
        """If jobs are to be enqueued from a file that is missing, the start fails, whether the log
        is enabled or not."""
        for appendonly in (True, False):
            files = MemoryFiles()
            bench = Bench(files, settings(aof_enqueue_jobs_once=True, appendonly=appendonly))
            error = self.failureResultOf(bench.start(), ConfigError).value
            self.assertIn(f"Can't open the append only file {PATH}: No such file", str(error))
            self.assertEqual([], files.paths())

    def test_duration(self) -> None:
        """The log says how long it took, and of how many jobs, on a machine that runs for long."""
        source = loaded(b"")
        source.begin()
        job = source.node.jobs.get(source.add())
        assert job is not None
        files = MemoryFiles()
        files.put(PATH, load_record(job))
        bench = Bench(files, settings(), lambda: 1_000_000.0)
        self.successResultOf(bench.start())
        line = "DB loaded from append only file: 0.000 seconds, 1 job"
        self.assertTrue(any(line in text for text in bench.log.lines), bench.log.lines)

    def test_slices(self) -> None:
        """A large file is loaded in slices, between which clients get replies; INFO shows the
        progress, and nothing is logged meanwhile."""
        source = loaded(b"")
        records = b""
        for _ in range(20):
            source.begin()
            job = source.node.jobs.get(source.add())
            assert job is not None
            records += load_record(job)
        files = MemoryFiles()
        files.put(PATH, records)
        bench = Bench(files, settings(), SteppingTime(SLICE_S / 4))
        done = bench.aof.load()
        bench.clock.turn()
        self.assertNoResult(done)
        self.assertTrue(bench.aof.loading)
        self.assertEqual(("1", "0"), (bench.field("loading"), bench.field("aof_enabled")))
        self.assertEqual(str(len(records)), bench.field("loading_total_bytes"))
        self.assertTrue(0 < int(bench.field("loading_loaded_bytes")) < len(records))
        self.assertIsNone(bench.node.outbox.log)
        turns = 1
        while bench.aof.loading:
            bench.clock.turn()
            turns += 1
        self.successResultOf(done)
        self.assertGreater(turns, 5)
        self.assertEqual(20, len(bench.node.jobs))
        self.assertEqual("on", bench.field("aof_state"))
        self.assertEqual([], bench.clock.getDelayedCalls())

    def test_eta(self) -> None:
        """INFO says how long a load will still take, by what is loaded and what is left."""
        source = loaded(b"")
        files = MemoryFiles()
        source.begin()
        jobs = [source.node.jobs.get(source.add()) for _ in range(4)]
        records = [load_record(job) for job in jobs if job is not None]
        files.put(PATH, b"".join(records))
        clock = SteppingTime(10)
        bench = Bench(files, settings(), clock)
        bench.aof.load()
        began_s = clock.now_s
        for left, loaded_now in ((3, 1), (2, 2), (1, 3)):
            while int(bench.field("loading_loaded_bytes")) < loaded_now * len(records[0]):
                bench.clock.turn()
            seconds = int(bench.field("loading_eta_seconds"))
            self.assertEqual(int((clock.now_s - began_s) * left / loaded_now), seconds)
        bench.settle()

    def test_empty(self) -> None:
        """INFO has all fields of a load, also of a log without records, and takes a second for it
        as long as nothing is known."""
        bench = Bench(MemoryFiles(), settings())
        bench.aof.load()
        shown = dict(bench.aof.info())
        fields = ("total_bytes", "loaded_bytes", "loaded_perc", "eta_seconds")
        found = [shown[f"loading_{name}"] for name in fields]
        self.assertEqual(["0", "0", "0.00", "1"], found)
        self.assertEqual(str(WALL_US // 1_000_000), shown["loading_start_time"])

    def test_stop_while_loading(self) -> None:
        """The process can be stopped during the load; the file is not changed."""
        content = vector("aof/node0.aof")
        files = MemoryFiles()
        files.put(PATH, content)
        bench = Bench(files, settings(), SteppingTime(SLICE_S))
        done: Deferred[None] = bench.aof.load()
        bench.clock.turn()
        bench.aof.stopService()
        self.assertNoResult(done)
        self.assertEqual([], bench.clock.getDelayedCalls())
        self.assertEqual(content, files.content(PATH))

    def test_large_record(self) -> None:
        """A body much larger than one read is loaded whole."""
        source = loaded(b"")
        source.begin()
        body = b"x" * 5_000_000
        job = source.node.jobs.get(source.add(body=body))
        assert job is not None
        bench = loaded(load_record(job))
        back = bench.node.jobs.get(job.id)
        assert back is not None
        self.assertEqual(body, back.body)

    def test_at_once(self) -> None:
        """A log that is loaded in one step is loaded whole, or the reason is raised, and then it is
        closed and not used."""
        files = MemoryFiles()
        files.put(PATH, vector("aof/node0.aof"))
        bench = Bench(files, settings())
        bench.aof.load_now()
        self.assertEqual((12, "on"), (len(bench.node.jobs), bench.field("aof_state")))
        bench.aof.stopService()
        files.put(PATH, vector("aof/node0.aof") + b"\0")
        bench = Bench(files, settings())
        self.assertRaises(ConfigError, bench.aof.load_now)
        self.assertEqual((0, "off"), (files.open_files, bench.field("aof_state")))
        self.assertFalse(bench.aof.loading)
        off = Bench(files, settings(appendonly=False))
        off.aof.load_now()
        self.assertEqual("off", off.field("aof_state"))

    def test_unreadable(self) -> None:
        """A directory in place of the file is reported as such."""
        bench = Bench(_Forbidding(), settings())
        error = self.failureResultOf(bench.start(), ConfigError).value
        self.assertIn(f"Can't open the append only file {PATH}: Permission denied", str(error))

    def test_queue_state(self) -> None:
        """Without the option a load queues no job, since a worker may already have it."""
        bench = loaded(vector("aof/node0.aof"))
        states = [job.state for job in bench.node.jobs.table.values()]
        self.assertNotIn(QUEUED, states)


class _Forbidding(MemoryFiles):
    """Files that must not be read."""

    def open(self, path: str, may_be_new: bool = False) -> Any:
        raise PermissionError(13, "Permission denied", path)
