"""What the service manager hears."""

from __future__ import annotations

import os
import socket

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.services.host.systemd import Watchdog, notify


class ManagerCase(SynchronousTestCase):
    """A service manager that listens."""

    def manager(self, address: str) -> socket.socket:
        """Its socket, and the environment it starts services with."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(sock.close)
        sock.bind(address)
        sock.setblocking(False)
        shown = "@" + address[1:] if address.startswith("\0") else address
        self.patch(os, "environ", {**os.environ, "NOTIFY_SOCKET": shown})
        return sock

    def heard(self, sock: socket.socket) -> list[bytes]:
        """What has come."""
        messages = []
        try:
            while True:
                messages.append(sock.recv(1000))
        except BlockingIOError:
            return messages


class NotifyTests(ManagerCase):
    """Messages to the manager."""

    def test_path(self) -> None:
        """A socket in the file system."""
        manager = self.manager(os.path.relpath(self.mktemp()))
        notify("READY=1\nSTATUS=Serving clients")
        self.assertEqual([b"READY=1\nSTATUS=Serving clients"], self.heard(manager))

    def test_abstract(self) -> None:
        """A socket without a file, written with an at sign."""
        manager = self.manager(f"\0disque-tx-test-{os.getpid()}")
        notify("STOPPING=1")
        self.assertEqual([b"STOPPING=1"], self.heard(manager))

    def test_nobody(self) -> None:
        """Without a manager, or with one that has gone away, the service runs all the same."""
        for environment in ({}, {"NOTIFY_SOCKET": "/no/such/socket"}):
            self.patch(os, "environ", environment)
            notify("READY=1")
        manager = self.manager(os.path.relpath(self.mktemp()))
        notify("STATUS=Serving clients")
        self.assertEqual([b"STATUS=Serving clients"], self.heard(manager))


class WatchdogTests(ManagerCase):
    """Signs of life."""

    def test_twice_per_period(self) -> None:
        """The manager hears from us in time, with one message to spare."""
        manager = self.manager(os.path.relpath(self.mktemp()))
        os.environ["WATCHDOG_USEC"] = "10000000"
        clock = Clock()
        watchdog = Watchdog(clock)
        watchdog.startService()
        clock.pump([1] * 20)
        watchdog.stopService()
        self.assertEqual([b"WATCHDOG=1"] * 5, self.heard(manager))
        self.assertEqual([], clock.getDelayedCalls())

    def test_off(self) -> None:
        """Without a period nothing is sent."""
        self.patch(os, "environ", {})
        clock = Clock()
        watchdog = Watchdog(clock)
        watchdog.startService()
        self.assertEqual([], clock.getDelayedCalls())
        watchdog.stopService()
