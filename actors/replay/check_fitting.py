"""Check that what was done about the size of a context is what would be done today. Pure.

The estimate of tokens decides: the request is sent, or the context is first summarized or trimmed, or the turn is given
up. Used by `verify.py`.
"""

from collections.abc import Sequence

from everlog.actors.prompt import context_fit
from everlog.actors.prompt.context import Context
from everlog.events import ContextTrimmed, ReplyRejected, Summary, TurnAbandoned

AppliedMeasure = Summary | ContextTrimmed | ReplyRejected | TurnAbandoned
"""Event that a measure against a full context leaves in the log; a rejected reply only if a summary was requested."""


def sending_fault(size: int, context: Context) -> str | None:
    """Return why a request of so many bytes would not be sent today; None if it would be."""
    tokens, limit = context_fit.tokens_of(size, context), context_fit.tokens_max(context)
    if tokens <= limit:
        return None
    return f"the request would not be sent: it is estimated at {tokens:,} tokens today, and the limit is {limit:,}"


def measure_fault(taken: AppliedMeasure, size: int, context: Context, *, step: int, overflowed: bool) -> str | None:
    """Return why something else would be done today about a context whose request has `size` bytes; None if the same.

    `overflowed`: the endpoint refused the request as too long. In step 0 a person may have asked for the summary.
    """
    tokens, limit = context_fit.tokens_of(size, context), context_fit.tokens_max(context)
    would: list[context_fit.FitMeasure | None] = []
    if tokens > limit or overflowed:
        # A refusal by the endpoint overrides the estimate: the request counts as too long, whatever its estimate is.
        would.append(context_fit.measure(context, max(tokens, limit + 1)))
    if not step:
        would.append(context_fit.summarize(context))
    if any(measure is not None and _is_same(taken, measure) for measure in would):
        return None
    estimate = f"the request is estimated at {tokens:,} tokens, and the limit is {limit:,}"
    return f"this would not be done today: {estimate}, so {_worded(would)}"


def _is_same(taken: AppliedMeasure, measure: context_fit.FitMeasure) -> bool:
    match taken, measure:
        case Summary(), context_fit.SummaryMeasure():
            covers = (taken.covers_from, taken.covers_to, taken.kept_from)
            return covers == (measure.covers_from, measure.covers_to, measure.kept_from)
        case ReplyRejected(), context_fit.SummaryMeasure():
            return taken.covers_to == measure.covers_to
        case ContextTrimmed(), ContextTrimmed():
            return taken == measure
        case TurnAbandoned(), TurnAbandoned():
            return True
    return False


def _worded(would: Sequence[context_fit.FitMeasure | None]) -> str:
    match next((measure for measure in would if measure is not None), None):
        case context_fit.SummaryMeasure(covers_from=first, covers_to=last):
            return f"records {first} to {last} would be summarized"
        case ContextTrimmed(target_seq=seq, label=label, shown_chars=shown):
            return f"{f'record {seq}' if seq else f'block {label!r}'} would be shown with {shown:,} characters"
        case TurnAbandoned():
            return "the turn would be given up"
    return "it would be sent as it is"
