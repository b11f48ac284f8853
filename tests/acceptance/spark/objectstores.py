"""An object store for tests: moto's S3, as a process, with a bucket.

As a program: serves on the port that is its argument, and prints each request that writes an
object, with its condition.
"""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from tests.acceptance.daemon import SOURCE, DaemonTestCase, free_port, wait_for

SECRET = "hidden-7f3a"
_BUCKET = "lake"
_ROOT = Path(__file__).resolve().parents[3]


class ObjectStoreCase(DaemonTestCase):
    """Tests with a store of their own, which the environment describes."""

    def setUp(self) -> None:
        super().setUp()
        port = free_port()
        self.endpoint = f"http://127.0.0.1:{port}"
        self.store = f"s3://{_BUCKET}"
        #: What the server printed.
        self.requests = self.folder() / "requests"
        self.set_variables(
            AWS_ENDPOINT_URL=self.endpoint,
            AWS_ACCESS_KEY_ID="tests",
            AWS_SECRET_ACCESS_KEY=SECRET,
            AWS_REGION="us-east-1",
            AWS_ALLOW_HTTP="true",
        )
        with self.requests.open("wb") as out:
            server = subprocess.Popen(
                [sys.executable, "-m", __name__, str(port)],
                env=package_environment(),
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        wait_for(lambda: self._made() or server.poll(), "the store answers")
        self.assertIsNone(server.poll(), self.requests.read_text())

    def set_variables(self, **values: str) -> None:
        """Set variables of the environment for the time of the test."""
        before = {name: os.environ.get(name) for name in values}
        os.environ.update(values)
        self.addCleanup(_restore, before)

    def _made(self) -> bool:
        """Whether there is a bucket now."""
        request = urllib.request.Request(f"{self.endpoint}/{_BUCKET}", method="PUT")
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


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
