"""Five seconds, in real time: twelve incidents, one after the other, in a cluster of three nodes
that works, and how long it takes until the first finding on the overview is what is wrong; or how
many findings a quiet cluster has.

``make console-incidents`` and ``make console-quiet``: ``python -m tests.acceptance.incidents``, or
with ``--quiet SECONDS``. The beginning of an incident is when it can be known at the earliest: of
what a threshold says, such as RETRY or ``alert-wait``, when that has passed.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Final

import attrs

from tests.acceptance.incidentscene import Scene, quiet, scene

#: A finding is to be there within this time of the beginning.
NAMED_S: Final = 15.0
_RETRY_S: Final = 5
_ALERT_S: Final = 3
_STEP_S: Final = 60
_MISSED_S: Final = 150


@attrs.frozen
class Incident:
    """``words``: of the finding, its node included. ``begin``: returns when it has begun. ``end``:
    afterwards all is well again, within a minute or two."""

    name: str
    words: Callable[[Scene], str]
    begin: Callable[[Scene], object]
    end: Callable[[Scene], object]


def _flush(queue: str) -> Callable[[Scene], object]:
    return lambda scene: scene.first.call("QFLUSH", queue, "CLUSTER", "STATE", "any")


def _no_consumers(scene: Scene) -> None:
    scene.second.add("invoices", replicate=1)


def _bad_deploy(scene: Scene) -> None:
    scene.first.call("NOTE", "deployed 4711")
    scene.traffic.deployed_badly = True


def _good_deploy(scene: Scene) -> None:
    scene.traffic.deployed_badly = False


def _poison(scene: Scene) -> None:
    scene.first.add("imports", replicate=1, retry=300)
    for _ in range(6):
        for job_id in scene.take("imports"):
            scene.first.call("NACK", "DELAY", 0, "REASON", "segfault", job_id)


def _disk_full(scene: Scene) -> None:
    folder = scene.second.folder
    scene.limit_files(max(path.stat().st_size for path in folder.glob("*.aof*")) + 10)


def _memory(scene: Scene) -> None:
    for _ in range(20):
        scene.second.add("archive", 10_000 * "x", replicate=1, delay=3000, retry=3000)
    used = int(scene.second.figures("memory")["used_memory"])
    scene.second.call("CONFIG", "SET", "maxmemory", used * 100 // 95)


def _room(scene: Scene) -> None:
    scene.second.call("CONFIG", "SET", "maxmemory", "1gb")
    _flush("archive")(scene)


def _miss(scene: Scene) -> None:
    scene.first.call("SCHEDULE", "SET", "nightly", "EVERY", 5, "QUEUE", "orders", "x")
    time.sleep(2 * _RETRY_S)  # so that some of its occurrences were made
    scene.set_clocks(_MISSED_S, *scene.steps)


def _restart(scene: Scene) -> None:
    scene.first.call("SCHEDULE", "DEL", "nightly")
    for node in scene.fleet.nodes:
        node.stop()
        node.boot()
    scene.fleet.wait_until_agreed()


def _slow_consumer(scene: Scene) -> None:
    scene.first.call("QPOLICY", "SET", "reports", "alert-wait", _ALERT_S)
    for _ in range(20):
        scene.first.add("reports", replicate=1, retry=300)
    scene.take("reports")
    time.sleep(_ALERT_S)


def _no_reports(scene: Scene) -> None:
    _flush("reports")(scene)
    scene.first.call("QPOLICY", "DEL", "reports")


def _stuck_worker(scene: Scene) -> None:
    scene.first.add("videos", replicate=1, retry=_RETRY_S)
    scene.take("videos")
    time.sleep(_RETRY_S)


def _forgotten_pause(scene: Scene) -> None:
    scene.second.call("PAUSE", "archive", "out", "BCAST")
    scene.second.add("archive", replicate=1)


def _no_pause(scene: Scene) -> None:
    scene.second.call("PAUSE", "archive", "none", "BCAST")
    _flush("archive")(scene)


def _copies_lacking(scene: Scene) -> None:
    # Otherwise the copies are there again before anybody has read the finding.
    for node in scene.fleet.nodes:
        node.call("CONFIG", "SET", "replicate-again-rate", 0)
    for _ in range(40):
        scene.first.add("ledger", replicate=2, retry=3000, delay=3000)
    lost = scene.third.id
    scene.third.kill()
    for node in scene.fleet.living():
        node.call("CLUSTER", "FORGET", lost)


def _new_node(scene: Scene) -> None:
    _flush("ledger")(scene)
    for node in scene.fleet.living():
        node.call("CONFIG", "SET", "replicate-again-rate", 2000)
    scene.third.lose()
    scene.third.boot()
    scene.first.call("CLUSTER", "MEET", scene.third.ip, scene.third.port, scene.third.bus_port)
    scene.fleet.wait_until_agreed()


def _place(number: int) -> Callable[[Scene], str]:
    def place(scene: Scene) -> str:
        node = scene.fleet.nodes[number]
        return f"{node.ip}:{node.port} "

    return place


def _at(number: int, words: str) -> Callable[[Scene], str]:
    return lambda scene: f"{_place(number)(scene)}{words}"


def _said(words: str) -> Callable[[Scene], str]:
    return lambda scene: words


INCIDENTS: Final = (
    Incident(
        "queue without consumers", _said("nobody fetches the 1 job of invoices"),
        _no_consumers, _flush("invoices"),
    ),
    Incident("node down", _at(2, "does not answer"), lambda scene: scene.third.kill(),
             lambda scene: scene.fleet.each(lambda node: node.boot())),
    Incident("disk full", _at(1, "cannot write its log"), _disk_full,
             lambda scene: scene.limit_files(resource.RLIM_INFINITY)),
    Incident("clock step", _at(2, f"its clock is {_STEP_S}"),
             lambda scene: scene.set_clocks(_STEP_S, scene.steps[2]),
             lambda scene: scene.set_clocks(0, scene.steps[2])),
    Incident("memory at 95 %", _at(1, "uses 9"), _memory,
             _room),
    Incident("slow consumer", _said(f"waits for more than the {_ALERT_S} s of alert-wait"),
             _slow_consumer, _no_reports),
    Incident("paused and forgotten", _said("archive is paused for deliveries"), _forgotten_pause,
             _no_pause),
    Incident("failing task after a deploy", _said("of mail failed: KeyError: 'to'"), _bad_deploy,
             _good_deploy),
    Incident("poison job", _said("of imports has failed"), _poison, _flush("imports")),
    Incident("stuck worker", _said("of videos was not acknowledged within RETRY"), _stuck_worker,
             _flush("videos")),
    Incident("copies lacking", _said("jobs that have fewer copies"), _copies_lacking, _new_node),
    Incident("schedule missed", _said("occurrences of schedules that were missed"), _miss,
             _restart),
)  # fmt: skip


def main() -> int:
    """Run, and print; 1 if an incident was not named in time, or if there was a finding."""
    parser = argparse.ArgumentParser(prog="incidents", description=__doc__)
    parser.add_argument("--quiet", type=float, metavar="SECONDS", help="plant none")
    parser.add_argument("--only", default="", metavar="WORDS", help="those with this in their name")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name), scene() as made:
        if options.quiet:
            found, looks = quiet(made, options.quiet)
            print(f"{options.quiet:g} s, asked {looks} times at each of {len(made.apis)} nodes,"
                  f" {made.traffic.done} jobs done: {len(found)} findings")  # fmt: skip
            print("\n".join(sorted(found)))
            return int(bool(found))
        for one in INCIDENTS:
            if options.only not in one.name:
                continue
            try:
                one.begin(made)
                named_s = made.until_first(one.words(made), 4 * NAMED_S)
                one.end(made)
                print(f"{one.name}: named after {named_s:.1f} s,"
                      f" well again after {made.until_well():.1f} s", flush=True)  # fmt: skip
                failed += named_s > NAMED_S
            except AssertionError as error:
                print(f"{one.name}: {error}", flush=True)
                failed += 1
                one.end(made)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
