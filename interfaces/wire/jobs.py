"""Jobs: work that continues after its request was answered, as it goes over HTTP."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from everlog.interfaces.wire.problems import Problem

JobKind = Literal["verify", "rerun", "erasure"]
JobState = Literal["running", "done", "failed", "lost"]


class JobProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a job."""

    done: int
    total: int
    """0: not known."""


class JobShape(msgspec.Struct, frozen=True, kw_only=True):
    """A job."""

    job: str
    """Id of the job."""
    kind: JobKind
    agent: str
    """Name that the job is about."""
    state: JobState
    """`lost`: its server died, and nothing is known of it. Send the request again, with another Idempotency-Key."""
    started: datetime
    beat: datetime
    """Time at which its server said last that it continues."""
    progress: JobProgress
    result: Mapping[str, Any] | None
    """Result; null until it is done. An erasure in the store forgets the results of reruns and verifications."""
    problem: Problem | None
    """Reason for which it failed; null unless it did."""


class JobsQuery(msgspec.Struct, frozen=True):
    """Choice of jobs."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100


class JobList(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs, the newest first."""

    jobs: Sequence[JobShape]


class VerifyBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Replay of the model calls of an agent."""

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
    """Fork to compare an agent with."""

    fork: str


class CompareShape(msgspec.Struct, frozen=True, kw_only=True):
    """An agent and one of its forks, turn by turn, as `everlog rerun --report --json` prints them."""

    agent: str
    fork: str
    comparison: Mapping[str, Any]
