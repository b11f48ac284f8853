"""The settings of a policy: names, types, ranges and defaults, in one table.

A value is kept as the text that a client gave, in its normal form, because nodes of a later version
may know settings that this one does not. What this version can use of the values for one queue is
a :class:`QueuePolicy`.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.errors import CommandError
from disque_tx.messages.limits import (
    COUNTER_MAX,
    DELAY_RANGE,
    QUEUE_BYTES_MAX,
    REPLICATE_RANGE,
    RETRY_RANGE,
    SECONDS_MAX,
    TTL_RANGE,
    U32_MAX,
)
from disque_tx.messages.tables import VALUE_BYTES_MAX
from disque_tx.text.quoting import quote, split

_DAY_S: Final = 86_400
_SECONDS: Final = " of seconds"
_RATE_MAX: Final = 1_000_000
#: Queues of ``copy-to``.
QUEUES_MAX: Final = 16
#: Digits behind the point of a number, and in all: nothing longer is computed with.
_DECIMALS_MAX: Final = 3
_DIGITS_MAX: Final = 12

#: Where ``dead-queue`` names the queue of the job.
QUEUE_MARK: Final = b"{queue}"

#: ``overflow``.
REJECT: Final = 0
DROP_OLDEST: Final = 1
OVERFLOWS: Final = (b"reject", b"drop-oldest")
#: ``retry-from``.
RETRY_FROMS: Final = (b"queueing", b"delivery")
#: ``pause``, by the flags of :mod:`disque_tx.core.queues.queues`.
PAUSES: Final = (b"none", b"in", b"out", b"all")
_YES_NO: Final = (b"no", b"yes")


def dead_queue(queue: bytes) -> bytes:
    """Where the dead letters of a queue go unless its policy names another queue."""
    return (b"dead:" + queue)[:QUEUE_BYTES_MAX]


class QueuePolicy:
    """The settings in force for one queue.

    ``max_deliveries``: 0 for no limit. ``dead_queue``: where dead letters go, empty for nowhere;
    a name that would be too long is cut.
    ``retry_delay_ms``: 0 for none; grows by ``retry_factor_milli`` / 1000 from one retry to the
    next, up to ``retry_delay_max_ms``; ``retry_jitter_milli`` / 1000 of it are random.
    ``ttl_s``, ``retry_s``, ``delay_s``, ``replicate``: what ADDJOB means without that option, -1 if
    nothing is set. ``max_length``: jobs queued at one node, 0 for no limit. ``pause``: the flags of
    a queue, -1 if nothing is set. ``copy_to``: queues to which jobs are added, too.
    ``concurrency``: jobs in flight at one node, 0 for no limit. ``rate_milli``: deliveries at one
    node per 1,000 seconds, 0 for no limit; ``rate_burst``: how many of them at once, 0 for those of
    a second. ``alert_wait_s``: for how long its first job may wait before that is a problem, 0 for
    any time.
    """

    __slots__ = (
        "alert_wait_s",
        "concurrency",
        "copy_to",
        "dead_queue",
        "dead_ttl_s",
        "delay_s",
        "max_deliveries",
        "max_length",
        "overflow",
        "pause",
        "rate_burst",
        "rate_milli",
        "replicate",
        "retry_delay_max_ms",
        "retry_delay_ms",
        "retry_factor_milli",
        "retry_from_delivery",
        "retry_jitter_milli",
        "retry_on_timeout",
        "retry_s",
        "ttl_s",
    )

    def __init__(self, queue: bytes) -> None:
        self.max_deliveries: i64 = 0
        self.dead_queue: bytes = dead_queue(queue)
        self.dead_ttl_s: i64 = 30 * _DAY_S
        self.retry_delay_ms: i64 = 0
        self.retry_delay_max_ms: i64 = 300_000
        self.retry_factor_milli: i64 = 2_000
        self.retry_jitter_milli: i64 = 200
        self.retry_on_timeout: bool = False
        self.retry_from_delivery: bool = False
        self.ttl_s: i64 = -1
        self.retry_s: i64 = -1
        self.delay_s: i64 = -1
        self.replicate: i64 = -1
        self.max_length: i64 = 0
        self.overflow: i64 = REJECT
        self.pause: i64 = -1
        self.copy_to: list[bytes] = []
        self.concurrency: i64 = 0
        self.rate_milli: i64 = 0
        self.rate_burst: i64 = 0
        self.alert_wait_s: i64 = 0


class Setting:
    """One setting. ``field``: of :class:`QueuePolicy`; ``expects``: its type and range, for
    people."""

    def __init__(self, name: bytes, field: str, expects: str) -> None:
        self.name = name
        self.field = field
        self.expects = expects

    def normal(self, value: bytes) -> bytes:
        """The normal form of a value; ``CommandError`` for one that is none."""
        found = self._normal(value)
        if found is None:
            name = self.name.decode()
            raise CommandError("ERR", f"Policy setting '{name}' must be {self.expects}")
        return found

    def _normal(self, value: bytes) -> bytes | None:
        raise NotImplementedError

    def meaning(self, value: bytes, queue: bytes) -> object:
        """What a value in its normal form is for a queue."""
        raise NotImplementedError


class NumberSetting(Setting):
    """A number from ``least`` to ``most``, with up to ``decimals`` decimals; if there may be any,
    the field is in thousandths."""

    def __init__(
        self, name: bytes, field: str, least: int, most: int, unit: str, decimals: int = 0
    ) -> None:
        kind = "a number" if decimals else "a whole number"
        super().__init__(name, field, f"{kind}{unit} from {least} to {most}")
        self._least = least
        self._most = most
        self._decimals = decimals

    def _normal(self, value: bytes) -> bytes | None:
        milli = thousandths(value)
        if not self._least * 1000 <= milli <= self._most * 1000:
            return None
        if milli % 1000 and not self._decimals:
            return None
        return show_thousandths(milli)

    def meaning(self, value: bytes, queue: bytes) -> object:
        return int(thousandths(value)) if self._decimals else int(value)


class ChoiceSetting(Setting):
    """A setting that is one of some words; the field has its place among them."""

    def __init__(self, name: bytes, field: str, words: tuple[bytes, ...]) -> None:
        listed = ", ".join([word.decode() for word in words[:-1]])
        super().__init__(name, field, f"{listed} or {words[-1].decode()}")
        self._words = words

    def _normal(self, value: bytes) -> bytes | None:
        word = value.lower()
        return word if word in self._words else None

    def meaning(self, value: bytes, queue: bytes) -> object:
        return self._words.index(value)


class SwitchSetting(ChoiceSetting):
    """A setting that is one of two words; the field is true for the second."""

    def meaning(self, value: bytes, queue: bytes) -> object:
        return value == self._words[1]


class NameSetting(Setting):
    """The name of a queue, or nothing."""

    def __init__(self, name: bytes, field: str) -> None:
        expects = f"the name of a queue of up to {QUEUE_BYTES_MAX} bytes, or empty"
        super().__init__(name, field, expects)

    def _normal(self, value: bytes) -> bytes | None:
        return value if len(value) <= QUEUE_BYTES_MAX else None

    def meaning(self, value: bytes, queue: bytes) -> object:
        return value.replace(QUEUE_MARK, queue)[:QUEUE_BYTES_MAX]


class QueuesSetting(Setting):
    """Names of queues, separated by blanks and quoted like the words of a request; or nothing."""

    def __init__(self, name: bytes, field: str) -> None:
        super().__init__(name, field, f"up to {QUEUES_MAX} names of queues, or empty")

    def _normal(self, value: bytes) -> bytes | None:
        words = split(value)
        if words is None:
            return None
        names: list[bytes] = []
        for word in words:
            if not 0 < len(word) <= QUEUE_BYTES_MAX:
                return None
            if word not in names:
                names.append(word)
        found = b" ".join([name if split(name) == [name] else quote(name) for name in names])
        return found if len(names) <= QUEUES_MAX and len(found) <= VALUE_BYTES_MAX else None

    def meaning(self, value: bytes, queue: bytes) -> object:
        return split(value) or []


def thousandths(value: bytes) -> i64:
    """A number without sign, with up to three decimals, in thousandths; -1 for anything else."""
    whole, point, rest = value.partition(b".")
    if not whole.isdigit() or len(whole) > _DIGITS_MAX or len(rest) > _DECIMALS_MAX:
        return -1
    if point and not rest.isdigit():
        return -1
    return int(whole) * 1000 + int(rest.ljust(_DECIMALS_MAX, b"0"))


def show_thousandths(milli: i64) -> bytes:
    """The number in its shortest form."""
    whole = b"%d" % (milli // 1000)
    rest = (b"%03d" % (milli % 1000)).rstrip(b"0")
    return whole + b"." + rest if rest else whole


#: Every setting that this version knows, in the order in which they are listed.
SETTINGS: Final[dict[bytes, Setting]] = {
    setting.name: setting
    for setting in (
        NumberSetting(b"max-deliveries", "max_deliveries", 0, COUNTER_MAX, ""),
        NameSetting(b"dead-queue", "dead_queue"),
        NumberSetting(b"dead-ttl", "dead_ttl_s", *TTL_RANGE, _SECONDS),
        NumberSetting(b"retry-delay", "retry_delay_ms", 0, SECONDS_MAX, _SECONDS, _DECIMALS_MAX),
        NumberSetting(
            b"retry-delay-max", "retry_delay_max_ms", 0, SECONDS_MAX, _SECONDS, _DECIMALS_MAX
        ),
        NumberSetting(b"retry-factor", "retry_factor_milli", 1, 1_000, "", _DECIMALS_MAX),
        NumberSetting(b"retry-jitter", "retry_jitter_milli", 0, 1, "", _DECIMALS_MAX),
        SwitchSetting(b"retry-on-timeout", "retry_on_timeout", _YES_NO),
        SwitchSetting(b"retry-from", "retry_from_delivery", RETRY_FROMS),
        NumberSetting(b"ttl", "ttl_s", *TTL_RANGE, _SECONDS),
        NumberSetting(b"retry", "retry_s", *RETRY_RANGE, _SECONDS),
        NumberSetting(b"delay", "delay_s", *DELAY_RANGE, _SECONDS),
        NumberSetting(b"replicate", "replicate", *REPLICATE_RANGE, ""),
        NumberSetting(b"max-length", "max_length", 0, U32_MAX, " of jobs"),
        ChoiceSetting(b"overflow", "overflow", OVERFLOWS),
        ChoiceSetting(b"pause", "pause", PAUSES),
        QueuesSetting(b"copy-to", "copy_to"),
        NumberSetting(b"concurrency", "concurrency", 0, U32_MAX, " of jobs"),
        NumberSetting(
            b"rate", "rate_milli", 0, _RATE_MAX, " of deliveries per second", _DECIMALS_MAX
        ),
        NumberSetting(b"rate-burst", "rate_burst", 1, _RATE_MAX, " of deliveries"),
        NumberSetting(b"alert-wait", "alert_wait_s", 0, SECONDS_MAX, _SECONDS),
    )
}
#: Those that limit what is delivered.
LIMITS: Final = (b"concurrency", b"rate", b"rate-burst")
#: Others that are looked at more often than when a job is added.
COPY_TO: Final = b"copy-to"
MAX_LENGTH: Final = b"max-length"
RETRY_FROM: Final = b"retry-from"


def normal_value(name: bytes, value: bytes) -> bytes:
    """The normal form of the value of a setting; ``CommandError`` for an unknown setting, and for a
    value that it cannot have."""
    setting = SETTINGS.get(name)
    if setting is None:
        raise CommandError("ERR", f"Unknown policy setting '{printable(name)}'")
    return setting.normal(value)


def is_valid(name: bytes, value: bytes) -> bool:
    """Whether this version knows the setting, and this is a value of it in its normal form."""
    setting = SETTINGS.get(name)
    if setting is None:
        return False
    try:
        return setting.normal(value) == value
    except CommandError:
        return False


def printable(word: bytes) -> str:
    """A word of a request in an error text."""
    return word[:64].decode("latin-1")


def set_value(policy: QueuePolicy, queue: bytes, name: bytes, value: bytes) -> None:
    """Put a value in its normal form in force; one that this version does not know changes
    nothing."""
    setting = SETTINGS.get(name)
    if setting is not None:
        setattr(policy, setting.field, setting.meaning(value, queue))
