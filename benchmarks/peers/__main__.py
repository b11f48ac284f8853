"""``python -m benchmarks.peers``: Disque beside RabbitMQ, NATS JetStream, Redis Streams and
beanstalkd, on the same work; and its worker beside Celery, RQ, dramatiq and taskiq.

Servers of one contest run at the same time and are loaded in turn, so ratios within a run are what
can be compared. Needs a C compiler and the Debian packages of the servers; prints Markdown.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.daemon.machine import machine
from benchmarks.peers import workers
from benchmarks.peers.contests import CONTESTS
from benchmarks.peers.rows import Bench, Plan
from benchmarks.peers.servers import NEEDED, missing

_ALL = (*CONTESTS, "workers")


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line; ends the program if it makes no sense."""
    parser = argparse.ArgumentParser(prog="benchmarks.peers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of load, in each round")
    parser.add_argument("--backlog", type=int, default=1_000_000, help="jobs that wait")
    parser.add_argument("--fill-seconds", type=float, default=300.0, help="to add them, at most")
    parser.add_argument("--no-memory", action="store_true", help="leave out the jobs that wait")
    parser.add_argument("--only", metavar="CONTEST[,CONTEST]", default=",".join(_ALL))
    parser.add_argument(
        "--workers", type=Path, metavar="PYTHON", help="which has the packages of other workers"
    )
    args = parser.parse_args(words)
    args.only = args.only.split(",")
    unknown = [name for name in args.only if name not in _ALL]
    if unknown:
        parser.error(f"no such contest: {', '.join(unknown)}; there are {', '.join(_ALL)}")
    if "workers" in args.only and args.workers is None:
        parser.error("workers need --workers PYTHON; make bench-peers-setup makes one")
    if args.rounds < 1 or args.seconds <= 0 or args.backlog < 1 or args.fill_seconds <= 0:
        parser.error("rounds, seconds and backlog must be above 0")
    return args


def main() -> int:
    """Run everything; returns the exit status."""
    args = arguments()
    if packages := missing():
        print(f"Not installed: {', '.join(packages)}. `make bench-peers-setup` installs them.")
        return 1
    with tempfile.TemporaryDirectory(prefix="disque-peers-") as folder:
        plan = Plan(args.seconds, args.backlog, args.fill_seconds)
        bench = Bench(Path(folder), args.rounds, plan)
        print(f"{machine()}; {versions()}. Jobs of 100 bytes; {args.rounds} rounds in turn,")
        print(f"each of {args.seconds:g} s, after one that does not count.")
        print(f"Load of the machine at the start: {load()}.")
        for name in args.only:
            if name == "workers":
                workers.compare(Path(folder), args.workers.absolute(), args.rounds)
                continue
            bench.speed(CONTESTS[name])
            if not args.no_memory:
                bench.memory(CONTESTS[name])
        print(f"\nLoad of the machine at the end: {load()}.")
    return 0


def load() -> str:
    """Processes that wanted to run, on average over 1, 5 and 15 minutes."""
    return ", ".join(f"{each:.1f}" for each in os.getloadavg())


def versions() -> str:
    """The Debian packages of the servers, and their versions."""
    packages = sorted(set(NEEDED.values()) - {"gcc"})
    query = ["dpkg-query", "-W", "-f", "${Package} ${Version}, ", *packages]
    done = subprocess.run(query, capture_output=True, text=True, check=False)
    return done.stdout.rstrip(", ") or "versions unknown"


if __name__ == "__main__":
    sys.exit(main())
