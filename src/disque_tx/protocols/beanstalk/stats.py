"""What stats, stats-tube, stats-job and list-tubes reply: YAML, as beanstalkd writes it."""

from __future__ import annotations

from os import getpid, times, uname
from typing import Final

from disque_tx import __version__
from disque_tx.protocols.beanstalk import requests
from disque_tx.protocols.beanstalk.jobs import Tube, TubeJob
from disque_tx.protocols.beanstalk.tubes import Tubes

#: Jobs with a smaller priority are urgent.
URGENT: Final = 1_024
#: Names in a list, and tubes whose urgent jobs are counted for the node.
TUBES_MAX: Final = 10_000
#: The order in which stats counts requests.
_COUNTED: Final = (
    *("put", "peek", "peek-ready", "peek-delayed", "peek-buried", "reserve"),
    *("reserve-with-timeout", "delete", "release", "use", "watch", "ignore", "bury", "kick"),
    *("touch", "stats", "stats-job", "stats-tube", "list-tubes", "list-tube-used"),
    *("list-tubes-watched", "pause-tube"),
)

Fields = list[tuple[str, object]]


def _ok(text: bytes) -> bytes:
    body = b"---\n" + text
    return b"OK %d\r\n%s\r\n" % (len(body), body)


def _fields(fields: Fields) -> bytes:
    return _ok("".join(f"{name}: {value}\n" for name, value in fields).encode("latin-1"))


def listed(names: list[bytes]) -> bytes:
    """A list of names."""
    return _ok(b"".join(b"- %s\n" % name for name in names))


def tube_names(tubes: Tubes) -> list[bytes]:
    """Known tubes, and queues whose names are names of tubes, ``TUBES_MAX`` at the most."""
    names = dict.fromkeys(tubes.by_name)
    cursor = 0
    while len(names) < TUBES_MAX:
        cursor, queues = tubes.node.queues(cursor)
        for queue in queues:
            if requests.is_name(queue.name):
                names[queue.name] = None
        if cursor == 0:
            break
    return list(names)[:TUBES_MAX]


def job_stats(tubes: Tubes, entry: TubeJob) -> bytes:
    """The state of a job."""
    job = entry.job
    assert job is not None
    now_ms = tubes.node.now_ms()
    state = entry.state()
    left_ms = max(0, job.qtime_ms - now_ms) if state in (b"reserved", b"delayed") else 0
    fields: Fields = [
        ("id", entry.number),
        ("tube", entry.tube.name.decode("latin-1")),
        ("state", state.decode()),
        ("pri", job.priority),
        ("age", max(0, tubes.node.wall_ms() - job.ctime // 1_000_000) // 1000),
        ("delay", entry.delay_s),
        ("ttr", job.retry_s),
        ("time-left", left_ms // 1000),
        ("file", 0),
        ("reserves", entry.reserves),
        ("timeouts", entry.timeouts),
        ("releases", entry.releases),
        ("buries", entry.buries),
        ("kicks", entry.kicks),
    ]
    return _fields(fields)


def tube_stats(tubes: Tubes, name: bytes) -> bytes:
    """The numbers of a tube, which exists as a tube or as a queue."""
    tube = tubes.by_name.get(name) or Tube(name)
    node = tubes.node
    queue, tally = node.queue(name), node.tally(name)
    held = 0 if tally is None else tally.delayed + tally.backoff + tally.loaded
    left_ms = tube.paused_until_ms - node.now_ms() if tube.paused_until_ms else 0
    fields: Fields = [
        ("name", name.decode("latin-1")),
        ("current-jobs-urgent", node.urgent(name, URGENT)),
        ("current-jobs-ready", 0 if queue is None else queue.jobs.size),
        ("current-jobs-reserved", 0 if tally is None else tally.in_flight),
        ("current-jobs-delayed", max(0, held - len(tube.buried))),
        ("current-jobs-buried", len(tube.buried)),
        ("total-jobs", tube.total),
        ("current-using", tube.using),
        ("current-watching", tube.watching),
        ("current-waiting", 0 if queue is None else queue.blocked()),
        ("cmd-delete", tube.deletes),
        ("cmd-pause-tube", tube.pauses),
        ("pause", tube.pause_s),
        ("pause-time-left", max(0, left_ms) // 1000),
    ]
    return _fields(fields)


def node_stats(tubes: Tubes) -> bytes:
    """The numbers of the node."""
    node, counts = tubes.node, tubes.counts
    in_flight, held, delayed = node.totals()
    some = list(tubes.by_name)[:TUBES_MAX]
    system = uname()
    used = times()
    fields: Fields = [
        ("current-jobs-urgent", sum(node.urgent(name, URGENT) for name in some)),
        ("current-jobs-ready", node.queued()),
        ("current-jobs-reserved", in_flight),
        ("current-jobs-delayed", max(0, held + delayed - tubes.buried)),
        ("current-jobs-buried", tubes.buried),
        *((f"cmd-{name}", counts[requests.NAMES.index(name.encode()) + 1]) for name in _COUNTED),
        ("job-timeouts", tubes.timeouts),
        ("total-jobs", tubes.total),
        ("max-job-size", tubes.job_bytes_max()),
        ("current-tubes", len(tubes.by_name)),
        ("current-connections", tubes.connected),
        ("current-producers", tubes.producers),
        ("current-workers", tubes.workers),
        ("current-waiting", tubes.waiting),
        ("total-connections", tubes.connections),
        ("pid", getpid()),
        ("version", f'"disque-tx {__version__}"'),
        ("rusage-utime", f"{used.user:.6f}"),
        ("rusage-stime", f"{used.system:.6f}"),
        ("uptime", (node.now_ms() - tubes.started_ms) // 1000),
        ("binlog-oldest-index", 0),
        ("binlog-current-index", 0),
        ("binlog-records-migrated", 0),
        ("binlog-records-written", 0),
        ("binlog-max-size", 0),
        ("draining", "true" if node.is_leaving() else "false"),
        ("id", node.id().decode()),
        ("hostname", system.nodename),
        ("os", system.version),
        ("platform", system.machine),
    ]
    return _fields(fields)
