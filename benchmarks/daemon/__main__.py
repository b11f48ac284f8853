"""``python -m benchmarks.daemon``: all rows, in turn with redis-server or another version.

Every figure that matters is a ratio of two measurements made in turn; the absolute numbers depend
on the machine and on what else it does. Needs a C compiler and ``redis-server``; prints Markdown.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.daemon.bench import Bench
from benchmarks.daemon.machine import machine, redis_version
from benchmarks.daemon.rows import ROWS


def main() -> int:
    """Run everything; returns the exit status."""
    parser = argparse.ArgumentParser(prog="benchmarks.daemon", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=150_000, help="jobs per round at depth 1")
    parser.add_argument("--backlog", type=int, default=1_000_000, help="jobs that wait")
    parser.add_argument("--only", metavar="ROW[,ROW]", default=",".join(ROWS))
    parser.add_argument(
        "--other", metavar="PYTHON", default="", help="compare with the version installed there"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the values of all rounds")
    args = parser.parse_args()
    unknown = [name for name in args.only.split(",") if name not in ROWS]
    if unknown:
        parser.error(f"no such row: {', '.join(unknown)}; there are {', '.join(ROWS)}")
    for program in ("cc", "redis-server"):
        if shutil.which(program) is None:
            print(f"{program} is not installed; on Debian: apt-get install gcc redis-server")
            return 1
    with tempfile.TemporaryDirectory(prefix="disque-bench-") as folder:
        bench = Bench(
            Path(folder), args.rounds, args.jobs, args.backlog, sys.executable, args.other
        )
        where = f"{machine()}, Redis {redis_version()}"
        print(f"{where}. Bodies of 16 bytes; 50 connections and 50 queues unless the row differs;")
        print(f"{args.rounds} rounds in turn.")
        bench.report.begin()
        for name in args.only.split(","):
            ROWS[name](bench)
            if args.json is not None:
                bench.report.save(args.json, where)
    return 0


if __name__ == "__main__":
    sys.exit(main())
