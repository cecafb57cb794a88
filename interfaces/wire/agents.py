"""Agents and their settings, as they go over HTTP."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

from everlog.actors.agent.agent_setup import Settings

PlacementName = Literal["dedicated", "shared"]


class AgentQuery(msgspec.Struct, frozen=True):
    """Selection and page of a listing of agents."""

    limit: int = 100
    """Number of agents on a page, from 1 to 1,000."""
    cursor: str = ""
    """`next` of the page before; empty: the first page."""
    as_of: str | None = None
    """Time with a zone: only records up to then count."""
    deleted: bool = False
    """True: deleted agents too."""
    check: bool = False
    """True: check the register of agents, which reads the end of each log. A tenant is told nothing of it."""


class AgentRow(msgspec.Struct, frozen=True, kw_only=True):
    """One agent of a listing."""

    agent: str
    """Name of the agent in its log."""
    name: str
    """Newest name of the agent."""
    events: int
    messages: int
    turns: int
    head: int
    """Seq of the last record."""
    last_active: datetime | None
    deleted: bool
    parent: str | None
    """Agent that a fork was made from."""
    parent_seq: int | None
    """Last record that a fork shares with its parent."""


class AgentPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some agents, sorted by name."""

    agents: Sequence[AgentRow]
    next: str | None
    """Cursor of the next page; null: this is the last."""
    damaged: Sequence[str] = ()
    """Errors of logs that could not be read, whose agents are left out; with `check` those of the register, too."""
    unlisted: Sequence[str] = ()
    """With `deleted`, if a log could not be read: registered agents that no page lists. On the first page only."""


class CreateAgentBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new agent."""

    name: str
    settings: dict[str, Any] = {}
    """Settings, by name; those that are left out have their defaults: model, zone and preset those of the files of
    defaults that the server has read.
    """
    placement: PlacementName | None = None
    """`shared`: in a log with other agents, for fleets; `dedicated`: in a log of its own. null: as the server says."""


class ConfigureBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings to change."""

    settings: dict[str, Any]
    """Settings, by name; those that are left out stay."""


class AgentReport(msgspec.Struct, frozen=True, kw_only=True):
    """State of an agent after it was created or configured."""

    agent: str
    created: bool
    """True if this request created the agent."""
    model: str
    zone: str
    head: int
    turn: int
    waiting: int
    """Number of unfinished turns."""


class AgentShape(msgspec.Struct, frozen=True, kw_only=True):
    """One agent at a moment."""

    agent: str
    as_of: int
    """Seq of the moment."""
    head: int
    messages: int
    memories: int
    """Texts in archival memory."""
    turn: int
    """Number of the last turn; 0: none."""
    waiting: int
    """Number of unfinished turns."""
    deleted: bool
    settings: Mapping[str, Any]
    """Empty if the configuration was erased."""
    functions: Sequence[str]
    names: Sequence[str] = ()
    """Other names that the agent has today, the oldest first."""
    partition: str = ""
    """Log that the agent is in today: one of its own, or one that agents share."""


class MomentQuery(msgspec.Struct, frozen=True):
    """Moment of a reading request."""

    as_of: str | None = None
    """Seq, or time with a zone; left out: now."""


class DeleteQuery(msgspec.Struct, frozen=True):
    """Extent of a deletion."""

    with_forks: bool = False
    """True: the forks of the agent too."""


class DeletedAgents(msgspec.Struct, frozen=True, kw_only=True):
    """Agents that were deleted. Their records stay until they are erased."""

    deleted: Sequence[str]


class ForkBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fork to make."""

    name: str
    at: str | int | None = None
    """Seq, or time with a zone, from which the fork continues; null: now."""
    placement: PlacementName = "dedicated"


class ForkShape(msgspec.Struct, frozen=True, kw_only=True):
    """A fork that was made."""

    agent: str
    parent: str
    parent_seq: int
    head: int
    closed: Sequence[int]
    """Turns that were open at the fork point; the fork does not run them again."""


class MoveBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """New placement of an agent."""

    placement: PlacementName


class RenameBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another name for an agent."""

    name: str


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a request that returns nothing else."""

    done: bool = True


def settings_of(given: Mapping[str, Any]) -> Settings:
    """Return settings by their names. Raises msgspec.ValidationError for values of other types, KeyError for a name
    that is none.
    """
    known = {field.encode_name for field in msgspec.structs.fields(Settings)}
    for name in given:
        if name not in known:
            raise KeyError(name)
    return msgspec.convert(dict(given), Settings)
