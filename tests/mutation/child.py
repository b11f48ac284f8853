"""Tests in a process of their own, on a package with one mutant.

The process is forked from one that has imported the libraries, but nothing of the package. The
mutated module is changed when it is imported, in this process only: no file is changed.
"""

from __future__ import annotations

import gc
import io
import os
import resource
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Final, NamedTuple

from twisted.trial.reporter import MinimalReporter
from twisted.trial.runner import TestLoader, TrialRunner

from tests.mutation.operators import planted

#: The memory limit of a mutant.
_MEMORY_BYTES: Final = 2 << 30
#: How long a test may take in real time. Those of Spark may take as long as all of a lot.
_TEST_S: Final = 60
#: What most tests import, and what takes longest. Nothing that installs a reactor.
_LIBRARIES: Final = (
    "cryptography.x509",
    "hiredis",
    "hypothesis.stateful",
    "redis.asyncio",
    "twisted.application.service",
    "twisted.internet.endpoints",
    "twisted.internet.ssl",
    "twisted.trial.unittest",
    "twisted.web.server",
    "twisted.web.static",
)


class Tests(NamedTuple):
    """Test modules, or single tests, and how much processor time they may take together."""

    names: tuple[str, ...]
    limit_s: int


class _Loader(SourceFileLoader):
    """Loads a module with one of its mutants planted."""

    def __init__(self, name: str, path: str, index: int) -> None:
        super().__init__(name, path)
        self._index = index

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        source = self.get_data(path).decode()
        return compile(planted(source, self._index)[0], path, "exec")


class Planter(PathFinder):
    """Finds the one module, and plants a mutant in it."""

    def __init__(self, module: str, index: int) -> None:
        self._module = module
        self._index = index

    def find_spec(  # type: ignore[override]
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._module:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None and isinstance(spec.loader, SourceFileLoader), fullname
        spec.loader = _Loader(fullname, spec.loader.path, self._index)
        return spec


class _Reporter(MinimalReporter):
    """Writes which test failed first to a file, and ends the process when one takes too long."""

    failed = ""
    report: int
    test_s: int

    def startTest(self, method: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, self.test_s)
        super().startTest(method)

    def addError(self, test: object, error: object) -> None:
        self._note(test)
        super().addError(test, error)

    def addFailure(self, test: object, fail: object) -> None:
        self._note(test)
        super().addFailure(test, fail)

    def addUnexpectedSuccess(self, test: object, todo: object = None) -> None:
        self._note(test)
        super().addUnexpectedSuccess(test, todo)

    def _note(self, test: object) -> None:
        if not self.failed:
            self.failed = test.id()  # type: ignore[attr-defined]
            os.write(self.report, self.failed.encode())


def warm() -> None:
    """Import the libraries, for all processes that are forked later."""
    for name in _LIBRARIES:
        import_module(name)
    assert "twisted.internet.reactor" not in sys.modules
    assert not any(name.split(".")[0] == "disque_tx" for name in sys.modules)
    gc.freeze()


def start(module: str, index: int, tests: Tests, folder: str) -> int:
    """Run these tests in a new process, the leader of its group, which writes the name of the first
    one that fails to ``folder/failed``; returns its process ID. An empty ``module`` means no
    defect."""
    pid = os.fork()
    if pid:
        return pid
    status = 2
    try:
        status = 0 if _run(module, index, tests, folder) else 1
    finally:
        os._exit(status)


def _run(module: str, index: int, tests: Tests, folder: str) -> bool:
    """Whether the tests pass."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = f"{folder}/hypothesis"
    resource.setrlimit(resource.RLIMIT_CPU, (tests.limit_s, tests.limit_s))
    spark = any(name.startswith("tests.spark") for name in tests.names)
    _Reporter.test_s = tests.limit_s if spark else min(tests.limit_s, _TEST_S)
    if not spark:
        # A Java machine reserves far more addresses than it uses memory.
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    if module:
        sys.meta_path.insert(0, Planter(module, index))
    _Reporter.report = os.open(f"{folder}/failed", os.O_WRONLY | os.O_CREAT)
    runner = TrialRunner(
        _Reporter, stream=io.StringIO(), workingDirectory=f"{folder}/trial", exitFirst=True
    )
    return bool(runner.run(TestLoader().loadByNames(list(tests.names), True)).wasSuccessful())
