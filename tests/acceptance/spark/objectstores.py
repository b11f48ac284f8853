"""An object store for tests: moto's S3, as a process, with a bucket for each test.

As a program: serves on the port that is its argument, and prints each request that writes an
object, with its condition.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import count
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from threading import Lock
from typing import Any

from tests.acceptance.daemon import SOURCE, DaemonTestCase, free_port, wait_for

SECRET = "hidden-7f3a"
_ROOT = Path(__file__).resolve().parents[3]
_numbers = count(1)


class Server:
    """The process. ``requests``: the file with what it printed."""

    def __init__(self) -> None:
        port = free_port()
        self.endpoint = f"http://127.0.0.1:{port}"
        self.requests = Path(mkdtemp(prefix="disque-tx-")) / "requests"
        with self.requests.open("wb") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(port)],
                env=package_environment(),
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        atexit.register(self._end)

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        rmtree(self.requests.parent)

    def make(self, bucket: str) -> None:
        """Make a bucket, as soon as the server answers."""
        wait_for(lambda: self._made(bucket) or self._process.poll(), "the store answers")
        if self._process.poll() is not None:
            raise RuntimeError(self.requests.read_text())

    def _made(self, bucket: str) -> bool:
        request = urllib.request.Request(f"{self.endpoint}/{bucket}", method="PUT")
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@cache
def _server() -> Server:
    return Server()


class ObjectStoreCase(DaemonTestCase):
    """Tests with a bucket of their own, which the environment describes."""

    def setUp(self) -> None:
        super().setUp()
        self.server = _server()
        self.bucket = f"lake{next(_numbers)}"
        self.store = f"s3://{self.bucket}"
        self.server.make(self.bucket)
        self.set_variables(
            AWS_ENDPOINT_URL=self.server.endpoint,
            AWS_ACCESS_KEY_ID="tests",
            AWS_SECRET_ACCESS_KEY=SECRET,
            AWS_REGION="us-east-1",
            AWS_ALLOW_HTTP="true",
        )

    def set_variables(self, **values: str) -> None:
        """Set variables of the environment for the time of the test."""
        before = {name: os.environ.get(name) for name in values}
        os.environ.update(values)
        self.addCleanup(_restore, before)


class Commands:
    """A process that runs ``disque-pipeline`` again and again, with the environment of now."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.acceptance.spark.commands"],
            env=package_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self._process.__exit__, None, None, None)

    def run(self, *words: object) -> tuple[int, str]:
        """The exit status and the output of a command."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([str(word) for word in words]) + "\n")
        self._process.stdin.flush()
        status, output = json.loads(self._process.stdout.readline())
        return int(status), str(output)


@cache
def shared_commands() -> Commands:
    """The process of all tests of object stores: what one test starts, the next ones use."""
    return Commands()


def package_environment() -> dict[str, str]:
    """For a process that runs modules of the tests and the package."""
    paths = (str(SOURCE), str(_ROOT), os.environ.get("PYTHONPATH", ""))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def _restore(before: Mapping[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


_Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


def _printing(application: _Application) -> _Application:
    """One request at a time, as moto does not look and write in one step."""
    lock = Lock()

    def serve(request: dict[str, Any], begin: Any) -> Iterable[bytes]:
        if request["REQUEST_METHOD"] == "PUT":
            print("PUT", request["PATH_INFO"], request.get("HTTP_IF_NONE_MATCH", "-"), flush=True)
        with lock:
            return list(application(request, begin))

    return serve


def main(port: str) -> None:
    """Serve until killed."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import run_simple

    application = DomainDispatcherApplication(create_backend_app)
    run_simple("127.0.0.1", int(port), _printing(application), threaded=True)


if __name__ == "__main__":
    main(sys.argv[1])
