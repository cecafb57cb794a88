"""Slash commands of a chat that only show something: memory, context, pressure, search, events, and /save.

Used by `chat.py`. Everything is read from the log at the moment of the command, so that what another process wrote is
shown too.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO

import msgspec
from rich.console import Console
from rich.text import Text

from everlog.actors.agent.local_system import AgentView, LocalSystem
from everlog.actors.agent_system import AgentSystem
from everlog.actors.formats import render_request
from everlog.actors.mail.names import spoken
from everlog.actors.models.model_catalogue import catalogue_of
from everlog.actors.ports.agent_constants import OFFLINE, PAGE_RESULTS
from everlog.events import MessageSent, Record, TurnsHidden, UserMessage, event_of, is_erased
from everlog.interfaces.common import time_text
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.input_text import query_and_page
from everlog.interfaces.common.newest_records import newest_first
from everlog.interfaces.common.plural import plural
from everlog.interfaces.output import json_shapes, search_pages, show_pages
from everlog.interfaces.output.terminal_output import EventLines, TerminalFrontEnd
from everlog.interfaces.show import show_commands, transcript

HISTORY_MESSAGES = 10
"""Number of earlier messages that are shown at the start."""
PAUSE_US = 600_000_000
"""Microseconds between two earlier messages above which the time is printed between them."""
EVENTS_SHOWN = 20
"""Number of events that /events shows by default."""

OpenOutput = Callable[[Path, str], AbstractContextManager[IO[bytes]]]
"""Function that opens a file of the user for writing; its second argument names the option or command in errors."""


class ChatPages:
    """Pages about one agent."""

    def __init__(
        self, system: AgentSystem, name: str, world: CommandEnvironment, out: Console, terminal: TerminalFrontEnd
    ) -> None:
        self._system = system
        self._name = name
        self._world = world
        self.out = out
        self._terminal = terminal

    @contextmanager
    def view(self) -> Iterator[AgentView]:
        """Open the current state of the agent for reading."""
        with LocalSystem(self._system.store).view(self._name) as view:
            yield view

    def note(self, text: str) -> None:
        """Print a dim line of the chat itself."""
        self.out.print(Text(sanitize(text), "dim"))

    def recent_messages(self) -> None:
        """Show the last messages since the agent was created, without those of undone turns. What another agent said
        and this one repeats as a message of its own, as groups do, is shown once.

        The log is read from its end, so the time does not depend on its length.
        """
        said: list[Record] = []
        hidden: set[int] = set()
        repeated: set[tuple[int, str]] = set()
        for record in newest_first(self._system.store.reader(self._name), self._name):
            if record.type == "agent_created":
                break
            if is_erased(record.payload):
                continue
            if record.type == TurnsHidden.kind:
                hidden.update(msgspec.json.decode(record.payload)["turns"])
            if record.type == MessageSent.kind:
                repeated.add((record.turn, record.text or ""))
            if (record.turn, _as_repeated(record)) in repeated:
                continue
            if record.type in transcript.SAID and (record.turn not in hidden or transcript.is_imported(record)):
                said.append(record)
            if len(said) > HISTORY_MESSAGES:
                self.note("Earlier messages: use /search")
                break
        now, last = self._world.clock.now(), 0
        for record in reversed(said[:HISTORY_MESSAGES]):
            at = record.recorded_at if record.said_at is None else record.said_at
            if at - last > PAUSE_US:
                self.note(f"── {time_text.relative(at, now)}")
            last = at
            mine = record.type == UserMessage.kind
            name = msgspec.json.decode(record.payload).get("name")
            who = name or ("you" if mine else self._name)
            self._terminal.said(who, record.text or "", "green" if mine else "cyan")
        if said:
            self.note("── now")

    def memory(self, label: str) -> str:
        """Show the memory blocks, or the one with the label. Return why that is not possible; empty if it is."""
        with self.view() as view:
            rows = show_commands.block_rows(view)
            labels = [str(row["label"]) for row in rows]
            if label and label not in labels:
                return f"/memory {label}: there is no such block. The blocks are {', '.join(labels)}."
            shown = [row for row in rows if label in ("", row["label"])]
            show_pages.show(show_pages.memory(view.agent_id, view.head.seq, shown, self._world.clock.now()))
        return ""

    def context(self, rest: str) -> None:
        """Show what the model sees."""
        with self.view() as view:
            shape = show_commands.context_shape(view)
        show_pages.show(show_pages.context(shape, full="full" in rest, more="/context full"))

    def dump(self, rest: str) -> None:
        """Print the last messages as the model sees them, as JSON."""
        with self.view() as view:
            messages = render_request.messages(view.context())
        count = int(rest[:9]) if rest.isdecimal() else len(messages)
        for message in messages[max(0, len(messages) - count) :]:
            self.out.print(Text(sanitize(json_shapes.line(message))), soft_wrap=True)

    def pressure(self) -> None:
        """Show how full the context window is."""
        with self.view() as view:
            show_pages.show(show_pages.pressure(show_commands.pressure_shape(view)))

    async def search(self, query: str) -> str:
        """Search the messages. Return why that is not possible; empty if it is. Raises BadInput for a wrong page."""
        full = query.endswith(" --full")
        query, page = query_and_page(query.removesuffix("--full").rstrip())
        if not query:
            return "/search QUERY: QUERY is missing."
        with self.view() as view:
            searcher = view.searcher()
            found = json_shapes.page(await searcher.recall(query, page - 1, PAGE_RESULTS))
        look = search_pages.Look(zone=searcher.zone, command=f"/search {query} ", full=full)
        show_pages.show(search_pages.results(query, found, self._world.clock.now(), look))
        return ""

    def events(self, rest: str) -> None:
        """Show the last records."""
        count = int(rest[:9]) if rest.isdecimal() else EVENTS_SHOWN
        reader = self._system.store.reader(self._name)
        head = reader.head(self._name).seq
        EventLines(self.out).on_records(list(reader.read(self._name, max(1, head - count + 1), head)))

    def save(self, path: str, open_output: OpenOutput) -> str:
        """Save the conversation to a new file. Return why that is not possible; empty if it is.

        Raises BadInput if the file cannot be written.
        """
        if not path:
            return "/save PATH: PATH is missing."
        target = Path(path).expanduser()
        if target.exists():
            return f"/save {path}: the file exists. Nothing was written. Choose another name, or remove it."
        with self.view() as view:
            zone = view.searcher().zone
            entries = transcript.transcript(view.reader.read(view.agent_id, 1, view.seq))
        form = transcript.plain if target.suffix == ".txt" else transcript.markdown
        with open_output(target, "/save") as out:
            out.write(f"{form(self._name, entries, zone)}\n".encode())
        self.note(f"Saved {plural(len(entries), 'message')} to {target}.")
        return ""

    def labels(self) -> list[str]:
        """Return the labels of the memory blocks."""
        with self.view() as view:
            return [str(row["label"]) for row in show_commands.block_rows(view)]

    def models(self) -> list[str]:
        """Return the models that are described, or that an endpoint named."""
        found = catalogue_of(self._system.store.root)
        served = [name for each in found.found for name in (each.model, *each.models)]
        return list(dict.fromkeys([OFFLINE, *found.models, *served]))


def _as_repeated(record: Record) -> str | None:
    """Return the words with which a group says an input that it got from another agent; None for any other record."""
    event = event_of(record) if record.type == UserMessage.kind else None
    return f"{spoken(event.agent)}: {event.text}" if isinstance(event, UserMessage) and event.agent else None
