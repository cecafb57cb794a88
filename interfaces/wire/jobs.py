"""Jobs: work that goes on after its request was answered, as it goes over HTTP and is kept in the store."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from everlog.interfaces.wire.problems import Problem

JobKind = Literal["verify", "rerun", "erasure"]
JobState = Literal["running", "done", "failed", "lost"]


class JobProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a job is."""

    done: int
    total: int
    """0: not known."""


class JobShape(msgspec.Struct, frozen=True, kw_only=True):
    """A job."""

    job: str
    """Id of the job."""
    kind: JobKind
    agent: str
    """What the job is about."""
    state: JobState
    """`lost`: its server died, and nothing is known of it. Send the request again, with another Idempotency-Key."""
    started: datetime
    beat: datetime
    """Time at which its server said last that it goes on."""
    progress: JobProgress
    result: Mapping[str, Any] | None
    """What came of it; null until it is done."""
    problem: Problem | None
    """Reason for which it failed; null unless it did."""


class JobsQuery(msgspec.Struct, frozen=True):
    """Which jobs to list."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100


class JobList(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs, the newest first."""

    jobs: Sequence[JobShape]


class VerifyBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to replay an agent's model calls."""

    sample: Annotated[int, msgspec.Meta(ge=1, le=2**53)] | None = None
    """Number of calls to replay; null: all."""
    seed: str = ""
    """Text that selects the sample."""


class RerunBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A "what if": inputs of the past, repeated in a fork with changes."""

    fork: str
    """Name of the fork."""
    at: Annotated[int, msgspec.Meta(ge=1, le=2**53)] | str
    """First record to repeat: its seq, or a time with a zone."""
    settings: dict[str, Any] = {}
    """Changes: `model`, `window`, `system`, `blocks`."""
    turns: Annotated[int, msgspec.Meta(ge=1, le=2**53)] | None = None
    """Most turns; null: all."""
    recorded: bool = False
    """True: no model is called, the recorded replies are used."""
    live_tools: bool = False
    """True: functions that act outside may run for calls that were not recorded."""


class CompareQuery(msgspec.Struct, frozen=True):
    """Which fork to compare an agent with."""

    fork: str


class CompareShape(msgspec.Struct, frozen=True, kw_only=True):
    """An agent and one of its forks, turn by turn, as `everlog rerun --report --json` prints them."""

    agent: str
    fork: str
    comparison: Mapping[str, Any]
