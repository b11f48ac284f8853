"""What happened in a queue, or in all of them, over the last minutes, hours or days; as each node
has kept it, whether or not anybody looked."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

import attrs

from disque_tx.plugins import HISTORY_COUNTS, HISTORY_NUMBERS, QUEUE_BYTES_MAX
from disque_tx.protocols.http.api.base.kept import KeptAnswers
from disque_tx.protocols.http.api.base.newest import newest
from disque_tx.protocols.http.api.base.values import (
    NODES,
    NUMBER,
    REAL,
    ROOT,
    TEXT,
    array,
    schema,
    text,
)
from disque_tx.protocols.http.server.asking import SCOPE, Asked, ask, scope_of, source
from disque_tx.protocols.http.server.exchange import Exchange, Parameter
from disque_tx.protocols.http.server.problems import bad_request
from disque_tx.protocols.http.server.routes import Route
from disque_tx.protocols.http.server.slices import Share
from disque_tx.text.quoting import split

#: Steps of one question.
_STEPS: Final = 500
#: Nodes take the samples of a step in the second after it.
_LATE_S: Final = 2
#: For how long answers are kept, so that ten consoles cost little more than one.
_KEPT_S: Final = 4.0
#: Actions that are looked through for marks, and marks of one answer.
_ACTIONS: Final = 200
_MARKS_MAX: Final = 50
#: Commands that are shown as marks, and what they are.
_MARKS: Final = {"start": "restart", "qpolicy": "policy", "pause": "pause", "note": "note"}
_AT: Final = "at_ms"
_WAITS: Final = ("wait_p50_ms", "wait_p99_ms")


@attrs.frozen
class _Span:
    """``step_s``: of the ring that nodes keep. ``steps``: of it. ``merged``: how many of them are
    one sample, so that a chart has no more than a screen can show."""

    step_s: int
    steps: int
    merged: int = 1


_SPANS: Final = {
    "15m": _Span(10, 90),
    "1h": _Span(10, 360),
    "24h": _Span(60, 1_440, 4),
    "14d": _Span(900, 1_344, 4),
}


class _Sample:
    """The sums of several steps and nodes. ``steps``: those of the ring that are in it."""

    def __init__(self) -> None:
        self.steps: set[int] = set()
        self._sums = dict.fromkeys(HISTORY_NUMBERS[:HISTORY_COUNTS], 0)
        # Levels of the nodes, of which the greatest of these steps counts.
        self._levels: dict[bytes, dict[str, int]] = OrderedDict()
        self._median = 0

    def add(self, node: bytes, step: int, numbers: list[int]) -> None:
        """One step of one node."""
        self.steps.add(step)
        of = dict(zip(HISTORY_NUMBERS, numbers, strict=True))
        for name in self._sums:
            self._sums[name] += of[name]
        self._median += of[_WAITS[0]] * of["delivered"]
        levels = self._levels.setdefault(node, {})
        for name in HISTORY_NUMBERS[HISTORY_COUNTS:]:
            levels[name] = max(levels.get(name, 0), of[name])

    def value(self, name: str, covered_s: int) -> float:
        """A member of the sample."""
        if name in self._sums:
            return round(self._sums[name] / covered_s, 3)
        if name == _WAITS[0]:
            return round(self._median / max(1, self._sums["delivered"]), 3)
        of = [levels[name] for levels in self._levels.values()]
        return max(of, default=0) if name in (_WAITS[1], "oldest_ms") else sum(of)


class Histories:
    """Asks the nodes, for one listener."""

    def __init__(self) -> None:
        self._kept: KeptAnswers[dict[str, Any]] = KeptAnswers(_KEPT_S)

    async def show(self, exchange: Exchange) -> dict[str, Any]:
        """The samples of a span, oldest first, and what happened in it besides."""
        name, span = _queue_of(exchange), str(exchange.word("span"))

        async def made() -> dict[str, Any]:
            now_s = int(exchange.host.reactor.seconds())
            return await self._ask(exchange, name, _SPANS[span], now_s)

        return await self._kept.get(exchange, (scope_of(exchange), name, span), made)

    async def _ask(
        self, exchange: Exchange, name: bytes | None, span: _Span, now_s: int
    ) -> dict[str, Any]:
        last = (now_s - _LATE_S) // span.step_s - 1
        first = max(0, last - span.steps + 1)
        samples: dict[int, _Sample] = {}
        asked, share = Asked(), Share(exchange.slices)
        queue = () if name is None else (name,)
        for start in range(first, last + 1, _STEPS):
            end = min(last, start + _STEPS - 1)
            words = (b"HISTORY", b"%d" % span.step_s, b"%d" % start, b"%d" % end, *queue)
            some = await ask(exchange, scope_of(exchange), *words)
            asked.answers = some.answers
            asked.miss(some)
            for node, rows in some.answers.items():
                await share.spend(sum(map(len, rows)) * 4)
                for row in rows:
                    step, *numbers = map(int, row.split())
                    samples.setdefault(step // span.merged, _Sample()).add(node, step, numbers)
        begin_ms = first * span.step_s * 1000
        return {
            "step_s": span.step_s * span.merged,
            "span_s": span.step_s * span.steps,
            "samples": _columns(samples, span, last),
            "marks": await _marks(exchange, name, begin_ms),
            **asked.sources(),
        }


def _queue_of(exchange: Exchange) -> bytes | None:
    """The queue in the path or in the query; ``None`` for all queues."""
    if "queue" in exchange.path:
        return exchange.path["queue"]
    word = exchange.word("queue")
    if word == "":
        raise bad_request("queue must not be empty; without it, all queues are meant.")
    return None if word is None else word.encode()


def _columns(samples: dict[int, _Sample], span: _Span, last: int) -> dict[str, list[Any]]:
    """From the first sample on; steps of which no node has anything to tell are zeros."""
    places = range(min(samples), last // span.merged + 1) if samples else range(0)
    columns: dict[str, list[Any]] = {_AT: [], **{name: [] for name in HISTORY_NUMBERS}}
    for place in places:
        # Of the last sample not all steps have passed.
        steps = min(span.merged, last + 1 - place * span.merged)
        columns[_AT].append((place * span.merged + steps) * span.step_s * 1000)
        sample = samples.get(place) or _Sample()
        for name in HISTORY_NUMBERS:
            columns[name].append(sample.value(name, steps * span.step_s))
    return columns


async def _marks(exchange: Exchange, name: bytes | None, begin_ms: int) -> list[dict[str, Any]]:
    """What may explain what the charts show: restarts, notes, changes of policies, and pauses; of
    another queue's pauses nothing is said."""
    found = await newest(exchange, b"ACTIONS", _ACTIONS)
    marks: list[dict[str, Any]] = []
    for node, row in found.each():
        at_ms, command, who, what, refused, _jobs = row
        kind = _MARKS.get(command.decode())
        if kind is None or refused or at_ms < begin_ms:
            continue
        words = split(what) or [command, what]
        if kind == "pause" and name is not None and name not in words[1:2]:
            continue
        shown = b" ".join(words[1:]) if kind == "note" else what
        texts = {"kind": kind, "what": text(shown), "who": text(who)}
        marks.append({"at_ms": at_ms, **texts, **source(exchange, node)})
    marks.sort(key=lambda mark: -mark["at_ms"])
    return marks[:_MARKS_MAX][::-1]


def history_routes() -> list[Route]:
    """The samples of all queues, and of one."""
    histories = Histories()
    span = Parameter("span", "How far back", default="1h", choices=tuple(_SPANS))
    queue = Parameter("queue", "Of this queue alone", longest=QUEUE_BYTES_MAX)
    columns = schema(**{_AT: array(NUMBER)}, **{name: array(REAL) for name in HISTORY_NUMBERS})
    mark = schema(at_ms=NUMBER, kind=TEXT, what=TEXT, who=TEXT, node=TEXT, process=NUMBER)
    answer = schema(
        step_s=NUMBER, span_s=NUMBER, samples=columns, marks=array(mark), **NODES
    )  # fmt: skip
    return [
        Route(
            "GET", f"{ROOT}/history", histories.show, "Jobs over time, as the nodes have kept it,"
            " and what happened besides",
            (queue, span, SCOPE), answer=answer,
        ),
        Route(
            "GET", f"{ROOT}/queues/{{queue}}/history", histories.show, "The same of one queue",
            (span, SCOPE), answer=answer,
        ),
    ]  # fmt: skip
