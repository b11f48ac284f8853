"""The daemon's log: one line per event, to a file, standard output and the system's log.

As in client protocol, section 21.6, with the year and the zone in addition: logs are kept for
longer than a year, and compared with those of other machines. The file is opened for every line, so
that it can be moved away at any time and no signal is needed to begin a new one.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Final

from twisted.logger import ILogObserver, LogEvent, LogLevel, formatEventAsClassicLogText
from zope.interface import implementer

LEVELS: Final = ("debug", "verbose", "notice", "warning")
_MARKS: Final = ".-*#"
_MAX_BYTES: Final = 1023
#: Twisted's levels in ours; what libraries call information is noise here.
_OF_TWISTED: Final = {
    LogLevel.debug: "debug",
    LogLevel.info: "debug",
    LogLevel.warn: "notice",
    LogLevel.error: "warning",
    LogLevel.critical: "warning",
}


@implementer(ILogObserver)
class DaemonLog:
    """``level``: the least important level that is written. ``path``: empty for standard output.

    ``syslog``: called with (level, text) as well, when the system's log is wanted.
    """

    def __init__(
        self,
        level: str = "notice",
        path: str = "",
        syslog: Callable[[str, str], None] | None = None,
    ) -> None:
        self.level = level
        self.path = path
        self._syslog = syslog

    def write(self, level: str, text: str) -> None:
        """Write ``text``, cut to what a line may hold, if its level is wanted."""
        if LEVELS.index(level) < LEVELS.index(self.level):
            return
        now = time.time()
        local = time.localtime(now)
        stamp = time.strftime("%d %b %Y %H:%M:%S", local)
        zone = time.strftime("%z", local)
        mark = _MARKS[LEVELS.index(level)]
        body = text.encode("utf-8", "replace")[:_MAX_BYTES].decode("utf-8", "ignore")
        self._put(f"{os.getpid()}:P {stamp}.{int(now * 1000) % 1000:03d} {zone} {mark} {body}\n")
        if self._syslog is not None:
            self._syslog(level, body)

    def _put(self, line: str) -> None:
        try:
            if self.path:
                with open(self.path, "a", encoding="utf-8") as file:
                    file.write(line)
            else:
                sys.stdout.write(line)
                sys.stdout.flush()
        except OSError:
            pass  # a full disk must not stop the queue, and there is nowhere left to log it

    def debug(self, text: str) -> None:
        """For finding faults in this program."""
        self.write("debug", text)

    def verbose(self, text: str) -> None:
        """More than an operator normally wants."""
        self.write("verbose", text)

    def notice(self, text: str) -> None:
        """What an operator wants to know."""
        self.write("notice", text)

    def warning(self, text: str) -> None:
        """What an operator must know."""
        self.write("warning", text)

    def __call__(self, event: LogEvent) -> None:
        """An event of Twisted or a library."""
        level = _OF_TWISTED.get(event.get("log_level", LogLevel.info), "notice")
        if LEVELS.index(level) < LEVELS.index(self.level):
            return
        text = formatEventAsClassicLogText(event) or ""
        failure = event.get("log_failure")
        if failure is not None:
            text = f"{text.strip()} {failure.getTraceback()}"
        for line in text.splitlines():
            self.write(level, line)


def system_log(ident: str, facility: str) -> Callable[[str, str], None]:
    """A writer to the system's log (`syslog-enabled`, `-ident`, `-facility`)."""
    import syslog

    priorities = {
        "debug": syslog.LOG_DEBUG,
        "verbose": syslog.LOG_INFO,
        "notice": syslog.LOG_NOTICE,
        "warning": syslog.LOG_WARNING,
    }
    number = int(getattr(syslog, f"LOG_{facility.upper()}"))
    syslog.openlog(ident, syslog.LOG_PID | syslog.LOG_NDELAY, number)

    def write(level: str, text: str) -> None:
        syslog.syslog(priorities[level], text)

    return write
