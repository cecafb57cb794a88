"""Slash commands of a chat as data: their names, arguments and help, the command that a typed word means, and Tab.

Used by `everlog chat`. Pure, except that suggestions of paths read folders. A command that is added here needs a method
in `chat.py`, and a row in docs/reference/cli.md.
"""

import difflib
import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from everlog.interfaces.line_editor.completion import Suggestion, beginning_with
from everlog.interfaces.line_editor.paths import path_suggestions

ArgumentKind = Literal["", "word", "block", "model", "path", "text"]
"""Kind of a command's argument: none, one of some words, a memory block, a model, a path, or any text."""


class ChatCommand(NamedTuple):
    """One slash command."""

    name: str
    argument: str
    """Argument in the help; empty if the command takes none."""
    about: str
    kind: ArgumentKind = ""
    words: Sequence[str] = ()
    """Arguments of the kind `word`."""


COMMANDS = (
    ChatCommand("/memory", "[LABEL]", "show the memory blocks, or one of them", "block"),
    ChatCommand("/context", "[full]", "show what the model sees; `full`: messages in full", "word", ("full",)),
    ChatCommand("/pressure", "", "show how full the context window is"),
    ChatCommand(
        "/search",
        "QUERY",
        "search the conversation; --page N: page N; --full: long messages whole",
        "text",
    ),
    ChatCommand("/events", "[N]", "show the last N events (default: 20)", "text"),
    ChatCommand("/summarize", "", "summarize the oldest part of the context now"),
    ChatCommand("/expand", "", "undo the last summary"),
    ChatCommand("/heartbeat", "[TEXT]", "run the agent once without a message of yours", "text"),
    ChatCommand("/memorywarning", "", "warn the agent that its context is nearly full"),
    ChatCommand("/pop", "[N]", "undo the last N turns: the model no longer sees them (default: 1)", "text"),
    ChatCommand("/retry", "", "undo your last message, and send it again"),
    ChatCommand("/approve", "[SEQ]", "let a call run that waits for your approval (default: the oldest)", "text"),
    ChatCommand("/refuse", "[SEQ WHY]", "refuse a call that waits: it never runs", "text"),
    ChatCommand("/rethink", "TEXT", "replace the agent's last thought with TEXT", "text"),
    ChatCommand("/dump", "[N]", "show the last N messages as the model sees them (default: all)", "text"),
    ChatCommand("/model", "[NAME]", "show the model; with NAME, use that model from now on", "model"),
    ChatCommand("/edit", "[TEXT]", "write a message in your editor (VISUAL, else EDITOR)", "text"),
    ChatCommand("/file", "PATH", "send the text of a file as a message", "path"),
    ChatCommand("/save", "PATH", "save the conversation; Markdown, or plain text in a .txt file", "path"),
    ChatCommand("/help", "", "show this list"),
    ChatCommand("/exit", "", "leave; so does Ctrl-D"),
)
"""In the order of the help."""
ELSEWHERE = {
    "/attach": "`everlog attach NAME SOURCE` lets the agent search a source",
    "/systemswap": "`everlog configure NAME --system FILE` changes the prompt, `everlog prompt` its sections",
    "/wipe": "`everlog delete NAME`, and the name is free again; `everlog erase` removes what was said from the files",
    "/rewrite": "what was said stays in the log; /rethink rewrites the last thought, /retry asks again, and `everlog "
    "fork NAME --as-of SEQ` goes on from another place",
    "/dumpraw": "/dump prints the messages as JSON, `everlog events NAME --json` the log",
    "/savechat": "/save PATH writes the conversation to a file",
    "/load": "nothing is to be loaded: the log is the agent. `everlog load NAME PATH` loads documents",
}
"""MemGPT's other commands, with what does the same here. /save needs no other name: everything said is saved."""
EDIT, EXIT = "/edit", "/exit"
_OTHER_NAMES = {"/quit": EXIT}
_KEYS = """\
//TEXT            send /TEXT to the agent
Alt-Enter or Ctrl-J begins another line, and so does Enter after a backslash. Tab completes commands, Ctrl-R searches
what you typed before. While the agent works, Ctrl-C cancels its turn; at the prompt it clears the text."""
_HELP_WIDTH = 18
_SUGGESTIONS_MAX = 3
_WORD = re.compile(r"(/\w+)(\s+)(.*)", re.DOTALL)


def help_text() -> str:
    """Return the list of all commands."""
    rows = [f"{f'{one.name} {one.argument}':<{_HELP_WIDTH}}{one.about}" for one in COMMANDS]
    others = ", ".join(ELSEWHERE)
    return "\n".join([*rows, _KEYS, f"MemGPT's {others}: type one, and the answer says what does it here."])


def command_of(word: str) -> str:
    """Return the command that a typed word names: itself, or the only command that begins with it; empty if none
    does.
    """
    known = {one.name: one.name for one in COMMANDS} | _OTHER_NAMES
    if word in known:
        return known[word]
    begun = {command for name, command in known.items() if name.startswith(word)} if len(word) > 1 else set()
    return begun.pop() if len(begun) == 1 else ""


def unknown_command(word: str) -> str:
    """Return the answer to a word that names no command, or several."""
    if word in ELSEWHERE:
        return f"{word}: {ELSEWHERE[word]}."
    names = [one.name for one in COMMANDS]
    meant = [name for name in names if name.startswith(word) and len(word) > 1]
    meant = meant or difflib.get_close_matches(word, names, _SUGGESTIONS_MAX)
    if meant:
        return f"There is no command {word}. Did you mean {' or '.join(meant)}?"
    return f"There is no command {word}. /help lists the commands; //TEXT sends a text that begins with a slash."


Candidates = Callable[[ArgumentKind], Sequence[str]]
"""Function that returns the memory blocks or the models that exist now."""


def suggestions(before: str, candidates: Candidates) -> list[Suggestion]:
    """Return what may follow the text before the cursor: a command, or its argument; nothing within a message."""
    if "\n" in before or not before.startswith("/") or before.startswith("//"):
        return []
    found = _WORD.fullmatch(before)
    if found is None:
        return beginning_with(before, [(one.name, one.about) for one in COMMANDS])
    name, typed = command_of(found[1]), found[3]
    command = next((one for one in COMMANDS if one.name == name), None)
    match command.kind if command else "":
        case "path":
            return path_suggestions(typed)
        case "word":
            return beginning_with(typed, [(word, "") for word in command.words] if command else [])
        case "block" | "model" as kind:
            return beginning_with(typed, [(word, "") for word in candidates(kind)])
    return []
