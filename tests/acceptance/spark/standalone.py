"""A standalone cluster of Spark from the package of pip: a master, and workers that share nothing
with the program but the machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import urllib.request
from pathlib import Path
from typing import IO, Any

import pyspark

import disque_tx
from disque_tx.spark.sessions import prepare
from tests.acceptance.daemon import free_port, wait_for

_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
_DEPLOY = "org.apache.spark.deploy"
_READY_S = 120.0
_END_S = 20.0
#: What an executor is given: a core, and memory for Java.
_MEMORY = "700m"


def packed_environment(folder: Path) -> Path:
    """An archive of an environment with this package in it, as ``venv-pack`` makes one; only that
    the packages which it needs are links to those installed here."""
    root = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
    (packages,) = (root / "lib").glob("python*/site-packages")
    (here,) = {Path(pyspark.__file__).parent.parent}
    for entry in here.iterdir():
        if not entry.name.startswith(("__editable__", "disque_tx", "__pycache__")):
            (packages / entry.name).symlink_to(entry)
    (packages / "disque_tx").symlink_to(Path(disque_tx.__file__).parent)
    for library in Path(disque_tx.__file__).parent.parent.glob("*__mypyc*.so"):
        (packages / library.name).symlink_to(library)  # of the compiled package
    archive = folder / "environment.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(root, ".")
    return archive


class StandaloneCluster:
    """``url``: of the master. ``address``: of its page."""

    def __init__(self, folder: Path, workers: int) -> None:
        self._folder = folder
        self._programs: list[subprocess.Popen[bytes]] = []
        self._logs: list[IO[bytes]] = []
        # Nothing of this process's settings of Python reaches the executors.
        self._environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "PYSPARK", "SPARK"))
        }
        prepare(self._environment)
        self._environment.pop("PYSPARK_PYTHON", None)
        self._environment |= {
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOG_DIR": str(folder),
        }
        port, page = free_port(), free_port()
        self.url = f"spark://127.0.0.1:{port}"
        self.address = f"http://127.0.0.1:{page}"
        self._start("master.Master", "--port", str(port), "--webui-port", str(page))
        wait_for(lambda: self.state() is not None, "the master answers", _READY_S)
        for _ in range(workers):
            self._start(
                *("worker.Worker", "--cores", "1", "--memory", _MEMORY, "--webui-port", "0"),
                *("--work-dir", str(folder / "work"), self.url),
            )
        wait_for(lambda: self.alive() == workers, "all workers are known", _READY_S)

    def _start(self, name: str, *words: str) -> None:
        log = (self._folder / f"{len(self._logs)}.log").open("wb")
        self._logs.append(log)
        self._programs.append(
            subprocess.Popen(
                [str(_CLASS), f"{_DEPLOY}.{name}", "--host", "127.0.0.1", *words],
                env=self._environment,
                cwd=self._folder,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        )

    def state(self) -> dict[str, Any] | None:
        """What the master says of workers and applications; ``None`` while it does not answer."""
        try:
            with urllib.request.urlopen(f"{self.address}/json/", timeout=5) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except (OSError, ValueError):
            return None

    def alive(self) -> int:
        """How many workers there are."""
        state = self.state()
        return 0 if state is None else int(state["aliveworkers"])

    def kill_writer(self, folder: Path) -> bool:
        """Kill a worker with all that it has started, as if its machine had failed, if one of these
        is writing a file below a folder; whether there was one."""
        for worker in self._programs[1:]:
            if any(has_open(pid, folder) for pid in (worker.pid, *below(worker.pid))):
                self.kill_worker(worker)
                return True
        return False

    def kill_worker(self, worker: subprocess.Popen[bytes] | None = None) -> None:
        """Kill a worker, by default the first one, with all that it has started."""
        worker = worker or self._programs[1]
        for pid in (worker.pid, *below(worker.pid)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it has ended with the one above

    def close(self) -> None:
        """End everything."""
        for program in self._programs:
            program.terminate()
        for program in self._programs:
            try:
                program.wait(_END_S)
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait()
        for log in self._logs:
            log.close()


def has_open(pid: int, folder: Path) -> bool:
    """Whether a process has a file below a folder open."""
    try:
        return any(
            os.readlink(fd).startswith(f"{folder}/") for fd in Path(f"/proc/{pid}/fd").iterdir()
        )
    except OSError:  # the file is closed, or the process has ended
        return False


def below(pid: int) -> list[int]:
    """The processes that a process has started, and those of these."""
    try:
        children = [
            int(word)
            for path in Path(f"/proc/{pid}/task").glob("*/children")
            for word in path.read_text().split()
        ]
    except OSError:  # it has ended
        return []
    return children + [found for child in children for found in below(child)]
