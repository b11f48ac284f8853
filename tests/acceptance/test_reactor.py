"""Twisted's own tests of reactors, on the daemon's reactor while it serves a node.

They wait for real time and start processes. Every test that Twisted runs on its epoll reactor is
run, with a node attached to the reactor that has a client of its own.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from disque_tx.services.net.reactor import DisqueReactor
from tests.services.runningnode import RunningNode

#: Those of ``twisted.internet.test`` that test any reactor. Left out, because they test something
#: else: ``test_base`` and ``test_posixbase`` (the classes ours is derived from, without a loop),
#: ``test_epollreactor`` (a helper of Twisted's reactor), ``test_sigchld`` (the handler alone),
#: ``test_inotify``, ``test_serialport`` and ``test_resolver`` (users of reactors).
_MODULES: Final = (
    "core",
    "fdset",
    "newtls",
    "process",
    "socket",
    "stdio",
    "tcp",
    "threads",
    "time",
    "tls",
    "udp",
    "unix",
)
#: Tests that Twisted skips on its epoll reactor by that reactor's name.
_SKIPPED: Final[dict[str, str]] = {
    "ReactorFDSetTestsBuilder_DisqueReactorTests.test_lostFileDescriptor": (
        "epoll(7) forgets a descriptor that is closed, so the loss cannot be detected"
    ),
}
_ENDING: Final = "_EPollReactorTests"
_PRIVATE: Final = "another user, as which it is started, may not run this interpreter"


def is_private(program: str) -> bool:
    """Whether a folder above the program is closed to other users."""
    return any(not folder.stat().st_mode & 0o001 for folder in Path(program).resolve().parents)


if is_private(sys.executable):
    for _case in ("ProcessTestsBuilder", "PTYProcessTestsBuilder"):
        _SKIPPED[f"{_case}_DisqueReactorTests.test_changeUID"] = _PRIVATE


def with_a_node(test: Any) -> DisqueReactor:
    """The reactor for one test, with a node whose client has just sent a request."""
    reactor = DisqueReactor()
    node = RunningNode(reactor)
    test.addCleanup(node.stop)
    client = node.dial()
    test.addCleanup(client.close)
    client.sendall(b"PING\r\n")
    return reactor


def adapted(module: ModuleType) -> dict[str, type[SynchronousTestCase]]:
    """The test cases of one of Twisted's modules, with our reactor."""
    found: dict[str, type[SynchronousTestCase]] = {}
    for name, case in vars(module).items():
        if name.endswith(_ENDING):
            own = name.replace(_ENDING, "_DisqueReactorTests")
            attributes = {"reactorFactory": with_a_node, "__module__": __name__}
            found[own] = type(own, (case,), attributes | skips(own))
    return found


def skips(case: str) -> dict[str, Any]:
    """The skipped tests of a test case."""
    found: dict[str, Any] = {}
    for name, why in _SKIPPED.items():
        owner, _, test = name.partition(".")
        if owner == case:
            found[test] = _skipped(why)
    return found


def _skipped(why: str) -> Any:
    def test(self: SynchronousTestCase) -> None:
        raise SkipTest(why)

    return test


for _name in _MODULES:
    globals().update(adapted(import_module(f"twisted.internet.test.test_{_name}")))


class CoverageTests(SynchronousTestCase):
    """What the rest of this file runs."""

    def test_all_modules(self) -> None:
        """Each of the modules has tests for the reactor, so that none drops out unnoticed."""
        for name in _MODULES:
            module = import_module(f"twisted.internet.test.test_{name}")
            self.assertTrue(adapted(module), name)

    def test_served(self) -> None:
        """The node is served while those tests run."""
        reactor = DisqueReactor()
        node = RunningNode(reactor)
        self.addCleanup(node.stop)
        with node.dial() as client:
            client.sendall(b"PING\r\n")
            reactor.iterate()
            self.assertEqual(b"+PONG\r\n", client.recv(100))
