"""Encode spans as OTLP/JSON: the body of a request to `/v1/traces` of any collector of OpenTelemetry. Pure.

The format is protobuf's mapping to JSON with two exceptions of OTLP: ids are hexadecimal, and enums are numbers. A file
of such bodies, one a line, is what OpenTelemetry's file exporter writes. Used by `everlog traces`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.reports.span_attributes import AttributeValue
from everlog.actors.reports.trace_spans import TraceSpan

KINDS = {"internal": 1, "client": 3}
STATUS_ERROR = 2


def otlp_body(spans: Sequence[TraceSpan], version: str) -> bytes:
    """Return the body of one request with the spans. `version`: that of everlog."""
    resource = {"service.name": "everlog", "service.version": version}
    scope = {"name": "everlog", "version": version}
    scoped = {"scope": scope, "spans": [_span(span) for span in spans]}
    body = {"resourceSpans": [{"resource": {"attributes": _attributes(resource)}, "scopeSpans": [scoped]}]}
    return msgspec.json.encode(body)


def _span(span: TraceSpan) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "name": span.name,
        "kind": KINDS[span.kind],
        "startTimeUnixNano": str(span.start * 1000),
        "endTimeUnixNano": str(span.end * 1000),
        "attributes": _attributes(span.attributes),
        "status": {},
    }
    if span.parent_id:
        shape["parentSpanId"] = span.parent_id
    if span.error:
        shape["status"] = {"code": STATUS_ERROR, **({"message": span.message} if span.message else {})}
    return shape


def _attributes(attributes: Mapping[str, AttributeValue]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: AttributeValue) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case str():
            return {"stringValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case _:
            return {"arrayValue": {"values": [_value(one) for one in value]}}
