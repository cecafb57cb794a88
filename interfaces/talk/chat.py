"""`everlog chat`: a prompt with slash commands, which shows the agent's steps as they happen.

Called by `cli.command_run`. Agents run in the thread of `LoopThread`: call their methods through it only.
"""

import asyncio
import contextlib
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterator, Sequence

import msgspec
from rich.console import Console, RenderableType
from rich.status import Status
from rich.text import Text

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import AgentView
from everlog.actors.agent_ref import AgentRef
from everlog.actors.agent_system import AgentSystem
from everlog.actors.formats import render_request
from everlog.actors.formats.reply_preview import Preview
from everlog.actors.loop_thread import LoopThread
from everlog.actors.ports.agent_constants import OFFLINE, PAGE_RESULTS
from everlog.actors.runtime import PreviewCallback, Run
from everlog.events import (
    EverlogError,
    Fenced,
    HostLost,
    MessageSent,
    Poisoned,
    Record,
    TurnsHidden,
    UserMessage,
    is_erased,
)
from everlog.interfaces.common import time_text
from everlog.interfaces.common.bootstrap import agents_of, opened_agent, settings_of, warn_of_unused
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.front_end import CommandEnvironment, Interface
from everlog.interfaces.common.input_text import check_text, query_and_page
from everlog.interfaces.common.newest_records import newest_first
from everlog.interfaces.common.plural import plural
from everlog.interfaces.output import json_shapes, show_pages
from everlog.interfaces.output.chat_prompt import Prompt
from everlog.interfaces.output.narrator import Narrator, abandon_reasons
from everlog.interfaces.output.terminal_output import EventLines, TerminalFrontEnd, console, one_line
from everlog.interfaces.show import show_commands
from everlog.store import name_of

HISTORY_MESSAGES = 10
"""Number of earlier messages that are shown at the start."""
SAID = (UserMessage.kind, MessageSent.kind)
"""Types of records that hold a message of the user or of the agent."""
PAUSE_US = 600_000_000
"""Microseconds between two earlier messages above which the time is printed between them."""
RESUBSCRIBE_S = 1
"""Seconds until a lost subscription is renewed: the host that ran the agent has died, and a new one starts."""
EVENTS_SHOWN = 20
"""Number of events that /events shows by default."""

HELP = """\
/memory          show the memory blocks
/context [full]  show what the model sees; `full`: messages in full
/pressure        show how full the context window is
/search QUERY    search the conversation; add --page N for page N of the results
/events [N]      show the last N events (default: 20)
/summarize       summarize the oldest part of the context now
/expand          undo the last summary
/heartbeat       run the agent once without a message
/memorywarning   warn the agent that its context is nearly full
/pop [N]         undo the last N turns: the model no longer sees them (default: 1)
/retry           undo your last message, and send it again
/rethink TEXT    replace the agent's last thought with TEXT
/dump [N]        show the last N messages as the model sees them (default: all)
/model [NAME]    show the model; with NAME, use that model from now on
//TEXT           send /TEXT to the agent
/help            show this list
/exit            leave; so do Ctrl-C and Ctrl-D
While the agent is working, Ctrl-C cancels its turn."""
GOODBYE = "Goodbye. The conversation is in the log."


def chat(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `chat`. Agents run in their own thread, so that timers fire while the prompt waits for input."""
    name = name_of(args.name)
    settings = settings_of(args, world)
    out = console()
    terminal = TerminalFrontEnd(out, verbose=True, labelled=True)
    prompt = Prompt(world.ask, out)
    interface = prompt.around(Narrator(terminal))
    with LoopThread() as loop, contextlib.ExitStack() as stack:
        system = stack.enter_context(loop.holding(agents_of(args, world, timers=True)))
        agent = stack.enter_context(loop.holding(opened_agent(args, system, name, settings)))
        warn_of_unused(args, agent)
        agent.notify(interface.on_records)
        session = ChatSession(system, agent, terminal, interface, world, out)
        session.streams = out.is_terminal and args.stream is None
        stack.callback(loop.start(session.watch()).cancel)
        loop.run(session.begin())
        return session.talk(prompt.line, loop)


class ChatSession:
    """One conversation at the prompt."""

    def __init__(
        self,
        system: AgentSystem,
        agent: AgentRef,
        terminal: TerminalFrontEnd,
        interface: Interface,
        world: CommandEnvironment,
        out: Console,
    ) -> None:
        self._system = system
        self._agent = agent
        self._terminal = terminal
        self._interface = interface
        self._out = out
        self._world = world
        self.failed = False
        """True if the last line could not be carried out."""
        self.streams = False
        """True if replies are shown while they are streamed."""
        self._spinner: Status | None = None
        self._commands: dict[str, Callable[[str], Awaitable[None]]] = {
            "/memory": self._memory,
            "/context": self._context,
            "/pressure": self._pressure,
            "/search": self._search,
            "/events": self._events,
            "/summarize": self._summarize,
            "/expand": self._expand,
            "/heartbeat": self._heartbeat,
            "/memorywarning": self._warn,
            "/pop": self._pop,
            "/retry": self._retry,
            "/rethink": self._rethink,
            "/dump": self._dump,
            "/model": self._model,
            "/help": self._help,
        }

    async def begin(self) -> None:
        """Print the agent's name and model, show the last messages, and complete an unfinished turn."""
        self._note(f"{self._agent.agent_id} · {_model_label(self._agent.opened.model)} · /help lists the commands")
        self._history()
        if self.streams and self._agent.opened.model != OFFLINE:
            await self._agent.configure(Settings(stream=True))
        if self._agent.opened.waiting:
            self._note("Completing an unfinished turn first.")
            await self._guarded(self._resume())

    async def _resume(self) -> None:
        await self._run(self._agent.resume(preview=self._preview))

    def _history(self) -> None:
        """Show the last messages since the agent was created, without those of undone turns.

        The log is read from its end, so the time does not depend on its length.
        """
        said: list[Record] = []
        hidden: set[int] = set()
        reader = self._system.store.reader(self._agent.agent_id)
        for record in newest_first(reader, self._agent.agent_id):
            if record.type == "agent_created":
                break
            if is_erased(record.payload):
                continue
            if record.type == TurnsHidden.kind:
                hidden.update(msgspec.json.decode(record.payload)["turns"])
            if record.type in SAID and (record.turn not in hidden or _is_imported(record)):
                said.append(record)
            if len(said) > HISTORY_MESSAGES:
                self._note("Earlier messages: use /search")
                break
        now, last = self._world.clock.now(), 0
        for record in reversed(said[:HISTORY_MESSAGES]):
            at = record.recorded_at if record.said_at is None else record.said_at
            if at - last > PAUSE_US:
                self._note(f"── {time_text.relative(at, now)}")
            last = at
            mine = record.type == UserMessage.kind
            name = msgspec.json.decode(record.payload).get("name")
            who = name or ("you" if mine else self._agent.agent_id)
            self._terminal.said(who, record.text or "", "green" if mine else "cyan")
        if said:
            self._note("── now")

    async def watch(self) -> None:
        """Show records that no line of this prompt caused, such as those of timers, until cancelled."""
        while True:
            try:
                async for _ in self._agent.subscribe():
                    pass
            except HostLost:  # a new host starts soon
                await asyncio.sleep(RESUBSCRIBE_S)
            except EverlogError as error:
                self._interface.on_error(error)
                return

    def talk(self, line: Callable[[], str], loop: LoopThread) -> int:
        """Read lines and carry them out until the input ends. Return 1 if the last line of a script failed, else 0."""
        while True:
            try:
                self._out.print()
                text = line().strip()
            except (EOFError, KeyboardInterrupt) as error:
                if sys.stdin.isatty():
                    self._note(f"\n{GOODBYE}")
                elif isinstance(error, KeyboardInterrupt):
                    raise
                break
            if text.split()[:1] in (["/exit"], ["/quit"]):
                if sys.stdin.isatty():
                    self._note(GOODBYE)
                break
            if text:
                loop.run(self._guarded(self.answer(text)), self._stop if sys.stdin.isatty() else None)
        return int(self.failed and not sys.stdin.isatty())

    async def answer(self, text: str) -> None:
        """Run a slash command, or send the line to the agent. A line that begins with // is sent with one slash.

        Raises EverlogError.
        """
        word, *rest = check_text(text).split(maxsplit=1)
        if word.startswith("//") or not word.startswith("/"):
            said = text.removeprefix("/") if word.startswith("//") else text
            await self._run(self._agent.send(said, preview=self._preview))
        elif word in self._commands:
            await self._commands[word](rest[0] if rest else "")
        else:
            self._print_problem(f"There is no command {word}. /help lists the commands.")

    async def _guarded(self, work: Awaitable[None]) -> None:
        """Await the work and print its error. Raise Fenced or Poisoned: the log can no longer be written."""
        self.failed = False
        try:
            await work
        except (Fenced, Poisoned):
            raise
        except EverlogError as error:
            self.failed = True
            self._terminal.error(error)

    async def _run(self, answer: Run, *, again: bool = False) -> None:
        """Await the end of a turn, whose records the subscribed interface shows. With `again` show its message too."""
        records: list[Record] = []
        try:
            with self._thinking():
                async for record in answer:
                    records.append(record)
                    if again and record.type == UserMessage.kind:
                        self._note(f"again: {one_line(record.text or '')}")
                    if self._spinner is not None and not self._terminal.coming:
                        self._spinner.start()
        finally:
            self._terminal.drop_unfinished()
        self.failed = bool(abandon_reasons(records))

    @contextlib.contextmanager
    def _thinking(self) -> Iterator[None]:
        if not self._out.is_terminal:
            yield
            return
        with self._out.status(Text("thinking", "dim italic"), spinner="dots") as self._spinner:
            yield
        self._spinner = None

    @property
    def _preview(self) -> PreviewCallback | None:
        return self._show_preview if self._out.is_terminal else None

    def _show_preview(self, preview: Preview) -> None:
        """Show the streamed part of a reply, in place of the spinner."""
        if self._spinner is not None:
            self._spinner.stop()
        self._terminal.preview(preview, self._agent.agent_id)

    async def _stop(self) -> bool:
        """Cancel the agent's turn after Ctrl-C. Return True if a turn was cancelled."""
        try:
            return bool(await self._agent.cancel())
        except EverlogError as error:
            self._terminal.error(error)
            return False

    async def _heartbeat(self, text: str) -> None:
        await self._run(self._agent.heartbeat(text, preview=self._preview))

    async def _warn(self, _: str) -> None:
        await self._run(self._agent.warn(preview=self._preview))

    async def _pop(self, rest: str) -> None:
        if rest and not rest.isdecimal():
            self._print_problem("/pop [N]: N must be a number of turns.")
            return
        hidden = await self._agent.undo(int(rest[:9] or 1))
        them = "it" if len(hidden) == 1 else "them"
        self._note(f"Undid {plural(len(hidden), 'turn')}. The model no longer sees {them}; /search still finds {them}.")

    async def _retry(self, _: str) -> None:
        await self._run(self._agent.retry(preview=self._preview), again=True)

    async def _rethink(self, text: str) -> None:
        await self._agent.rethink(text)
        self._note("The last thought was replaced. The log keeps the original.")

    async def _model(self, name: str) -> None:
        if name:
            await self._agent.configure(Settings(model=name, stream=(self.streams and name != OFFLINE) or None))
        with self._view() as view:
            config = view.context().config
        self._note(f"{_model_label(config.model)}, {config.window:,} tokens")

    async def _summarize(self, _: str) -> None:
        if not await self._agent.summarize():
            self._note("There is nothing to summarize.")

    async def _expand(self, _: str) -> None:
        if not await self._agent.expand():
            self._note("There is no summary to undo.")

    async def _help(self, _: str) -> None:
        self._note(HELP)

    async def _memory(self, _: str) -> None:
        with self._view() as view:
            rows = show_commands.block_rows(view)
            self._show(show_pages.memory(view.agent_id, view.head.seq, rows, self._world.clock.now()))

    async def _context(self, rest: str) -> None:
        with self._view() as view:
            self._show(show_pages.context(show_commands.context_shape(view), full="full" in rest))

    async def _dump(self, rest: str) -> None:
        with self._view() as view:
            messages = render_request.messages(view.context())
        count = int(rest[:9]) if rest.isdecimal() else len(messages)
        for message in messages[max(0, len(messages) - count) :]:
            self._out.print(Text(sanitize(json_shapes.line(message))), soft_wrap=True)

    async def _pressure(self, _: str) -> None:
        with self._view() as view:
            self._show(show_pages.pressure(show_commands.pressure_shape(view)))

    async def _search(self, query: str) -> None:
        query, page = query_and_page(query)
        if not query:
            self._print_problem("/search QUERY: QUERY is missing.")
            return
        with self._view() as view:
            searcher = view.searcher()
            found = json_shapes.page(await searcher.recall(query, page - 1, PAGE_RESULTS))
        command = f"/search {query} "
        self._show(show_pages.search(query, found, self._world.clock.now(), zone=searcher.zone, command=command))

    async def _events(self, rest: str) -> None:
        count = int(rest[:9]) if rest.isdecimal() else EVENTS_SHOWN
        reader = self._system.store.reader(self._agent.agent_id)
        head = reader.head(self._agent.agent_id).seq
        records: Sequence[Record] = list(reader.read(self._agent.agent_id, max(1, head - count + 1), head))
        EventLines(self._out).on_records(records)

    @contextlib.contextmanager
    def _view(self) -> Iterator[AgentView]:
        """Open the current state of the agent for reading."""
        view = self._system.view(self._agent.agent_id)
        try:
            yield view
        finally:
            view.close()

    def _show(self, page: RenderableType) -> None:
        show_pages.show(page)

    def _print_problem(self, text: str) -> None:
        """Print why the line could not be carried out."""
        self.failed = True
        self._note(text)

    def _note(self, text: str) -> None:
        self._out.print(Text(sanitize(text), "dim"))


def _model_label(model: str) -> str:
    """Return the model's name; for the offline model with a note that it is no language model."""
    return f"{model}, a rule-based stand-in, not a language model" if model == OFFLINE else model


def _is_imported(record: Record) -> bool:
    return bool(msgspec.json.decode(record.payload).get("imported"))
