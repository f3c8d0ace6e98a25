"""Turns traces on: OpenTelemetry's SDK behind `ports.tracing`, loaded only then.

| setting `traces`  | spans go                                                                                  |
|-------------------|-------------------------------------------------------------------------------------------|
| `auto`            | as `otlp` where OTEL_EXPORTER_OTLP_ENDPOINT (or …_TRACES_ENDPOINT) is set, else nowhere   |
| `off`             | nowhere                                                                                   |
| `otlp`            | to a collector by OTLP over HTTP, configured by OTEL_* variables                          |
| `file:PATH`       | to a file, one JSON object a line; several services may write to the same one             |
"""

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from gardenbus.common.ports import tracing

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter

FILE = "file:"
FLUSH_SECONDS = 2.0
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_NANOSECONDS = 1_000_000_000

Ended = Callable[[], None]


def configure_tracing(service: str, traces: str, *, instance: str, environ: Mapping[str, str]) -> Ended:
    """Record this process's spans by the setting; returns the function that ends it. See the module."""
    if traces == "auto":
        traces = "otlp" if any(environ.get(name) for name in _ENDPOINTS) else "off"
    if traces == "off":
        return lambda: None
    return _start(service, traces, instance, environ)


def _start(service: str, traces: str, instance: str, environ: Mapping[str, str]) -> Ended:
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415  (a tenth of a second, where traces are off)
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor  # noqa: PLC0415

    name = environ.get("OTEL_SERVICE_NAME") or f"gardenbus-{service}"
    provider = TracerProvider(
        resource=Resource.create({"service.name": name, "service.instance.id": instance}), shutdown_on_exit=False
    )
    if traces.startswith(FILE):
        provider.add_span_processor(SimpleSpanProcessor(cast("SpanExporter", _FileExporter(traces.removeprefix(FILE)))))
    else:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415

        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    tracing.install(_OpenTelemetry(provider.get_tracer("gardenbus")))

    def end() -> None:
        tracing.install(None)
        provider.force_flush(int(1000 * FLUSH_SECONDS))
        provider.shutdown()

    return end


class _OpenTelemetry:
    """`ports.tracing.Tracer` on a tracer of the SDK."""

    def __init__(self, tracer: Any) -> None:
        self._tracer = tracer

    def begin(self, name: str, parent: str, at: datetime | None, attributes: tracing.Attributes) -> tracing.Span:
        """See the port."""
        from opentelemetry.context import Context  # noqa: PLC0415
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

        context = TraceContextTextMapPropagator().extract({tracing.TRACEPARENT: parent}, context=Context())
        start = None if at is None else int(at.timestamp() * _NANOSECONDS)
        return _Span(self._tracer.start_span(name, context, start_time=start, attributes=dict(attributes)))


class _Span:
    """`ports.tracing.Span` on a span of the SDK."""

    def __init__(self, span: Any) -> None:
        self._span = span
        self._has_ended = False
        context = span.get_span_context()
        self.traceparent = f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"

    def end(self, *, failed: str = "", **attributes: str | int) -> None:
        """See the port."""
        from opentelemetry.trace import StatusCode  # noqa: PLC0415

        if self._has_ended:
            return
        self._has_ended = True
        self._span.set_attributes(attributes)
        if failed:
            self._span.set_status(StatusCode.ERROR, failed)
        self._span.end()


class _FileExporter:
    """Appends each span to a file, at once and in one write, so that lines of several processes do not mix."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def export(self, spans: "Sequence[ReadableSpan]") -> Any:
        from opentelemetry.sdk.trace.export import SpanExportResult  # noqa: PLC0415

        for span in spans:
            os.write(self._file, f"{span.to_json(indent=None)}\n".encode())
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        os.close(self._file)

    def force_flush(self, timeout_millis: int = 0) -> bool:
        del timeout_millis
        return True
