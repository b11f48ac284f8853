"""Log lines about strangers, who must not be able to fill the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from disque_tx.services.host.log import DaemonLog

PERIOD_MS: Final = 10_000
_ADDRESSES_MAX: Final = 1_000


class Complaints:
    """At most one line about an address in ten seconds."""

    def __init__(self, log: DaemonLog, about: str) -> None:
        self._log = log
        self._about = about
        self._quiet_until_ms: dict[str, int] = {}

    def warn(self, ip: str, text: str, now_ms: int) -> None:
        """Write a line, unless there was one about this address a moment ago."""
        quiet = self._quiet_until_ms
        if now_ms < quiet.get(ip, now_ms):
            return
        if len(quiet) >= _ADDRESSES_MAX:
            quiet.clear()
        quiet[ip] = now_ms + PERIOD_MS
        self._log.warning(f"{self._about}, {ip}: {text}")
