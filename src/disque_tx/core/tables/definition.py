"""What a schedule is: when, how, and which job; and how it stands in the shared table.

The value of its register: quoted words, a line feed, and the body of the job::

    1 <start> <paused: 0, 1> <recurrence> <zone> <missed> <queue> <six options>

``start``: when it was set, changed or resumed, in seconds since 1970. The options are REPLICATE,
TTL, RETRY, DELAY and MAXLEN, -1 for one that was not given, and ASYNC, 0 or 1.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.jobs.addrequest import AddRequest
from disque_tx.core.tables.calendar import EVERY, EVERY_S_MAX, Recurrence
from disque_tx.errors import CommandError
from disque_tx.messages.limits import QUEUE_BYTES_MAX, REPLICATE_MAX, SECONDS_MAX
from disque_tx.messages.tables import SCHEDULE_BYTES_MAX, Register
from disque_tx.text.quoting import quote, split

#: Names of schedules, expressions with their zones, and bodies, in bytes.
NAME_BYTES_MAX: Final = 256
TEXT_BYTES_MAX: Final = 256
BODY_BYTES_MAX: Final = 16 * 1024
#: The registers of a schedule: what it is, when it was last made, and up to which time clients want
#: its occurrences left out.
DEFINITION: Final = b"definition"
LAST: Final = b"last"
SKIPPED: Final = b"skipped"
#: What becomes of occurrences that no node could make in time.
SKIP: Final = b"skip"
ONE: Final = b"one"
ALL: Final = b"all"
MISSED: Final = (SKIP, ONE, ALL)
#: Times are below this; microseconds of them fit into a machine word.
TIME_S_MAX: Final = 1 << 40

_VERSION: Final = b"1"
_WORDS: Final = 13
_NUMBER_MAX: Final = (1 << 63) - 1
_DIGITS_MAX: Final = 19


class Definition:
    """One schedule. ``counter`` and ``node``: of its register, ``bytes``: of its value.
    ``request``: its job; a copy of it is what is added."""

    __slots__ = (
        "bytes",
        "counter",
        "missed",
        "node",
        "paused",
        "recurrence",
        "request",
        "start_s",
        "text",
        "zone",
    )

    def __init__(
        self, text: bytes, zone: bytes, missed: bytes, request: AddRequest, start_s: i64
    ) -> None:
        self.text: bytes = text
        self.zone: bytes = zone
        self.missed: bytes = missed
        self.request: AddRequest = request
        self.start_s: i64 = start_s
        self.paused: bool = False
        self.bytes: i64 = 0
        self.counter: i64 = 0
        self.node: bytes = b""
        self.recurrence: Recurrence = Recurrence(text, zone, start_s)

    def new_request(self) -> AddRequest:
        """What to add for one occurrence."""
        given = self.request
        request = given.to_queue(given.queue)
        request.maxlen = given.maxlen
        return request

    def started(self, start_s: i64) -> Definition:
        """A copy of the schedule with another start."""
        request = self.new_request()
        found = Definition(self.text, self.zone, self.missed, request, start_s)
        found.paused = self.paused
        return found

    def content(self) -> list[bytes]:
        """Everything that a client set, to compare it."""
        given = self.request
        numbers = (given.replicate, given.ttl_s, given.retry_s, given.delay_s, given.maxlen)
        options = [b"%d" % number for number in numbers]
        options.append(b"%d" % given.asynchronous)
        return [self.text, self.zone, self.missed, given.queue, *options, given.body]

    def value(self) -> bytes:
        """The definition as its register holds it. Raises ``CommandError`` when that is too
        long."""
        words = self.content()
        head = [_VERSION, b"%d" % self.start_s, b"%d" % self.paused]
        head += [quote(word) for word in words[:4]]
        value = b" ".join(head + words[4:-1]) + b"\n" + words[-1]
        if len(value) > SCHEDULE_BYTES_MAX:
            raise CommandError("ERR", f"The schedule takes more than {SCHEDULE_BYTES_MAX} bytes")
        return value


def check_name(name: bytes) -> None:
    """Raise ``CommandError`` for what cannot be the name of a schedule."""
    if not name:
        raise CommandError("ERR", "A schedule needs a name")
    if len(name) > NAME_BYTES_MAX:
        raise CommandError("ERR", f"Name of a schedule longer than {NAME_BYTES_MAX} bytes")


def check_job(request: AddRequest) -> None:
    """Raise ``CommandError`` for a job that could never be added."""
    if len(request.queue) > QUEUE_BYTES_MAX:
        raise CommandError("ERR", f"Queue of a schedule longer than {QUEUE_BYTES_MAX} bytes")
    if len(request.body) > BODY_BYTES_MAX:
        raise CommandError("ERR", f"Body of a schedule longer than {BODY_BYTES_MAX} bytes")
    if request.retry_s == 0 and request.replicate != 1:
        raise CommandError(
            "ERR", "With RETRY 0 a schedule needs REPLICATE 1 (at-most-once delivery)"
        )
    if request.delay_s >= 0 and 0 <= request.ttl_s <= request.delay_s:
        raise CommandError("ERR", "The DELAY of a schedule must be less than its TTL")


def read(register: Register) -> Definition | None:
    """The schedule of a register; ``None`` for one of a later version, or that is damaged."""
    head, separator, body = register.value.partition(b"\n")
    words = split(head)
    if not separator or words is None or len(words) != _WORDS or words[0] != _VERSION:
        return None
    text, zone, missed, queue = words[3], words[4], words[5], words[6]
    if words[2] not in (b"0", b"1") or missed not in MISSED or not _is_text(text):
        return None
    start_s = _number(words[1], TIME_S_MAX)
    if start_s < 0 or len(register.pattern) > NAME_BYTES_MAX:
        return None
    request = AddRequest(queue, body)
    numbers: list[int] = []
    for word in words[7:12]:
        number = -1 if word == b"-1" else _number(word, _NUMBER_MAX)
        if number < 0 and word != b"-1":
            return None
        numbers.append(number)
    if numbers[0] > REPLICATE_MAX or max(numbers[1:4]) > SECONDS_MAX:
        return None
    request.replicate = numbers[0]
    request.ttl_s = numbers[1]
    request.retry_s = numbers[2]
    request.delay_s = numbers[3]
    request.maxlen = numbers[4]
    request.asynchronous = words[12] == b"1"
    found = Definition(text, zone, missed, request, start_s)
    found.paused = words[2] == b"1"
    found.counter = register.counter
    found.node = register.node
    return found


def _is_text(text: bytes) -> bool:
    if not text.startswith(EVERY):
        return 0 < len(text) <= TEXT_BYTES_MAX
    every_s = _number(text[len(EVERY) :], EVERY_S_MAX)
    return every_s > 0


def _number(word: bytes, most: int) -> int:
    """A number up to ``most``, -1 for anything else."""
    if not word.isdigit() or len(word) > _DIGITS_MAX:
        return -1
    number = int(word)
    return number if number <= most else -1
