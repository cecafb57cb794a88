"""Add derived columns to sealed files: figures out of the payloads, for questions about all agents.

The columns are derived and computed again whenever a file is written: the log's schema has none of them, and readers of
the log do not read them. `projections/sql/fleet/figured.sql` computes the same for records that are not sealed.

`parquet_file` adds the columns, and `projections/fleet_views.py` reads them. A figure that changes here must change in
that SQL file too.
"""

from typing import Any

import msgspec
import pyarrow as pa

from everlog.events import ERASED_PREFIX, INPUTS
from everlog.store.base.arrow_values import int_array, text_array, typed_array
from everlog.store.base.lazy_pyarrow import pc

FIGURES = pa.schema(
    {
        "f_tokens": pa.int64(),
        "f_asked": pa.bool_(),
        "f_kind": pa.string(),
        "f_name": pa.string(),
        "f_window": pa.int64(),
        "f_fraction": pa.float64(),
        "f_owed": pa.int64(),
    }
)
"""Derived columns. `f_tokens`: tokens of a model call. `f_asked`: true if a request was sent for that call. `f_kind`:
the failure or purpose of a model call, the result of a function ("ok", "failed", "unknown"), the reason of an abandoned
turn, the exceeded budget, or the source of an alert. `f_name`: the function. `f_window`, `f_fraction`: the context
window of a configuration, and the fraction of it at which the agent is warned. `f_owed`: what a record adds to the
open work of its turn: a reply its calls; a result -1, or 0 if it only says that a person is asked; an input 1, or 0 if
it was imported.
"""
FIGURES_VERSION = 1
"""Version of the derived columns, which the manifest has for each sealed file. Files of version 0 have no `f_owed`."""

_NOTHING = (None,) * len(FIGURES)
_ASKS = '"approval":'
"""Field of a function's result that says which call waits for a person."""


class _UsagePayload(msgspec.Struct):
    total: int = 0


class _CallPayload(msgspec.Struct):
    usage: _UsagePayload = msgspec.field(default_factory=_UsagePayload)
    context_sha256: str | None = None
    failure: str | None = None
    purpose: str = "reply"
    calls: list[msgspec.Raw] = []


class _ResultPayload(msgspec.Struct):
    name: str = ""
    ok: bool = True
    unknown: bool = False


class _EndPayload(msgspec.Struct):
    reason: str | None = None
    budget: str | None = None


class _InputPayload(msgspec.Struct):
    imported: bool = False


class _AlertPayload(_InputPayload):
    source: str = "manual"


class _ConfigurationPayload(msgspec.Struct):
    window: int | None = None
    pressure_fraction: float | None = None


_SHAPES = {
    **dict.fromkeys(INPUTS, _InputPayload),
    "model_reply": _CallPayload,
    "reply_rejected": _CallPayload,
    "model_failed": _CallPayload,
    "model_switched": _CallPayload,
    "summary": _CallPayload,
    "derivation_replied": _CallPayload,
    "function_result": _ResultPayload,
    "turn_abandoned": _EndPayload,
    "budget_exceeded": _EndPayload,
    "system_alert": _AlertPayload,
    "agent_configured": _ConfigurationPayload,
}
_DECODERS = {kind: msgspec.json.Decoder(shape).decode for kind, shape in _SHAPES.items()}


def add_derived_columns(table: pa.Table) -> pa.Table:
    """`table`, of the log's schema, with the columns of `FIGURES`."""
    kinds = table.column("type")
    places = pc.indices_nonzero(pc.is_in(kinds, text_array(_SHAPES)))
    found = [
        _figures(kind, payload)
        for kind, payload in zip(
            kinds.take(places).to_pylist(), table.column("payload").take(places).to_pylist(), strict=True
        )
    ]
    into = [len(found)] * table.num_rows
    for number, row in enumerate(places.to_pylist()):
        into[row] = number
    rows = int_array(into)
    for field, values in zip(FIGURES, zip(*found, _NOTHING, strict=True), strict=True):
        table = table.append_column(field, typed_array(values, field.type).take(rows))
    return table


def _figures(kind: str, payload: str) -> tuple[Any, ...]:
    if payload.startswith(ERASED_PREFIX):
        return _NOTHING
    try:
        facts = _DECODERS[kind](payload)
    except (msgspec.MsgspecError, UnicodeDecodeError):  # written by a newer everlog: leave the figures empty
        return _NOTHING
    if isinstance(facts, _CallPayload):
        word = facts.purpose if kind in ("reply_rejected", "derivation_replied") else facts.failure
        calls = len(facts.calls) if kind == "model_reply" else None
        return facts.usage.total, facts.context_sha256 is not None, word, None, None, None, calls
    if isinstance(facts, _ResultPayload):
        outcome = "unknown" if facts.unknown else "ok" if facts.ok else "failed"
        return None, None, outcome, facts.name, None, None, 0 if _ASKS in payload else -1
    if isinstance(facts, _EndPayload):
        return None, None, facts.reason if kind == "turn_abandoned" else facts.budget, *_NOTHING[3:]
    if isinstance(facts, _InputPayload):
        source = facts.source if isinstance(facts, _AlertPayload) else None
        return None, None, source, None, None, None, 0 if facts.imported else 1
    return None, None, None, None, facts.window, facts.pressure_fraction, None
