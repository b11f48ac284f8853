"""Speed and memory beside redis-server, on the same work, in one run (``make bench``).

Every figure that matters is a ratio of two measurements made in turn; the absolute numbers depend
on the machine and on what else it does. Needs a C compiler and ``redis-server``; prints Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import idle
from fairness import fairness
from repl3 import repl3

HERE = Path(__file__).parent
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
TAKEN: set[int] = set()
CHOICES = ("speed", "events", "repl3", "fairness", "idle", "backlog", "start")


class Daemon:
    """A server process under measurement."""

    def __init__(self, kind: str, command: list[str], port: int) -> None:
        self.kind = kind
        self.port = port
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self._wait()

    def _wait(self) -> None:
        deadline_s = time.monotonic() + 20
        while time.monotonic() < deadline_s and self.process.poll() is None:
            try:
                if self.ask(b"PING\r\n").startswith(b"+PONG"):
                    return
            except OSError:
                time.sleep(0.02)
        raise SystemExit(f"{self.kind} did not start")

    def ask(self, request: bytes) -> bytes:
        """One short request on a connection of its own."""
        with socket.create_connection(("127.0.0.1", self.port)) as sock:
            sock.sendall(request)
            return sock.recv(65536)

    def cpu_s(self) -> float:
        """Processor time used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")")[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def resident(self) -> int:
        """Bytes in memory."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * PAGE

    def stop(self) -> None:
        """End it."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


class Bench:
    """All measurements of one run; ``folder`` holds the load generator and the data. ``python``:
    the interpreter that the daemon is installed for."""

    def __init__(self, folder: Path, rounds: int, jobs: int, python: str = sys.executable) -> None:
        self.python = python
        self.folder = folder
        self.rounds = rounds
        self.jobs = jobs
        self.loadgen = folder / "loadgen"
        subprocess.run(["cc", "-O2", "-o", self.loadgen, HERE / "loadgen.c"], check=True)

    def disque(self, *options: str) -> Daemon:
        """Our daemon, in a folder of its own."""
        port = free_port()
        data = Path(tempfile.mkdtemp(dir=self.folder))
        # The command, which every version has, and not a module, which may move.
        command = [str(Path(self.python).with_name("disque-server")), "--port", str(port)]
        words = ["--bind", "127.0.0.1", "--dir", str(data), "--maxmemory", "4gb", *options]
        return Daemon("disque", command + words, port)

    def redis(self) -> Daemon:
        """Redis without persistence."""
        port = free_port()
        words = ["--port", str(port), "--save", "", "--dir", str(self.folder)]
        return Daemon("redis", ["redis-server", *words], port)

    def load(self, daemon: Daemon, depth: int, jobs: int, *options: str) -> tuple[float, float]:
        """Jobs per second, and microseconds of server processor time per job."""
        command = [str(self.loadgen), "-t", daemon.kind, "-p", str(daemon.port), "-c", "50"]
        words = ["-q", "50", "-d", str(depth), "-n", str(jobs), *options]
        before_s = daemon.cpu_s()
        out = subprocess.run(command + words, check=True, capture_output=True).stdout
        result: dict[str, Any] = json.loads(out)
        if result["errors"]:
            raise SystemExit(f"{daemon.kind} answered errors: {result.get('first_error')}")
        used_s = daemon.cpu_s() - before_s
        return float(result["jobs_s"]), used_s * 1e6 / result["jobs"]

    def progress(self, text: str) -> None:
        """Say what is being done."""
        progress(text)

    def compare(
        self,
        depth: int,
        one: Daemon,
        other: Daemon,
        jobs: int,
        settle: Callable[[], None] = lambda: None,
    ) -> dict[str, float]:
        """Medians of both in turn, and the medians of their ratios round by round. ``settle``:
        lets the first one finish what it still does, so that the other does not pay for it."""
        rows = []
        for number in range(self.rounds):
            progress(f"depth {depth}, round {number + 1} of {self.rounds}")
            a = self.load(one, depth, jobs)
            settle()
            b = self.load(other, depth, jobs)
            rows.append((*a, *b, a[0] / b[0], a[1] / b[1]))
        names = ("one_jobs_s", "one_us", "other_jobs_s", "other_us", "jobs_ratio", "cpu_ratio")
        return {name: statistics.median(row[at] for row in rows) for at, name in enumerate(names)}


def free_port() -> int:
    """A port that nobody listens on, with room for the cluster bus above it."""
    for port in range(17_000, 55_000):
        with socket.socket() as sock:
            if sock.connect_ex(("127.0.0.1", port)) and port not in TAKEN:
                TAKEN.add(port)
                return port
    raise SystemExit("no port is free")


def progress(text: str) -> None:
    """Say on standard error what is being done."""
    sys.stderr.write(f"\r\033[K{text}" if sys.stderr.isatty() else f"{text}\n")
    sys.stderr.flush()


def compiled() -> str:
    """Whether the package under measurement is the compiled one."""
    from disque_tx.core import node

    return "compiled" if str(node.__file__).endswith(".so") else "not compiled"


def machine() -> str:
    """What this ran on."""
    model = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":")[1].strip()
            break
    redis = subprocess.run(
        ["redis-server", "--version"], capture_output=True, text=True, check=True
    ).stdout
    version = redis.split("v=")[1].split()[0]
    return (
        f"{os.cpu_count()} cores of {model or platform.machine()}, Linux {platform.release()}, "
        f"Python {platform.python_version()}, disque-tx {compiled()}, Redis {version}"
    )


def speed(bench: Bench) -> None:
    """Against the Redis list, and the price of the log."""
    print("\n| pipeline depth | jobs/s | Redis list jobs/s | ratio | CPU µs/job | Redis | ratio |")
    print("|---|---|---|---|---|---|---|")
    ours, redis = bench.disque(), bench.redis()
    for depth in (1, 16):
        jobs = bench.jobs if depth == 1 else 3 * bench.jobs
        bench.load(ours, depth, jobs // 4)
        bench.load(redis, depth, jobs // 4)
        row = bench.compare(depth, ours, redis, jobs)
        print(
            f"| {depth} | {row['one_jobs_s']:,.0f} | {row['other_jobs_s']:,.0f} "
            f"| {row['jobs_ratio']:.2f} | {row['one_us']:.1f} | {row['other_us']:.1f} "
            f"| {row['cpu_ratio']:.2f} |"
        )
    redis.stop()
    print("\n| at depth 16 | jobs/s | without | ratio |\n|---|---|---|---|")
    for policy in ("everysec", "always"):
        logging = bench.disque("--appendonly", "yes", "--appendfsync", policy)
        row = bench.compare(16, logging, ours, bench.jobs * 6)
        print(
            f"| AOF, appendfsync {policy} | {row['one_jobs_s']:,.0f} "
            f"| {row['other_jobs_s']:,.0f} | {row['jobs_ratio']:.2f} |"
        )
        logging.stop()
    ours.stop()


def events(bench: Bench) -> None:
    """The price of the event log; its lines are made by another process meanwhile."""
    logging, without = bench.disque("--eventlog", "yes"), bench.disque()

    def settle() -> None:
        while b"segments_waiting:0" not in logging.ask(b"INFO eventlog\r\n"):
            time.sleep(0.1)

    bench.load(logging, 16, bench.jobs)
    bench.load(without, 16, bench.jobs)
    row = bench.compare(16, logging, without, bench.jobs * 6, settle)
    told = dict(
        line.split(":")
        for line in logging.ask(b"INFO eventlog\r\n").decode().split()
        if ":" in line
    )
    print("\n| at depth 16 | jobs/s | without | ratio | CPU µs/job | without | events | dropped |")
    print("|---|---|---|---|---|---|---|---|")
    print(
        f"| event log | {row['one_jobs_s']:,.0f} | {row['other_jobs_s']:,.0f} "
        f"| {row['jobs_ratio']:.2f} | {row['one_us']:.2f} | {row['other_us']:.2f} "
        f"| {int(told['eventlog_events']):,} | {told['eventlog_dropped']} |"
    )
    logging.stop()
    without.stop()


def backlog(bench: Bench, jobs: int) -> None:
    """Memory of a queued job, and speed with many of them waiting."""
    full, empty = bench.disque(), bench.disque()
    before = full.resident()
    progress(f"adding {jobs:,} jobs")
    bench.load(full, 100, jobs, "-m", "add")
    size = full.resident()
    print(f"\n| with {jobs:,} jobs queued | |\n|---|---|")
    print(f"| resident memory per job, the whole process counted | {size / jobs:.0f} bytes |")
    print(f"| the growth alone, per job | {(size - before) / jobs:.0f} bytes |")
    for depth in (1, 16):
        row = bench.compare(depth, full, empty, bench.jobs * (1 if depth == 1 else 2))
        print(f"| jobs/s at depth {depth}, as a ratio to an empty node | {row['jobs_ratio']:.2f} |")
    full.stop()
    empty.stop()


def start_up(bench: Bench) -> None:
    """From exec to the first PONG."""
    times = []
    for _ in range(bench.rounds + 2):
        begun_s = time.perf_counter()
        daemon = bench.disque()
        times.append(time.perf_counter() - begun_s)
        daemon.stop()
    print(f"\nFrom exec to the first PONG: {statistics.median(times):.2f} s.")


def main() -> int:
    """Run everything; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=150_000, help="jobs per round at depth 1")
    parser.add_argument("--backlog", type=int, default=1_000_000)
    parser.add_argument("--only", choices=CHOICES)
    args = parser.parse_args()
    for program in ("cc", "redis-server"):
        if shutil.which(program) is None:
            print(f"{program} is not installed; on Debian: apt-get install gcc redis-server")
            return 1
    with tempfile.TemporaryDirectory(prefix="disque-bench-") as folder:
        bench = Bench(Path(folder), args.rounds, args.jobs)
        print(f"{machine()}. 50 connections, 50 queues, bodies of 16 bytes,")
        print(f"medians of {args.rounds} rounds in turn.")
        if args.only in (None, "speed"):
            speed(bench)
        if args.only in (None, "events"):
            events(bench)
        if args.only in (None, "repl3"):
            repl3(bench)
        if args.only in (None, "fairness"):
            fairness(bench)
        if args.only in (None, "idle"):
            print("\nSimulated, node time-out 15 s:\n")
            idle.main()
        if args.only in (None, "backlog"):
            backlog(bench, args.backlog)
        if args.only in (None, "start"):
            start_up(bench)
    return 0


if __name__ == "__main__":
    sys.exit(main())
