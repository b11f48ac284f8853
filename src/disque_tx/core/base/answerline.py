"""Answers that leave in the order of their requests, though they are known in another one.

A client that sends several ADDJOBs without waiting for answers has several jobs that wait for their
keys or copies. Each answer stands in the line until all before it were given. Whatever it sends
after them is executed when the line is empty (client protocol, section 20).
"""

from __future__ import annotations

from collections import deque
from typing import Final

from mypy_extensions import i64

from disque_tx.messages.records import ReplyPart, ReplySink

#: Answers in one line; the client's further requests wait until there are fewer.
LINE_MAX: Final = 1_000


class PendingAnswer:
    """The answer to one request. ``part``: what is to be sent, as soon as that is known.
    ``since_ms``: when the request was executed."""

    __slots__ = ("part", "since_ms")

    def __init__(self, part: ReplyPart | None, since_ms: i64) -> None:
        self.part: ReplyPart | None = part
        self.since_ms: i64 = since_ms


class AnswerLine:
    """The answers that a client waits for, the first of them, since ``since_ms``, about ``job_id``.

    ``waiting``: the jobs without their key or all their copies, by ID. ``due_ms``: when the first
    time-out may be over, 0 for never. ``executing``: a request is being executed, whose answer is
    collected.
    """

    __slots__ = ("_answers", "due_ms", "executing", "waiting")

    def __init__(self, job_id: bytes, since_ms: i64, due_ms: i64) -> None:
        first = PendingAnswer(None, since_ms)
        self._answers: deque[PendingAnswer] = deque((first,))
        self.waiting: dict[bytes, PendingAnswer] = {job_id: first}
        self.due_ms: i64 = due_ms
        self.executing: bool = False

    def __len__(self) -> int:
        return len(self._answers)

    def is_full(self) -> bool:
        """No further request may be executed before an answer was given."""
        return len(self._answers) >= LINE_MAX

    def waits_since(self) -> i64:
        """When the first of its requests was executed whose answer is not known."""
        return self._answers[0].since_ms

    def wait_for(self, job_id: bytes, now_ms: i64) -> None:
        """The answer to the next request is known when this job has its key and copies."""
        answer = PendingAnswer(None, now_ms)
        self.waiting[job_id] = answer
        self._answers.append(answer)

    def known(self, part: ReplyPart) -> None:
        """The answer to the next request is known already."""
        self._answers.append(PendingAnswer(part, 0))

    def decided(self, job_id: bytes, replies: ReplySink, mark: int) -> None:
        """What was written to ``replies`` since ``mark`` is the answer about this job."""
        answer = self.waiting.pop(job_id)
        if answer is self._answers[0] and not self.executing:
            self._answers.popleft()
            self.give(replies)
        else:
            answer.part = replies.cut(mark)

    def give(self, replies: ReplySink) -> None:
        """Give the answers that no unknown one stands before."""
        answers = self._answers
        while answers:
            part = answers[0].part
            if part is None:
                return
            replies.paste(part)
            answers.popleft()
