"""Which processes run: starting them, starting those again that end, and stopping all.

1. The start is one of the whole daemon: when a process ends before all of them serve clients for
   the first time, the others are stopped, too, and the reason is reported.
2. Later, a process that ends is started again: at once, and after ever longer pauses, up to ten
   seconds, while it does not serve for ten seconds in a row.
3. A process reports every second. One that was silent for five is killed, which starts it again.
   When the parent itself did not run, nobody was silent. A process that is being started may be
   silent for longer.
4. Stopping: every process is asked to, and killed when it does not within nine seconds.
5. A surplus process, whose number is above ``processes``, is not started again once it was told to
   end because it is empty.

No process, clock or socket is used here but by way of the arguments.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, Final, Protocol

from twisted.internet.interfaces import IDelayedCall

from disque_tx.config.paths import os_error_text
from disque_tx.services.processes.channel import Message

SILENT_S: Final = 5.0
START_S: Final = 60.0
STOP_S: Final = 9.0
CHECK_S: Final = 1.0
BACKOFF_S_MIN: Final = 0.1
BACKOFF_S_MAX: Final = 10.0
#: A process that served for so long has recovered.
STEADY_S: Final = 10.0


class Child(Protocol):
    """A process that was started."""

    pid: int

    def send(self, message: Message, sock: socket.socket | None = None) -> None:
        """Send it a message."""

    def kill(self) -> None:
        """End it at once."""

    def signal(self, number: int) -> None:
        """Send it a signal."""


class SupervisionObserver(Protocol):
    """Who is told what became of the processes."""

    def opened(self) -> None:
        """All listen, for the first time."""

    def ready(self) -> None:
        """All serve clients, for the first time."""

    def restarting(self, number: int, how: str, pause_s: float) -> None:
        """A process has ended, ``how``, and will be started again."""

    def silent(self, number: int) -> None:
        """A process is killed because it was silent."""

    def retired(self, number: int) -> bool:
        """A surplus process has ended as it was told; whether nothing is left of it."""

    def stopped(self, reason: str) -> None:
        """All have ended. ``reason``: why, when the start failed; else empty."""


class Member:
    """One process by its number. ``child``: ``None`` while there is none. ``opened``, ``ready``:
    what the present child has reached. ``restarts``: how often it was started again. ``retiring``:
    it is to end because it is empty. ``started_s``, ``responded_s``, ``ready_s``: steady clock;
    ``responded_s`` -1 before its first message. ``why``: what it reported of its end."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.child: Child | None = None
        self.opened = False
        self.ready = False
        self.restarts = 0
        self.retiring = False
        self.started_s = 0.0
        self.responded_s = -1.0
        self.ready_s = 0.0
        self.pause_s = 0.0
        self.why = ""
        self.timer: IDelayedCall | None = None


class Supervision:
    """``clock``: of Twisted. ``launch``: starts the process with this number."""

    def __init__(
        self, clock: Any, launch: Callable[[int], Child], outcome: SupervisionObserver
    ) -> None:
        self.members: dict[int, Member] = {}
        self.stopping = False
        self._clock = clock
        self._launch = launch
        self._outcome = outcome
        self._all_opened = False
        self._all_ready = False
        self._over = False
        self._reason = ""
        self._checked_s = 0.0
        self._check_timer: IDelayedCall | None = None
        self._kill_timer: IDelayedCall | None = None

    def start(self, numbers: list[int]) -> None:
        """Start a process for each number."""
        self._checked_s = self._clock.seconds()
        self._check_timer = self._clock.callLater(CHECK_S, self._check)
        for number in numbers:
            self.members[number] = Member(number)
        for member in self.members.values():
            self._begin(member)

    def _begin(self, member: Member) -> None:
        member.timer = None
        member.opened = member.ready = False
        member.responded_s, member.ready_s = -1.0, 0.0
        member.why = ""
        member.started_s = self._clock.seconds()
        try:
            member.child = self._launch(member.number)
        except OSError as error:
            self._clock.callLater(0, self.ended, member.number, os_error_text(error))

    # -- what processes report ---------------------------------------------------------------

    def responded(self, number: int) -> None:
        """A message of a process arrived."""
        self.members[number].responded_s = self._clock.seconds()

    def has_opened(self, number: int) -> None:
        """A process listens on its ports."""
        self.members[number].opened = True
        if not self._all_opened and all(one.opened for one in self.members.values()):
            self._all_opened = True
            self._outcome.opened()

    def is_ready(self, number: int) -> None:
        """A process serves clients."""
        member = self.members[number]
        member.ready = True
        member.ready_s = self._clock.seconds()
        if not self._all_ready and all(one.ready for one in self.members.values()):
            self._all_ready = True
            self._outcome.ready()

    def has_failed(self, number: int, why: str) -> None:
        """Keep the reason why a process is about to end."""
        self.members[number].why = why

    def retire(self, number: int) -> None:
        """A surplus process is empty: end it, for good."""
        member = self.members[number]
        if member.child is not None and not member.retiring and not self.stopping:
            member.retiring = True
            member.child.send(["stop", False])

    def ended(self, number: int, how: str) -> None:
        """The process is gone; ``how``: its status or signal, empty for status 0."""
        member = self.members[number]
        member.child = None
        was_ready_s = self._clock.seconds() - member.ready_s if member.ready else 0.0
        member.opened = member.ready = False
        if self.stopping:
            self._stopped_if_empty()
        elif member.retiring and not how and self._outcome.retired(number):
            del self.members[number]
        elif not self._all_ready:
            self._reason = f"Process {number} did not start: {member.why or how or 'it ended'}"
            self.stop()
        else:
            member.retiring = False
            self._again(member, member.why or how, was_ready_s)

    def _again(self, member: Member, how: str, was_ready_s: float) -> None:
        if was_ready_s >= STEADY_S:
            member.pause_s = 0.0
        pause_s = member.pause_s
        member.pause_s = min(max(2 * pause_s, BACKOFF_S_MIN), BACKOFF_S_MAX)
        member.restarts += 1
        self._outcome.restarting(member.number, how, pause_s)
        member.timer = self._clock.callLater(pause_s, self._begin, member)

    # -- the watchdog ------------------------------------------------------------------------

    @property
    def alive(self) -> bool:
        """Whether every process runs, and none is silent."""
        now_s = self._clock.seconds()
        return not self.stopping and all(
            one.child is not None and not self._is_silent(one, now_s)
            for one in self.members.values()
        )

    def _is_silent(self, member: Member, now_s: float) -> bool:
        if member.responded_s < 0:
            return now_s - member.started_s > START_S
        return now_s - member.responded_s > SILENT_S

    def _check(self) -> None:
        now_s = self._clock.seconds()
        late_s = now_s - self._checked_s - CHECK_S
        self._checked_s = now_s
        self._check_timer = self._clock.callLater(CHECK_S, self._check)
        for member in self.members.values():
            if late_s > CHECK_S:
                # What processes sent while this one did not run is still to be read.
                member.started_s += late_s
                member.responded_s += late_s if member.responded_s >= 0 else 0.0
            elif member.child is not None and self._is_silent(member, now_s) and not self.stopping:
                self._outcome.silent(member.number)
                member.child.kill()

    # -- stopping ----------------------------------------------------------------------------

    def stop(self, rewrite_log: bool = False) -> None:
        """Ask all processes to end, and kill those that do not. ``rewrite_log``: they write a full
        log first."""
        if self.stopping:
            return
        self.stopping = True
        for member in self.members.values():
            if member.timer is not None:
                member.timer.cancel()
                member.timer = None
            if member.child is not None:
                member.child.send(["stop", rewrite_log])
        self._kill_timer = self._clock.callLater(STOP_S, self.kill)
        self._stopped_if_empty()

    def kill(self) -> None:
        """End all processes at once."""
        for member in self.members.values():
            if member.child is not None:
                member.child.kill()

    def _stopped_if_empty(self) -> None:
        if self._over or any(member.child is not None for member in self.members.values()):
            return
        self._over = True
        for timer in (self._check_timer, self._kill_timer):
            if timer is not None and timer.active():
                timer.cancel()
        self._outcome.stopped(self._reason)
