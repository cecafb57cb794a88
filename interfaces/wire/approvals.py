"""Calls that wait for a person's approval, and decisions about them, as they go over HTTP."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

from everlog.events.times import moment


class ApprovalQuery(msgspec.Struct, frozen=True):
    """Choice of calls."""

    agent: str = ""
    """Only calls of this agent; empty: of all."""
    decided: bool = False
    """True: also calls that were decided or withdrawn."""


class ApprovalShape(msgspec.Struct, frozen=True, kw_only=True):
    """Call that waits, or waited, for a person: for an approval, or for the answer to a question."""

    agent: str
    seq: int
    """Seq of the request, by which a decision names it."""
    function: str
    arguments: str
    """JSON text as the model wrote it; for a question with blanks for its answers, in the argument `$answers`."""
    question: str | None
    """Question that the function asks a person; null: the call waits for an approval."""
    decision: Literal["waiting", "approved", "refused", "expired", "withdrawn"]
    asked_at: datetime
    expires_at: datetime | None
    """Time at which the call counts as refused; null: never."""
    decided_at: datetime | None
    decided_by: str | None
    """Id of the key with which it was decided; null: without a key."""
    reason: str
    """Words of the person who decided."""
    edited: str | None
    """JSON text of the arguments that a person put in place of the model's; null: unchanged."""


class ApprovalPage(msgspec.Struct, frozen=True, kw_only=True):
    """Calls, the oldest first."""

    approvals: Sequence[ApprovalShape]


class DecisionBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Decision about a call that waits. The answer is the run that it begins."""

    decision: Literal["approve", "refuse"]
    arguments: Mapping[str, Any] | None = None
    """Arguments to run the call with; null: those of the model. The answers to a question are among them."""
    reason: str = ""
    """Words for the model."""
    always: bool = False
    """True: calls of the function need no approval from now on. This needs the role `admin`."""
    stream: bool = False
    """True: the answer is a stream of events, as with `Accept: text/event-stream`."""
    wait: bool = True
    """False: the answer comes as soon as the decision is durable, with status 202."""


def shape_of(row: Mapping[str, Any], agent: str) -> ApprovalShape:
    """Return a row of the view `approvals` as it goes over HTTP."""
    expires = row["expires_us"]
    return ApprovalShape(
        agent=agent, seq=row["seq"], function=row["name"], arguments=row["arguments"], question=row["question"],
        decision=row["decision"],
        asked_at=row["recorded_at"], expires_at=None if expires is None else moment(expires),
        decided_at=row["ended_at"], decided_by=row["decided_by"], reason=row["reason"] or "", edited=row["edited"],
    )  # fmt: skip
