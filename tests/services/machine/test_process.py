"""Information about the process, and notifications to systemd."""

from __future__ import annotations

import os
import resource
import socket

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.config.settings import Settings
from disque_tx.services.machine.process import (
    ProcessInfo,
    SystemdWatchdog,
    build_id,
    notify,
    resident_bytes,
)


class ProcessInfoTests(SynchronousTestCase):
    """Fields in INFO for monitoring programs, in order."""

    def setUp(self) -> None:
        self.info = ProcessInfo(Settings(port=7712, hz=20, config_file="/etc/d.conf"), "ab" * 20)

    def test_server(self) -> None:
        """All fields of the Server section."""
        self.assertEqual(
            "disque_version disque_git_sha1 disque_git_dirty disque_build_id os arch_bits"
            " multiplexing_api gcc_version process_id run_id tcp_port uptime_in_seconds"
            " uptime_in_days hz executable config_file",
            " ".join(name for name, _value in self.info.server()),
        )

    def test_server_values(self) -> None:
        """The values come from the settings and the process."""
        values = dict(self.info.server())
        self.assertEqual("1.0-rc1", values["disque_version"])
        self.assertEqual(str(os.getpid()), values["process_id"])
        self.assertEqual("ab" * 20, values["run_id"])
        self.assertEqual(("7712", "20"), (values["tcp_port"], values["hz"]))
        self.assertEqual("/etc/d.conf", values["config_file"])
        self.assertTrue(os.path.isabs(values["executable"]))
        self.assertTrue(0 <= int(values["uptime_in_seconds"]) < 3600)

    def test_memory(self) -> None:
        """The memory in use is at most the peak, in bytes."""
        most_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        self.assertTrue(1_000_000 < resident_bytes() <= most_bytes * 1.1)
        names = [name for name, _value in self.info.memory()]
        self.assertEqual(["used_memory_rss", "mem_allocator"], names)

    def test_cpu(self) -> None:
        """Seconds with two decimals, and how often the process was late."""
        for name, value in self.info.cpu():
            whole = name == "event_loop_delays"
            self.assertRegex(value, r"\A\d+\Z" if whole else r"\A\d+\.\d\d\Z", name)
        self.assertEqual("used_cpu_sys", self.info.cpu()[0][0])

    def test_build(self) -> None:
        """The build ID is hexadecimal and always the same."""
        self.assertRegex(build_id(), r"\A[0-9a-f]{16}\Z")
        self.assertEqual(build_id(), build_id())


class ManagerCase(SynchronousTestCase):
    """A double of the service manager."""

    def manager(self, address: str) -> socket.socket:
        """Its socket, and the environment in which it starts services."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(sock.close)
        sock.bind(address)
        sock.setblocking(False)
        shown = "@" + address[1:] if address.startswith("\0") else address
        self.patch(os, "environ", {**os.environ, "NOTIFY_SOCKET": shown})
        return sock

    def received(self, sock: socket.socket) -> list[bytes]:
        """The notifications received so far."""
        messages = []
        try:
            while True:
                messages.append(sock.recv(1000))
        except BlockingIOError:
            return messages


class NotifyTests(ManagerCase):
    """Notifications to the service manager."""

    def test_path(self) -> None:
        """The socket is in the file system."""
        manager = self.manager(os.path.relpath(self.mktemp()))
        notify("READY=1\nSTATUS=Serving clients")
        self.assertEqual([b"READY=1\nSTATUS=Serving clients"], self.received(manager))

    def test_abstract(self) -> None:
        """The socket is abstract, written with an at sign."""
        manager = self.manager(f"\0disque-tx-test-{os.getpid()}")
        notify("STOPPING=1")
        self.assertEqual([b"STOPPING=1"], self.received(manager))

    def test_no_manager(self) -> None:
        """Without a service manager, or after it ended, the service still runs."""
        for environment in ({}, {"NOTIFY_SOCKET": "/no/such/socket"}):
            self.patch(os, "environ", environment)
            notify("READY=1")
        manager = self.manager(os.path.relpath(self.mktemp()))
        notify("STATUS=Serving clients")
        self.assertEqual([b"STATUS=Serving clients"], self.received(manager))


class WatchdogTests(ManagerCase):
    """Keep-alive notifications."""

    def test_twice_per_period(self) -> None:
        """Notifications are sent twice per period, so that one may be late."""
        manager = self.manager(os.path.relpath(self.mktemp()))
        os.environ["WATCHDOG_USEC"] = "10000000"
        clock = Clock()
        watchdog = SystemdWatchdog(clock)
        watchdog.startService()
        clock.pump([1] * 20)
        watchdog.stopService()
        self.assertEqual([b"WATCHDOG=1"] * 5, self.received(manager))
        self.assertEqual([], clock.getDelayedCalls())

    def test_only_while_alive(self) -> None:
        """A daemon of several processes is watched as a whole; a process that was away for a moment
        does not cost half a period."""
        manager = self.manager(os.path.relpath(self.mktemp()))
        os.environ["WATCHDOG_USEC"] = "10000000"
        clock = Clock()
        alive = [False]
        watchdog = SystemdWatchdog(clock, lambda: alive[0])
        watchdog.startService()
        clock.pump([1] * 3)
        self.assertEqual([], self.received(manager))
        alive[0] = True
        clock.pump([1] * 2)
        watchdog.stopService()
        self.assertEqual([b"WATCHDOG=1"] * 2, self.received(manager))

    def test_off(self) -> None:
        """Without a watchdog period nothing is sent."""
        self.patch(os, "environ", {})
        clock = Clock()
        watchdog = SystemdWatchdog(clock)
        watchdog.startService()
        self.assertEqual([], clock.getDelayedCalls())
        watchdog.stopService()
