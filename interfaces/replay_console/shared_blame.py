"""Trace the words of a shared block to the agents that wrote them, and to the records of those agents.

The words of a shared block are those of its own stream, of which an agent's log has copies. An edit names its author,
and the author's log has the edited block in the turn of the edit. Used by `everlog blame` and by the console.
"""

from argparse import Namespace
from collections.abc import Collection, Mapping, Sequence

import msgspec

from everlog.actors.agent.agent_view import AgentView
from everlog.actors.memory.shared_block_service import BlockVersion
from everlog.events import BadInput, MemoryEdited, Record, UnknownAgent, event_of
from everlog.interfaces.common.bootstrap import open_view, system_of
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.manage.shared_commands import reading
from everlog.interfaces.replay_console.word_blame import BlockValue, blamed
from everlog.interfaces.replay_console.word_origin import INPUT_RECORDS_MAX, input_of


class SharedBlockWords(msgspec.Struct, frozen=True, kw_only=True):
    """Words of a shared block next to each other that one edit put there."""

    text: str
    seq: int
    """Seq of the agent's own record that brought the words into its memory."""
    block: str
    edit: BlockVersion
    record: Record | None
    """Record of the author that holds the edited block; None: a person edited it, or the author's log has none."""
    input: Record | None
    """Input of the turn in which the author edited it."""


def shared_words(
    args: Namespace, world: CommandEnvironment, view: AgentView, values: Sequence[BlockValue]
) -> list[SharedBlockWords] | None:
    """Return the words of a block by the edits of the shared block that it follows. `values`: those that it had in the
    agent's memory, oldest first. None: it follows none, or the shared block is not there to be read.
    """
    copies = [
        (value, event)
        for value in values
        if isinstance(event := event_of(next(view.reader.read(view.agent_id, value.seq))), MemoryEdited)
        and event.origin
    ]  # fmt: skip
    if not copies or copies[-1][0] is not values[-1]:
        return None
    newest = copies[-1][1]
    try:
        edits = reading(args, world).history(newest.origin)
    except BadInput:  # the agent was imported from another store, which has the block
        return None
    versions = {one.version: one for one in edits if one.version <= newest.origin_version}
    if not versions or versions[max(versions)].value != values[-1].value:
        return None
    mine = [(event.origin_version, value.seq) for value, event in copies if event.origin == newest.origin]
    found = []
    for part in blamed((one.version, one.value) for one in versions.values()):
        edit = versions[part.seq]
        record, said = _written(args, world, newest.origin, edit) if edit.author else (None, None)
        seq = next(seq for version, seq in mine if version >= part.seq)
        found.append(
            SharedBlockWords(text=part.text, seq=seq, block=newest.origin, edit=edit, record=record, input=said)
        )  # fmt: skip
    return found


def author_records(view: AgentView, block: str, versions: Collection[int]) -> Mapping[int, Record]:
    """Return an author's own records of its edits of a shared block, by version: those that hold the edited block.

    `view`: that of the author. `versions`: those that the author made. A version of which its log has none is left out.
    """
    copies = []
    for row in sorted(view.rows("memory_history"), key=lambda row: row["seq"]):
        record = next(view.reader.read(view.agent_id, row["seq"]))
        event = event_of(record)
        if isinstance(event, MemoryEdited) and event.origin == block:
            copies.append((event.origin_version, record))
    firsts = {made: next((record for has, record in copies if has >= made), None) for made in versions}
    return {made: record for made, record in firsts.items() if record is not None}


def _written(
    args: Namespace, world: CommandEnvironment, block: str, edit: BlockVersion
) -> tuple[Record | None, Record | None]:
    """Return the author's own record of an edit, and the input of its turn."""
    try:
        with open_view(system_of(args, world), edit.author, notify=False) as view:
            record = author_records(view, block, [edit.version]).get(edit.version)
            if record is None:
                return None, None
            return record, input_of(
                list(view.reader.read(view.agent_id, max(1, record.seq - INPUT_RECORDS_MAX), record.seq))
            )
    except UnknownAgent:
        return None, None
