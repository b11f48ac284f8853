"""The settings of a policy: names, types, ranges and defaults, in one table.

A value is kept as the text that a client gave, in its normal form, because nodes of a later version
may know settings that this one does not. What this version can use of the values for one queue is
a :class:`QueuePolicy`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from disque_tx.errors import CommandError

_UINT32_MAX: Final = 4_294_967_295
_DAY_S: Final = 86_400
_RATE_MAX: Final = 1_000_000
#: The longest name of a queue of dead letters, in bytes.
NAME_BYTES_MAX: Final = 1_024
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
#: ``pause``, by the flags of :mod:`disque_tx.core.queues`.
PAUSES: Final = (b"none", b"in", b"out", b"all")
_YES_NO: Final = (b"no", b"yes")


class QueuePolicy:
    """The settings in force for one queue.

    ``max_deliveries``: 0 for no limit. ``dead_queue``: where dead letters go, empty for nowhere.
    ``retry_delay_ms``: 0 for none; grows by ``retry_factor_milli`` / 1000 from one retry to the
    next, up to ``retry_delay_max_ms``; ``retry_jitter_milli`` / 1000 of it are random.
    ``ttl_s``, ``retry_s``, ``delay_s``, ``replicate``: what ADDJOB means without that option, -1 if
    nothing is set. ``max_length``: jobs queued at one node, 0 for no limit. ``pause``: the flags of
    a queue, -1 if nothing is set. ``concurrency``: jobs in hand at one node, 0 for no limit.
    ``rate_milli``: deliveries at one node per 1,000 seconds, 0 for no limit; ``rate_burst``: how
    many of them at once, 0 for those of a second.
    """

    __slots__ = (
        "concurrency",
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
        self.dead_queue: bytes = b"dead:" + queue
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
        self.concurrency: i64 = 0
        self.rate_milli: i64 = 0
        self.rate_burst: i64 = 0


class Setting:
    """One setting. ``expects``: its type and range, for people."""

    def __init__(self, name: bytes, expects: str) -> None:
        self.name = name
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


class Number(Setting):
    """A number with up to ``decimals`` decimals, from ``least`` to ``most``."""

    def __init__(self, name: bytes, least: int, most: int, unit: str, decimals: int = 0) -> None:
        kind = "a number" if decimals else "a whole number"
        super().__init__(name, f"{kind}{unit} from {least} to {most}")
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


class Choice(Setting):
    """One of some words."""

    def __init__(self, name: bytes, words: tuple[bytes, ...]) -> None:
        listed = ", ".join([word.decode() for word in words[:-1]])
        super().__init__(name, f"{listed} or {words[-1].decode()}")
        self._words = words

    def _normal(self, value: bytes) -> bytes | None:
        word = value.lower()
        return word if word in self._words else None


class Name(Setting):
    """The name of a queue, or nothing."""

    def __init__(self, name: bytes) -> None:
        super().__init__(name, f"the name of a queue of up to {NAME_BYTES_MAX} bytes, or empty")

    def _normal(self, value: bytes) -> bytes | None:
        return value if len(value) <= NAME_BYTES_MAX else None


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
        Number(b"max-deliveries", 0, 65_535, ""),
        Name(b"dead-queue"),
        Number(b"dead-ttl", 1, _UINT32_MAX, " of seconds"),
        Number(b"retry-delay", 0, _UINT32_MAX, " of seconds", _DECIMALS_MAX),
        Number(b"retry-delay-max", 0, _UINT32_MAX, " of seconds", _DECIMALS_MAX),
        Number(b"retry-factor", 1, 1_000, "", _DECIMALS_MAX),
        Number(b"retry-jitter", 0, 1, "", _DECIMALS_MAX),
        Choice(b"retry-on-timeout", _YES_NO),
        Choice(b"retry-from", RETRY_FROMS),
        Number(b"ttl", 1, _UINT32_MAX, " of seconds"),
        Number(b"retry", 0, _UINT32_MAX, " of seconds"),
        Number(b"delay", 0, _UINT32_MAX, " of seconds"),
        Number(b"replicate", 1, 65_535, ""),
        Number(b"max-length", 0, _UINT32_MAX, " of jobs"),
        Choice(b"overflow", OVERFLOWS),
        Choice(b"pause", PAUSES),
        Number(b"concurrency", 0, _UINT32_MAX, " of jobs"),
        Number(b"rate", 0, _RATE_MAX, " of deliveries per second", _DECIMALS_MAX),
        Number(b"rate-burst", 1, _RATE_MAX, " of deliveries"),
    )
}
#: Those that limit what is delivered.
LIMITS: Final = (b"concurrency", b"rate", b"rate-burst")


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


# -- what a value does -------------------------------------------------------------------------


def _max_deliveries(policy: QueuePolicy, queue: bytes, value: bytes) -> None:
    policy.max_deliveries = int(value)


def _dead_queue(policy: QueuePolicy, queue: bytes, value: bytes) -> None:
    policy.dead_queue = value.replace(QUEUE_MARK, queue)


def _dead_ttl(policy: QueuePolicy, queue: bytes, value: bytes) -> None:
    policy.dead_ttl_s = int(value)


def _retry_delay(policy: QueuePolicy, queue: bytes, value: bytes) -> None:
    policy.retry_delay_ms = thousandths(value)


def _retry_delay_max(policy: QueuePolicy, queue: bytes, value: bytes) -> None:
    policy.retry_delay_max_ms = thousandths(value)


def _retry_factor(policy: QueuePolicy, queue: bytes, value: bytes) -> None:
    policy.retry_factor_milli = thousandths(value)


def _retry_jitter(policy: QueuePolicy, queue: bytes, value: bytes) -> None:
    policy.retry_jitter_milli = thousandths(value)


def _retry_on_timeout(policy: QueuePolicy, queue: bytes, value: bytes) -> None:
    policy.retry_on_timeout = value == b"yes"


def _retry_from(policy: QueuePolicy, queue: bytes, value: bytes) -> None:
    policy.retry_from_delivery = value == b"delivery"


def _ttl(policy: QueuePolicy, queue: bytes, value: bytes) -> None:
    policy.ttl_s = int(value)


def _retry(policy: QueuePolicy, queue: bytes, value: bytes) -> None:
    policy.retry_s = int(value)


def _delay(policy: QueuePolicy, queue: bytes, value: bytes) -> None:
    policy.delay_s = int(value)


def _replicate(policy: QueuePolicy, queue: bytes, value: bytes) -> None:
    policy.replicate = int(value)


def _max_length(policy: QueuePolicy, queue: bytes, value: bytes) -> None:
    policy.max_length = int(value)


def _overflow(policy: QueuePolicy, queue: bytes, value: bytes) -> None:
    policy.overflow = OVERFLOWS.index(value)


def _pause(policy: QueuePolicy, queue: bytes, value: bytes) -> None:
    policy.pause = PAUSES.index(value)


def _concurrency(policy: QueuePolicy, queue: bytes, value: bytes) -> None:
    policy.concurrency = int(value)


def _rate(policy: QueuePolicy, queue: bytes, value: bytes) -> None:
    policy.rate_milli = thousandths(value)


def _rate_burst(policy: QueuePolicy, queue: bytes, value: bytes) -> None:
    policy.rate_burst = int(value)


_EFFECTS: Final[dict[bytes, Callable[[QueuePolicy, bytes, bytes], None]]] = {
    b"max-deliveries": _max_deliveries,
    b"dead-queue": _dead_queue,
    b"dead-ttl": _dead_ttl,
    b"retry-delay": _retry_delay,
    b"retry-delay-max": _retry_delay_max,
    b"retry-factor": _retry_factor,
    b"retry-jitter": _retry_jitter,
    b"retry-on-timeout": _retry_on_timeout,
    b"retry-from": _retry_from,
    b"ttl": _ttl,
    b"retry": _retry,
    b"delay": _delay,
    b"replicate": _replicate,
    b"max-length": _max_length,
    b"overflow": _overflow,
    b"pause": _pause,
    b"concurrency": _concurrency,
    b"rate": _rate,
    b"rate-burst": _rate_burst,
}


def set_value(policy: QueuePolicy, queue: bytes, name: bytes, value: bytes) -> None:
    """Put a value in its normal form in force; one that this version does not know changes
    nothing."""
    effect = _EFFECTS.get(name)
    if effect is not None:
        effect(policy, queue, value)
