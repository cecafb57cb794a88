"""What can be asked of an agent, wherever it runs, and what comes back. Everything here can be pickled.

A command carries an id, a UUIDv7: it becomes the id of the first event that the command leaves. So a command that is
sent twice, because nobody knows what became of the process that had it, counts once.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar

import msgspec

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.conversation_import import ImportedMessage
from everlog.actors.formats.reply_preview import Preview
from everlog.actors.functions.extras import NO_GRANTS, Grants
from everlog.actors.functions.tools import Tool
from everlog.events import BadInput, Event, Record


class SessionCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What those who talk to an agent lend it. Given each time and never in the log: a log makes nobody run code."""

    tools: Sequence[Tool] = ()
    """Functions of the user's own."""
    base_url: str = ""
    """Where its model is served, if not at the place that the environment names."""
    grants: Grants = NO_GRANTS
    """What its functions may reach."""
    code_digest: str = ""
    """A digest of the functions' code, where they came from another process; empty where they are of this one."""

    @property
    def same(self) -> tuple[object, ...]:
        """Equal for two means that allow the same, with the same code."""
        tools = tuple((tool.name, tool.sha256, tool.effect) for tool in self.tools)
        return (tools, self.code_digest, self.base_url, self.grants)


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """The root of all commands."""

    repeats: ClassVar[bool] = True
    """Whether it may be sent again when the process that had it is gone."""

    id: str
    capabilities: SessionCapabilities | None = None
    """None: what the agent was lent before."""

    def __post_init__(self) -> None:
        """Raises BadInput where a field that is text or a whole number was given something else."""
        for name, kind in _plain(type(self)):
            value = getattr(self, name)
            if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                raise BadInput(f"`{name}` is {'text' if kind is str else 'a whole number'}, not {value!r}.")


@cache
def _plain(kind: type[Command]) -> Sequence[tuple[str, type]]:
    """The fields of a command that are text or whole numbers."""
    return [(field.name, field.type) for field in msgspec.structs.fields(kind) if field.type in (str, int)]


class OpenAgent(Command, frozen=True, kw_only=True):
    """Bring the agent into memory, begin it if it does not exist, and set it up. The value is an `OpenReport`."""

    settings: Settings = Settings()
    create: bool = True
    """Whether an agent that does not exist is made."""
    take_over: bool = False
    """Fence the process that has the agent open."""
    keep_configuration: bool = False
    """For what runs no turn, as a timer that is set: the agent is not set up anew, with other functions perhaps."""
    command: str = "everlog"
    """What a person reads when the agent is busy."""


class SendInput(Command, frozen=True, kw_only=True):
    """An input; the value is its Record. What follows until its turn ends is told as it becomes durable."""

    event: Event
    preview: bool = False
    """Whether the caller wants to hear what replies say while they are still coming."""


class FireTimer(Command, frozen=True, kw_only=True):
    """A timer went off. The value is whether it left a heartbeat: a timer that is not due any more does nothing."""

    timer: str
    due_at: int
    """Microseconds UTC."""
    late: bool = False


class ResumeTurns(Command, frozen=True, kw_only=True):
    """Finish the turns that are not finished."""

    preview: bool = False
    """As that of `SendInput`."""


class CancelTurn(Command, frozen=True, kw_only=True):
    """End the turn that runs, at whatever it is doing. The value is a list: its number, or nothing where none is open.

    What the turn has committed stays. A call that had started outside gets a result that says so.
    """

    every: bool = False
    """End all turns that are not finished."""


class WatchAgent(Command, frozen=True, kw_only=True):
    """Hear what happens without a caller: timed heartbeats, and what an agent does of them.

    It ends after a while, and is said again by who still listens: nobody hears for one who is gone. The value is the
    seq up to which all was told.
    """

    repeats: ClassVar[bool] = False


class RetryTurn(Command, frozen=True, kw_only=True):
    """Hide the newest turn that a user opened, and what came after it, and say the same again."""

    preview: bool = False
    """As that of `SendInput`."""


class HideTurns(Command, frozen=True, kw_only=True):
    """Hide the newest turns from the context. The value is their numbers."""

    turns: int = 1


class RethinkReply(Command, frozen=True, kw_only=True):
    """Put other words in the place of the agent's last monologue."""

    text: str


class ConfigureAgent(Command, frozen=True, kw_only=True):
    """Set the agent up anew. The value is an `OpenReport`."""

    settings: Settings


class SetTimer(Command, frozen=True, kw_only=True):
    """Have heartbeats sent, at a time and then every so often. The value is the timer's name."""

    timer: str
    """Empty: timer-1, or the first such name that is free."""
    text: str
    due_at: int
    """Microseconds UTC."""
    every_s: int = 0
    """0: once."""


class CancelTimer(Command, frozen=True, kw_only=True):
    """Send no more heartbeats for this timer. The value is whether there was one."""

    timer: str


class InsertMemory(Command, frozen=True, kw_only=True):
    """Keep a text in archival memory. The value is the memory's id; that of one which holds the same text already."""

    text: str
    tags: Sequence[str] = ()


class InsertMemories(Command, frozen=True, kw_only=True):
    """Keep many texts in one commit. The value is a list of ids: for each text that of the memory which holds it."""

    texts: Sequence[str]
    tags: Sequence[str] = ()


class UpdateMemory(Command, frozen=True, kw_only=True):
    """Put another text in the place of a memory."""

    memory_id: str
    text: str
    tags: Sequence[str] | None = None
    """All of the new tags; None: those that it has stay."""


class DeleteMemory(Command, frozen=True, kw_only=True):
    """Delete a memory."""

    memory_id: str


class AddBlock(Command, frozen=True, kw_only=True):
    """Give the agent another memory block."""

    label: str
    value: str
    limit: int
    description: str = ""
    read_only: bool = False


class ChangeBlock(Command, frozen=True, kw_only=True):
    """Change a memory block; None leaves a thing as it is. The value is False where nothing is otherwise."""

    label: str
    value: str | None = None
    limit: int | None = None
    description: str | None = None
    read_only: bool | None = None


class RemoveBlock(Command, frozen=True, kw_only=True):
    """Take a memory block out of core memory."""

    label: str


class AttachSource(Command, frozen=True, kw_only=True):
    """Let the agent search the documents of a source. The value is False if it could already."""

    source: str


class DetachSource(Command, frozen=True, kw_only=True):
    """Keep the documents of a source from the agent. The value is False if it could not search them."""

    source: str


class FollowBlock(Command, frozen=True, kw_only=True):
    """Have a shared block in the agent's core memory. The value is False if it is there already."""

    block: str
    label: str = ""
    """What the agent calls it; empty: as it is called."""


class UnfollowBlock(Command, frozen=True, kw_only=True):
    """Take a shared block out of the agent's core memory. The value is False if it was not there."""

    block: str


class SummarizeContext(Command, frozen=True, kw_only=True):
    """Summarize the oldest part of the context now. The value is False if there is nothing to summarize."""

    repeats: ClassVar[bool] = False


class ExpandSummary(Command, frozen=True, kw_only=True):
    """Take the newest summary back. The value is False if there is none."""

    repeats: ClassVar[bool] = False


class ImportConversation(Command, frozen=True, kw_only=True):
    """Import a past conversation. The value is an `Imported`."""

    repeats: ClassVar[bool] = False

    said: Sequence[ImportedMessage]


class MoveAgent(Command, frozen=True, kw_only=True):
    """Let the agent live elsewhere: with a host and a log of its own, or among others in its shard."""

    shared: bool


class DeleteAgent(Command, frozen=True, kw_only=True):
    """End the agent."""

    repeats: ClassVar[bool] = False


class OpenReport(msgspec.Struct, frozen=True, kw_only=True):
    """An agent as it is when it was opened."""

    born: bool
    """Whether it was made just now."""
    model: str
    zone: str
    head: int
    """Seq of its last record."""
    turn: int
    """Its last turn."""
    waiting: int
    """Turns that are not finished."""
    warnings: Sequence[str] = ()
    """What a person should know of its log."""


class CommandResult(msgspec.Struct, frozen=True):
    """The command was carried out."""

    value: Any = None


StreamItem = Sequence[Record] | Preview | CommandResult
"""What comes back of a command: the records of each commit, in order, and at last that it is done. In between, for who
asks for them, previews of what is not durable yet.
"""
