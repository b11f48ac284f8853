"""Spans of OpenTelemetry for jobs that are added, received and processed.

Names and attributes follow OpenTelemetry's semantic conventions for messaging. There are spans
where its package is installed (the extra ``tracing``), and they are recorded where the program has
set up its SDK; everywhere else :data:`ACTIVE` is ``None``, and nothing is imported.

The context of the producer travels in the calls of workers' tasks, as ``traceparent`` and
``tracestate`` of W3C's Trace Context. Other bodies are never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from time import time_ns
from typing import Any, Final, Protocol, TypeVar

from disque_tx.client.addresses import Address
from disque_tx.client.requests.encoding import Word

_T = TypeVar("_T")

_SYSTEM: Final = "disque"
#: The members of a task's call that carry a context; what is longer is no context.
_CARRIED: Final = ("traceparent", "tracestate")
_CARRIED_CHARACTERS_MAX: Final = 1_024
_CANCELLED: Final = "CancelledError"
#: Where the span of an ADDJOB is found that was begun before its body was made.
_SENDING: Final = "disque-sending"


class RequestSpan(Protocol):
    """The span of a request. One of both methods is called once."""

    def answered(self, address: Address, value: Any) -> None:
        """The node at this address has answered, with this value."""

    def failed(self, error: BaseException) -> None:
        """End the span of a request that was not answered, or was refused."""


class Tracing:
    """Makes spans. ``provider``: where tracers come from; the global one by default."""

    def __init__(self, provider: Any = None) -> None:
        self._trace: Any = import_module("opentelemetry.trace")
        self._context: Any = import_module("opentelemetry.context")
        propagation: Any = import_module("opentelemetry.trace.propagation.tracecontext")
        self._propagator = propagation.TraceContextTextMapPropagator()
        self._tracer = self._trace.get_tracer("disque_tx", tracer_provider=provider)

    # -- clients -----------------------------------------------------------------------------

    def begin(self, words: Sequence[Word]) -> RequestSpan | None:
        """A request is about to be made; ``None`` if it neither adds nor fetches jobs."""
        if words[0] == "ADDJOB" and len(words) > 1:
            given = self._context.get_value(_SENDING)
            if given is not None:
                return _Sending(self, given, False)
            return _Sending(self, self._producer(_shown(words[1])), True)
        return _Receiving(self) if words[0] == "GETJOB" else None

    def send(self, queue: str, add: Callable[[dict[str, str]], _T]) -> _T:
        """Call ``add`` within the span of a producer; it makes the body, with the context that it
        is passed, and adds the job. What it returns may be a Deferred."""
        span = self._producer(_shown(queue))
        current = self._trace.set_span_in_context(span)
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier, current)
        token = self._context.attach(self._context.set_value(_SENDING, span, current))
        try:
            added: Any = add(carrier)
        except BaseException as error:
            self.end(span, error)
            raise
        finally:
            self._context.detach(token)
        if hasattr(added, "addCallbacks"):
            added.addCallbacks(_then(lambda _: span.end()), _then(lambda why: self._end(span, why)))
        else:
            span.end()
        result: _T = added
        return result

    def _end(self, span: Any, failure: Any) -> None:
        self.end(span, failure.value)

    def _producer(self, queue: str) -> Any:
        kind = self._trace.SpanKind.PRODUCER
        return self._tracer.start_span(
            f"send {queue}", kind=kind, attributes=_attributes("send", queue)
        )

    def receive(self, since_ns: int, attributes: dict[str, Any], queue: str) -> Any:
        """The span of a GETJOB that began then."""
        kind = self._trace.SpanKind.CLIENT
        return self._tracer.start_span(
            f"receive {queue}".rstrip(), kind=kind, attributes=attributes, start_time=since_ns
        )

    def end(self, span: Any, error: BaseException | None = None) -> None:
        """The operation is over; ``error``: by which it failed."""
        if error is not None and type(error).__name__ != _CANCELLED:
            status = self._trace.Status(self._trace.StatusCode.ERROR, type(error).__name__)
            span.set_status(status)
            span.set_attribute("error.type", type(error).__qualname__)
            span.record_exception(error)
        span.end()

    # -- workers -----------------------------------------------------------------------------

    def process(
        self, queue: str, ids: Sequence[str], carrier: Mapping[str, str], address: Address | None
    ) -> Any:
        """The span of a handler, which is linked to the producer's. The span has no parent: a job
        may be processed long after it was added."""
        linked = self._propagator.extract(carrier, self._context.Context())
        producer = self._trace.get_current_span(linked).get_span_context()
        return self._tracer.start_span(
            f"process {queue}",
            context=self._context.Context(),
            kind=self._trace.SpanKind.CONSUMER,
            links=[self._trace.Link(producer)] if producer.is_valid else [],
            attributes={
                **_attributes("process", queue),
                **_which(ids),
                **({} if address is None else _server(address)),
            },
        )

    @contextmanager
    def current(self, span: Any) -> Iterator[None]:
        """A block in which this is the current span."""
        with self._trace.use_span(span, False, False, False):
            yield


class _Sending:
    """An ADDJOB. ``own``: its span ends with it."""

    def __init__(self, tracing: Tracing, span: Any, own: bool) -> None:
        self._tracing = tracing
        self._span = span
        self._own = own

    def answered(self, address: Address, value: Any) -> None:
        # Of ``execute`` with WITHNEW the value is an array that begins with the ID.
        value = value[0] if isinstance(value, list) else value
        job_id = value if isinstance(value, str | bytes) else getattr(value, "id", None)
        self._span.set_attributes(_server(address))
        if job_id is not None:
            self._span.set_attribute("messaging.message.id", _shown(job_id))
        if self._own:
            self._span.end()

    def failed(self, error: BaseException) -> None:
        if self._own:
            self._tracing.end(self._span, error)


class _Receiving:
    """A GETJOB. One that found nothing has no span: there would be one every few seconds."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing
        self._since_ns = time_ns()

    def answered(self, address: Address, value: Any) -> None:
        if not value:
            return
        # Of ``execute`` the value is the reply itself: a job begins with its queue and its ID.
        jobs = [job[:2] if isinstance(job, list) else (job.queue, job.id) for job in value]
        names = {queue for queue, _ in jobs}
        queue = _shown(names.pop()) if len(names) == 1 else ""
        attributes = _attributes("receive", queue) | _which([_shown(job_id) for _, job_id in jobs])
        self._tracing.receive(self._since_ns, attributes | _server(address), queue).end()

    def failed(self, error: BaseException) -> None:
        if type(error).__name__ != _CANCELLED:
            span = self._tracing.receive(self._since_ns, _attributes("receive", ""), "")
            self._tracing.end(span, error)


def _attributes(operation: str, queue: str) -> dict[str, Any]:
    attributes = {
        "messaging.system": _SYSTEM,
        "messaging.operation.type": operation,
        "messaging.operation.name": operation,
    }
    return {**attributes, "messaging.destination.name": queue} if queue else attributes


def _which(ids: Sequence[str]) -> dict[str, Any]:
    """The ID of the message, or the number of messages."""
    if len(ids) == 1:
        return {"messaging.message.id": ids[0]}
    return {"messaging.batch.message_count": len(ids)}


def _server(address: Address) -> dict[str, Any]:
    if address.path is not None:
        return {"server.address": address.path}
    return {"server.address": address.host, "server.port": address.port}


def _shown(queue: Word) -> str:
    """The name of a queue as text."""
    name = queue.encode("utf-8", "surrogateescape") if isinstance(queue, str) else queue
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)


def _then(work: Callable[[Any], object]) -> Callable[[Any], Any]:
    """A callback that leaves the result as it is."""

    def callback(result: Any) -> Any:
        work(result)
        return result

    return callback


def carried(call: Mapping[str, Any]) -> dict[str, str]:
    """The context in the call of a task, which anybody may have made."""
    found = {name: call.get(name) for name in _CARRIED}
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, str) and len(value) <= _CARRIED_CHARACTERS_MAX
    }


#: What makes spans; ``None`` where there are none.
ACTIVE: Tracing | None = None
_looked = False


def activate() -> None:
    """Make spans from now on, if OpenTelemetry is installed. Every client calls this."""
    global ACTIVE, _looked
    if _looked:
        return
    _looked = True
    if find_spec("opentelemetry") is not None:
        try:
            ACTIVE = Tracing()
        except ImportError:
            pass  # another package of the same name space, without the API
