"""Commands for an agent, wherever it runs, and their results. Everything here can be pickled.

A command carries an id, a UUIDv7, which becomes the id of the first event that the command leaves. So a command is
idempotent: it can be sent again if the process that had it is lost. Made by `agent_ref.py` and `agent_system.py`, and
executed by `hosting/host.py`.
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
from everlog.actors.mail.letters import Letter, ReplyLetter
from everlog.actors.rules.approvals import Decision
from everlog.events import BadInput, Event, Record


class SessionCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """Capabilities that a caller grants an agent. Passed each time, never logged: a log makes no process run code."""

    tools: Sequence[Tool] = ()
    """The user's own functions."""
    base_url: str = ""
    """URL of the model endpoint; empty: the one that the environment names."""
    grants: Grants = NO_GRANTS
    """Resources that the functions may reach."""
    code_digest: str = ""
    """Digest of the functions' code if they come from another process; empty: they are of this process."""

    @property
    def same(self) -> tuple[object, ...]:
        """Comparison key: equal for two capabilities that allow the same, with the same code."""
        tools = tuple((tool.name, tool.sha256, tool.effect, tool.timeout_s) for tool in self.tools)
        return (tools, self.code_digest, self.base_url, self.grants)


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """The root of all commands."""

    repeats: ClassVar[bool] = True
    """True if the command may be sent again after its process is gone."""

    id: str
    capabilities: SessionCapabilities | None = None
    """None: the capabilities that were granted last."""
    by: str = ""
    """Id of the key whose holder sent the command over HTTP; the first event that the command leaves names it."""

    def __post_init__(self) -> None:
        """Raise BadInput if a field for text or a whole number has a value of another type."""
        for name, kind in _plain(type(self)):
            value = getattr(self, name)
            if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                raise BadInput(f"`{name}` is {'text' if kind is str else 'a whole number'}, not {value!r}.")


@cache
def _plain(kind: type[Command]) -> Sequence[tuple[str, type]]:
    """Return the fields of a command that are text or whole numbers."""
    return [(field.name, field.type) for field in msgspec.structs.fields(kind) if field.type in (str, int)]


class OpenAgent(Command, frozen=True, kw_only=True):
    """Load the agent into memory, create it if it does not exist, and configure it. The value is an `OpenReport`."""

    settings: Settings = Settings()
    create: bool = True
    """True: an agent that does not exist is created."""
    take_over: bool = False
    """Fence the process that has the agent open."""
    keep_configuration: bool = False
    """For a command that runs no turn, such as setting a timer: the agent is not configured again."""
    command: str = "everlog"
    """Command that a person reads when the agent is busy."""


class SendInput(Command, frozen=True, kw_only=True):
    """Send an input; the value is its Record. Further records follow as they become durable, until the turn ends."""

    event: Event
    preview: bool = False
    """True: the caller gets previews of replies while they are streamed."""


class FireTimer(Command, frozen=True, kw_only=True):
    """Report a due timer. The value is True if a heartbeat was appended; a timer that is no longer due does nothing."""

    timer: str
    due_at: int
    """Microseconds UTC."""
    late: bool = False


class DeliverLetter(Command, frozen=True, kw_only=True):
    """Deliver a message of another agent, or an answer. The value is True; a letter that is known changes nothing."""

    letter: Letter | ReplyLetter


class ResumeTurns(Command, frozen=True, kw_only=True):
    """Finish the unfinished turns."""

    preview: bool = False
    """Same as in `SendInput`."""


class CancelTurn(Command, frozen=True, kw_only=True):
    """Cancel the running turn. The value is the list of cancelled turns, empty if none is open.

    Committed records of the turn stay. A call that had started outside gets a result that says so.
    """

    every: bool = False
    """True: cancel all unfinished turns."""
    turn: int = 0
    """Number of the turn to cancel, if it is unfinished; 0: the running one."""


class WatchAgent(Command, frozen=True, kw_only=True):
    """Subscribe to records without a caller: timed heartbeats, and the turns that they start.

    The subscription expires after a while and is renewed by live clients, so that a dead client receives nothing. The
    value is the seq up to which all records were delivered.
    """

    repeats: ClassVar[bool] = False


class RetryTurn(Command, frozen=True, kw_only=True):
    """Exclude the newest turn that a user opened and all that follows, and send the same message again."""

    preview: bool = False
    """Same as in `SendInput`."""


class HideTurns(Command, frozen=True, kw_only=True):
    """Exclude the newest turns from the context. The value is their numbers."""

    turns: int = 1


class RethinkReply(Command, frozen=True, kw_only=True):
    """Replace the text of the agent's last monologue."""

    text: str


class ConfigureAgent(Command, frozen=True, kw_only=True):
    """Configure the agent. The value is an `OpenReport`."""

    settings: Settings


class SetTimer(Command, frozen=True, kw_only=True):
    """Schedule a heartbeat at a time, repeated if `every_s` or `cron` is set. The value is the timer's name."""

    timer: str
    """Empty: timer-1, or the first name of that form that is free."""
    text: str
    due_at: int
    """Microseconds UTC."""
    every_s: int = 0
    """Seconds between heartbeats; 0: only one."""
    cron: str = ""
    """Schedule in the five fields of a crontab, in the zone `zone`; empty: none. See `timer_schedules`."""
    zone: str = ""


class CancelTimer(Command, frozen=True, kw_only=True):
    """Cancel a timer. The value is True if the timer existed."""

    timer: str


class InsertMemory(Command, frozen=True, kw_only=True):
    """Store a text in archival memory. The value is its memory id, or the id of a memory that holds the same text."""

    text: str
    tags: Sequence[str] = ()


class InsertMemories(Command, frozen=True, kw_only=True):
    """Store many texts in one commit. The value is a list: for each text, the id of the memory that holds it."""

    texts: Sequence[str]
    tags: Sequence[str] = ()


class UpdateMemory(Command, frozen=True, kw_only=True):
    """Replace the text of a memory."""

    memory_id: str
    text: str
    tags: Sequence[str] | None = None
    """The complete new tags; None: the tags stay."""


class DeleteMemory(Command, frozen=True, kw_only=True):
    """Delete a memory."""

    memory_id: str


class AddBlock(Command, frozen=True, kw_only=True):
    """Add a memory block to the agent."""

    label: str
    value: str
    limit: int
    description: str = ""
    read_only: bool = False


class ChangeBlock(Command, frozen=True, kw_only=True):
    """Change a memory block; None leaves a field unchanged. The value is False if nothing changed."""

    label: str
    value: str | None = None
    limit: int | None = None
    description: str | None = None
    read_only: bool | None = None
    base: int | None = None
    """Seq of the record whose value the edit was made from; None: any. If the block has another value by now, the
    command raises EditConflict.
    """


class RemoveBlock(Command, frozen=True, kw_only=True):
    """Remove a memory block from core memory."""

    label: str


class AttachSource(Command, frozen=True, kw_only=True):
    """Attach a source, so that the agent can search its documents. The value is False if it was attached already."""

    source: str


class DetachSource(Command, frozen=True, kw_only=True):
    """Detach a source: the agent no longer searches its documents. The value is False if it was not attached."""

    source: str


class FollowBlock(Command, frozen=True, kw_only=True):
    """Attach a shared block to the agent's core memory. The value is False if it is attached already."""

    block: str
    label: str = ""
    """Label of the block in the agent's core memory; empty: the name of the block."""


class UnfollowBlock(Command, frozen=True, kw_only=True):
    """Detach a shared block from the agent's core memory. The value is False if it was not attached."""

    block: str


class SummarizeContext(Command, frozen=True, kw_only=True):
    """Summarize the oldest part of the context now. The value is False if there is nothing to summarize."""

    repeats: ClassVar[bool] = False


class ExpandSummary(Command, frozen=True, kw_only=True):
    """Undo the newest summary. The value is False if there is none."""

    repeats: ClassVar[bool] = False


class DecideApproval(Command, frozen=True, kw_only=True):
    """Decide a call that waits for an approval. The value is the Record of the decision. Records of the turn follow, as
    after a `SendInput`.
    """

    decision: Decision
    preview: bool = False
    """Same as in `SendInput`."""


class ImportConversation(Command, frozen=True, kw_only=True):
    """Import a past conversation. The value is an `ImportReport`."""

    repeats: ClassVar[bool] = False

    said: Sequence[ImportedMessage]


class MoveAgent(Command, frozen=True, kw_only=True):
    """Move the agent: to a host and a log of its own, or to its shard with other agents."""

    shared: bool
    to: str = ""
    """Shard to move to; empty: the one that the agent's name has. For agents of shards only."""
    patience_s: float = 0
    """Seconds that an agent of a shard has to end its turn, while its other commands wait; then it is Busy."""


class DeleteAgent(Command, frozen=True, kw_only=True):
    """Delete the agent."""

    repeats: ClassVar[bool] = False


class OpenReport(msgspec.Struct, frozen=True, kw_only=True):
    """State of an agent when it was opened."""

    born: bool
    """True if the agent was created by this command."""
    model: str
    zone: str
    head: int
    """Seq of its last record."""
    turn: int
    """Number of its last turn."""
    waiting: int
    """Number of unfinished turns."""
    warnings: Sequence[str] = ()
    """Warnings about the log, for a person."""


class CommandResult(msgspec.Struct, frozen=True):
    """Result of a command that was carried out."""

    value: Any = None


StreamItem = Sequence[Record] | Preview | CommandResult
"""Stream of a command: the records of each commit, in order, and at the end the result. Previews of text that is not
durable yet come in between, if they were requested.
"""
