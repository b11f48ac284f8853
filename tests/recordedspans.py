"""OpenTelemetry's SDK with spans in memory, for tests."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from disque_tx.client.steps import tracing


class Spans:
    """What a program with a set-up SDK would export."""

    def __init__(self) -> None:
        try:
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import SimpleSpanProcessor
            from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
        except ImportError as error:
            raise SkipTest("opentelemetry-sdk is missing; the extra 'test' has it.") from error
        self._exporter: Any = InMemorySpanExporter()
        self.provider: Any = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracing = tracing.Tracing(self.provider)

    def finished(self, prefix: str = "") -> list[Any]:
        """The spans that have ended, oldest first, whose names begin like this."""
        return [
            span for span in self._exporter.get_finished_spans() if span.name.startswith(prefix)
        ]

    def names(self) -> list[str]:
        """Their names."""
        return [span.name for span in self.finished()]

    def only(self, prefix: str) -> Any:
        """The one that begins like this."""
        (span,) = self.finished(prefix)
        return span


def recording(case: SynchronousTestCase) -> Spans:
    """Record spans until the end of the test."""
    spans = Spans()
    case.patch(tracing, "ACTIVE", spans.tracing)
    case.patch(tracing, "_looked", True)
    return spans
