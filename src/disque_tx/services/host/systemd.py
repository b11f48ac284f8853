"""Telling systemd that the service is ready, and that it is alive (``Type=notify``)."""

from __future__ import annotations

import os
import socket
from typing import Any

from twisted.application.service import Service
from twisted.internet.task import LoopingCall


def notify(state: str) -> None:
    """Send ``state`` to the service manager, if one waits for it."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path:
        return
    address = "\0" + path[1:] if path.startswith("@") else path
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
        try:
            sock.sendto(state.encode(), address)
        except OSError:
            pass  # nobody listens: the service runs all the same


class Watchdog(Service):
    """Says twice per period that the reactor still turns; nothing without ``WATCHDOG_USEC``."""

    def __init__(self, reactor: Any) -> None:
        period_us = int(os.environ.get("WATCHDOG_USEC", "0") or 0)
        self._period_s = period_us / 2_000_000
        self._loop = LoopingCall(notify, "WATCHDOG=1")
        self._loop.clock = reactor

    def startService(self) -> None:
        """Begin."""
        super().startService()
        if self._period_s:
            self._loop.start(self._period_s)

    def stopService(self) -> None:
        """Say no more."""
        super().stopService()
        if self._loop.running:
            self._loop.stop()
