"""`everlog chat`: a prompt with slash commands, which shows the agent's steps as they happen.

Called by `cli.command_run`. Agents run in the thread of `LoopThread`: call their methods through it only. The prompt
itself runs in the main thread, and while it edits a line all output goes through `ChatInput.print_above`.
"""

import asyncio
import contextlib
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial

from rich.status import Status
from rich.text import Text

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent_ref import AgentRef
from everlog.actors.agent_system import AgentSystem
from everlog.actors.formats.reply_preview import Preview
from everlog.actors.loop_thread import LoopThread
from everlog.actors.models.model_types import is_rule_based
from everlog.actors.ports.agent_constants import OFFLINE
from everlog.actors.runtime import PreviewCallback, Run
from everlog.events import BadInput, EverlogError, Fenced, HostLost, Poisoned, Record, UserMessage
from everlog.interfaces.common.bootstrap import agents_of, opened_agent, settings_of, warn_of_unused
from everlog.interfaces.common.front_end import CommandEnvironment, Interface
from everlog.interfaces.common.input_text import check_text
from everlog.interfaces.common.plural import plural
from everlog.interfaces.line_editor.completion import Suggestion
from everlog.interfaces.output.narrator import Narrator, abandon_reasons, silence
from everlog.interfaces.output.terminal_output import TerminalFrontEnd, console, one_line
from everlog.interfaces.show.sql_answer import open_output
from everlog.interfaces.talk.chat_commands import (
    EDIT,
    EXIT,
    ArgumentKind,
    command_of,
    help_text,
    suggestions,
    unknown_command,
)
from everlog.interfaces.talk.chat_input import AboveInput, ChatInput, ScriptInput, input_of
from everlog.interfaces.talk.chat_pages import ChatPages, OpenOutput
from everlog.interfaces.talk.chat_terminal import ChatTerminal
from everlog.interfaces.talk.waiting_notice import WaitingNotice, endpoint_of
from everlog.interfaces.talk.written_text import edited_text, file_text
from everlog.store import name_of, typed_path

SEQ_DIGITS_MAX = 18
RESUBSCRIBE_S = 1
"""Seconds until a lost subscription is renewed: the host that ran the agent has died, and a new one starts."""
GOODBYE = "Goodbye. The conversation is in the log."


def chat(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `chat`. Agents run in their own thread, so that timers fire while the prompt waits for input."""
    name = name_of(args.name)
    settings = settings_of(args, world)
    out = console()
    terminal = ChatTerminal(out, verbose=True, labelled=True)
    with LoopThread() as loop, contextlib.ExitStack() as stack:
        system = stack.enter_context(loop.holding(agents_of(args, world, timers=True)))
        agent = stack.enter_context(loop.holding(opened_agent(args, system, name, settings)))
        warn_of_unused(args, agent)
        pages = ChatPages(system, name, world, out, terminal)
        history = typed_path(system.store.root, name)
        given = input_of(world.ask, history, partial(_suggestions, pages, loop), out, pages.note)
        interface = AboveInput(given, Narrator(terminal))
        agent.notify(interface.on_records)
        session = ChatSession(system, agent, terminal, interface, world, pages, partial(open_output, args))
        session.streams = out.is_terminal and args.stream is None
        session.waiting.base_url = endpoint_of(args)
        stack.callback(loop.start(session.watch()).cancel)
        loop.run(session.begin())
        return session.talk(given, loop)


def _suggestions(pages: ChatPages, loop: LoopThread, before: str) -> list[Suggestion]:
    """Return what Tab suggests. Memory is read in the thread of the agents, which may be writing it."""

    async def candidates(kind: ArgumentKind) -> list[str]:
        try:
            return pages.labels() if kind == "block" else pages.models()
        except EverlogError:  # the command itself reports it
            return []

    return suggestions(before, lambda kind: loop.run(candidates(kind)))


def _state(text: str) -> Text:
    """Return a text that stands beside the spinner."""
    return Text(one_line(text), "dim italic")


class ChatSession:
    """One conversation at the prompt."""

    def __init__(
        self,
        system: AgentSystem,
        agent: AgentRef,
        terminal: TerminalFrontEnd,
        interface: Interface,
        world: CommandEnvironment,
        pages: ChatPages,
        open_output: OpenOutput,
    ) -> None:
        self._agent = agent
        self._terminal = terminal
        self._interface = interface
        self._pages = pages
        self._out = pages.out
        self._open_output = open_output
        self._given: ChatInput = ScriptInput()
        self.failed = False
        """True if the last entry could not be carried out."""
        self.streams = False
        """True if replies are shown while they are streamed."""
        self.waiting = WaitingNotice(system, agent.agent_id, world)
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
            "/approve": self._approve,
            "/refuse": self._refuse,
            "/rethink": self._rethink,
            "/dump": self._dump,
            "/model": self._model,
            "/file": self._file,
            "/save": self._save,
            "/help": self._help,
        }
        """Commands that run in the thread of the agents. /edit and /exit run in the main thread."""

    async def begin(self) -> None:
        """Print the agent's name and model, show the last messages, and complete an unfinished turn."""
        model = _model_label(self._agent.opened.model)
        self._pages.note(f"{self._agent.agent_id} · {model} · /help lists the commands")
        self._pages.recent_messages()
        if self.streams and not is_rule_based(self._agent.opened.model):
            await self._agent.configure(Settings(stream=True))
        if self._agent.opened.waiting:
            self._pages.note("Completing an unfinished turn first.")
            await self._guarded(self._resume())

    async def watch(self) -> None:
        """Show records that no entry of this prompt caused, such as those of timers, until cancelled."""
        while True:
            try:
                async for _ in self._agent.subscribe():
                    pass
            except HostLost:  # a new host starts soon
                await asyncio.sleep(RESUBSCRIBE_S)
            except EverlogError as error:
                self._interface.on_error(error)
                return

    def talk(self, given: ChatInput, loop: LoopThread) -> int:
        """Read entries and carry them out until the input ends. Return 1 if the last one of a script failed, else 0."""
        self._given = given
        while True:
            try:
                self._out.print()
                text = _trimmed(given.next_entry())
            except (EOFError, KeyboardInterrupt) as error:
                if isinstance(error, KeyboardInterrupt) and not given.typed:
                    raise
                break
            command = command_of(text.split()[0]) if text.startswith("/") else ""
            if command == EXIT:
                break
            if command == EDIT:
                text = self._edited(text)
            if text:
                with given.working():
                    loop.run(self._guarded(self.answer(text)), self._stop if given.typed else None)
        if given.typed:
            self._pages.note(GOODBYE)
        return int(self.failed and not given.typed)

    def _edited(self, text: str) -> str:
        """Return the message that the user wrote in an editor; empty if there is none. A begun slash is doubled."""
        begun = text.split(maxsplit=1)[1:]
        if not self._given.typed:
            self._print_problem("/edit needs a terminal: an editor is opened there.")
            return ""
        try:
            written = edited_text(begun[0] if begun else "")
        except BadInput as error:
            self.failed = True
            self._terminal.error(error)
            return ""
        if not written:
            self._pages.note("The text is empty. Nothing was sent.")
            return ""
        self._terminal.said("you", written, "bold green")
        return f"/{written}" if written.startswith("/") else written

    async def answer(self, text: str) -> None:
        """Run a slash command, or send the text to the agent. A text that begins with // is sent with one slash.

        Raises EverlogError.
        """
        word, *rest = check_text(text).split(maxsplit=1)
        if word.startswith("//") or not word.startswith("/"):
            await self._say(text.removeprefix("/") if word.startswith("//") else text)
        elif (command := command_of(word)) in self._commands:
            await self._commands[command](rest[0] if rest else "")
        else:
            self._print_problem(unknown_command(word))

    async def _say(self, text: str) -> None:
        answer = self._agent.send(text, preview=self._preview)
        records = await self._run(answer)
        if not self.failed and (unsaid := silence(records, answer.value.turn)):
            self._pages.note(f"{unsaid[0].upper()}{unsaid[1:]}")

    async def _resume(self) -> None:
        await self._run(self._agent.resume(preview=self._preview))

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

    async def _run(self, answer: Run, *, again: bool = False) -> Sequence[Record]:
        """Await the end of a turn, whose records the subscribed interface shows, and return them. With `again` show its
        message too.
        """
        records: list[Record] = []
        try:
            with self._thinking():
                async for record in self.waiting.over(answer):
                    records.append(record)
                    if again and record.type == UserMessage.kind:
                        self._pages.note(f"again: {one_line(record.text or '')}")
                    if self._spinner is not None and not self._terminal.coming:
                        self._spinner.update(_state("thinking"))
                        self._spinner.start()
        finally:
            self._terminal.drop_unfinished()
        self.failed = bool(abandon_reasons(records))
        return records

    @contextlib.contextmanager
    def _thinking(self) -> Iterator[None]:
        if not self._out.is_terminal:
            yield
            return
        with self._out.status(_state("thinking"), spinner="dots") as self._spinner:
            yield
        self._spinner = None

    @property
    def _preview(self) -> PreviewCallback | None:
        return self._show_preview if self._out.is_terminal else None

    def _show_preview(self, preview: Preview) -> None:
        """Show the streamed part of a reply in place of the spinner, a call above it, and its progress beside it."""
        self.waiting.heard(preview)
        if self._spinner is not None and preview.kind == "progress":
            self._spinner.update(_state(preview.text))
            return
        if self._spinner is not None:
            self._spinner.stop()
            self._spinner.update(_state("thinking"))
        self._terminal.preview(preview, self._agent.agent_id)
        if self._spinner is not None and preview.kind == "call":
            self._spinner.start()

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
        await self._run(self._agent.warn_memory_pressure(preview=self._preview))

    async def _pop(self, rest: str) -> None:
        if rest and not rest.isdecimal():
            self._print_problem("/pop [N]: N must be a number of turns.")
            return
        hidden = await self._agent.undo_turns(int(rest[:9] or 1))
        them = "it" if len(hidden) == 1 else "them"
        self._pages.note(
            f"Undid {plural(len(hidden), 'turn')}. The model no longer sees {them}; /search still finds {them}."
        )

    async def _retry(self, _: str) -> None:
        await self._run(self._agent.retry(preview=self._preview), again=True)

    async def _approve(self, rest: str) -> None:
        if (call := self._waiting_call(rest)) is not None:
            await self._run(self._agent.approve(call[0], reason=call[1], preview=self._preview))

    async def _refuse(self, rest: str) -> None:
        if (call := self._waiting_call(rest)) is not None:
            await self._run(self._agent.refuse(*call, preview=self._preview))

    def _waiting_call(self, rest: str) -> tuple[int, str] | None:
        """Return the seq and the reason that were typed; without a seq, that of the oldest call that waits."""
        seq, _, reason = rest.partition(" ")
        if seq.isascii() and seq.isdecimal():
            return int(seq[:SEQ_DIGITS_MAX]), reason.strip()
        with self._pages.view() as view:
            waiting = [row["seq"] for row in view.rows("approvals") if row["decision"] == "waiting"]
        if not waiting:
            self._print_problem("No call waits for your approval.")
            return None
        return min(waiting), rest.strip()

    async def _rethink(self, text: str) -> None:
        await self._agent.edit_last_thought(text)
        self._pages.note("The last thought was replaced. The log keeps the original.")

    async def _model(self, name: str) -> None:
        if name:
            await self._agent.configure(Settings(model=name, stream=(self.streams and not is_rule_based(name)) or None))
        with self._pages.view() as view:
            config = view.context().config
        self._pages.note(f"{_model_label(config.model)}, {config.window:,} tokens")

    async def _file(self, path: str) -> None:
        if not path:
            self._print_problem("/file PATH: PATH is missing.")
            return
        await self._say(file_text(path))

    async def _save(self, path: str) -> None:
        self._print_problem(self._pages.save(path, self._open_output))

    async def _summarize(self, _: str) -> None:
        if not await self._agent.summarize():
            self._pages.note("There is nothing to summarize.")

    async def _expand(self, _: str) -> None:
        if not await self._agent.undo_summary():
            self._pages.note("There is no summary to undo.")

    async def _help(self, _: str) -> None:
        self._pages.note(help_text())

    async def _memory(self, label: str) -> None:
        self._print_problem(self._pages.memory(label))

    async def _context(self, rest: str) -> None:
        self._pages.context(rest)

    async def _dump(self, rest: str) -> None:
        self._pages.dump(rest)

    async def _pressure(self, _: str) -> None:
        self._pages.pressure()

    async def _search(self, query: str) -> None:
        self._print_problem(await self._pages.search(query))

    async def _events(self, rest: str) -> None:
        self._pages.events(rest)

    def _print_problem(self, text: str) -> None:
        """Print why an entry could not be carried out; nothing if `text` is empty."""
        if text:
            self.failed = True
            self._pages.note(text)


def _trimmed(text: str) -> str:
    """Return an entry without white space at its ends; the first of several lines keeps its indentation."""
    return text.strip("\r\n").rstrip() if "\n" in text.strip() else text.strip()


def _model_label(model: str) -> str:
    """Return the model's name; for the offline model with a note that it is no language model."""
    return f"{model}, a rule-based stand-in, not a language model" if model == OFFLINE else model
