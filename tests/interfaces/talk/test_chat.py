"""`everlog chat`: its input, its output, and its end."""

import asyncio
import io
import re
from pathlib import Path

import msgspec
import pytest

from everlog.actors.agent_system import AgentSystem
from everlog.events import ModelError, PartitionBusy
from everlog.interfaces.output.terminal_output import TerminalFrontEnd, console
from everlog.interfaces.talk.chat import ChatSession
from everlog.interfaces.talk.chat_commands import ELSEWHERE
from everlog.interfaces.talk.chat_pages import ChatPages
from tests.support.cli.command_line import Line, Recorder, completion, says


@pytest.fixture
def chat(cli: Line, monkeypatch):
    """Chat with lines on stdin, which is not a terminal. Return exit code, stdout and stderr."""

    def talk(*lines: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        return cli("chat", "sam")

    return talk


def test_a_conversation(cli: Line, chat):
    """Each step is shown when it happens: thought, function, message."""
    edit = ("core_memory_append", {"name": "human", "content": "Sails", "request_heartbeat": True})
    cli.script.answers = [completion(edit, thought="A sailor!"), says("Ahoy.", thought="I greet him.")]
    code, out, err = chat("I sail")
    assert (code, err) == (0, "")
    places = [out.index(part) for part in ("A sailor!", "ƒ core_memory_append", "I greet him.", "sam  Ahoy.")]
    assert places == sorted(places)


def test_history_is_shown(cli: Line, chat):
    """A later chat shows the earlier messages first."""
    cli.script.answers = [says("Hello Chad.")]
    cli.ok("send", "sam", "I am Chad")
    _, out, _ = chat()
    assert "you  I am Chad" in out
    assert "sam  Hello Chad." in out


def test_slash_commands(cli: Line, chat):
    """Every slash command prints an answer, and none is sent to the agent."""
    cli.script.answers = [says("Hello.")]
    commands = [
        "/memory",
        "/context",
        "/pressure",
        "/search boat",
        "/search",
        "/events 3",
        "/help",
        "/nonsense",
        "/expand",
    ]
    code, out, err = chat("I have a boat", *commands, "/exit", "never said")
    assert (code, err) == (0, "")
    assert len(cli.script.asked) == 1
    for part in (
        "core memory",
        "messages",
        "memory pressure",
        "Showing 2 of 2 results ",
        "QUERY is missing",
        "/heartbeat",
        "no command /nonsense",
        "no summary",
    ):
        assert part in out
    assert sum("message_sent" in line or "function_result" in line for line in out.splitlines()) == 2


@pytest.mark.beside_store("a server answers /expand with its outcome, and streams the records of runs only")
def test_heartbeat_and_summaries(cli: Line, chat):
    """/heartbeat runs a turn without a message; /summarize hides the oldest messages, /expand shows them again."""
    cli.script.answers = [says("One."), says("Beat."), says("Two."), completion(words="Short.")]
    code, out, err = chat("first " * 100, "/heartbeat", "second " * 100, "/summarize", "/expand")
    assert (code, err) == (0, "")
    kinds = [record["type"] for record in cli.lines("events", "sam")]
    assert {"heartbeat", "summary", "summary_expanded"} <= set(kinds)
    assert "Beat." in out
    assert "was undone" in out


def test_a_search_has_pages(cli: Line, chat):
    """The footer gives the command for the next page; an impossible page is an error."""
    cli.script.answers = [says("Aye.") for _ in range(12)]
    boats = [f"boat number {number}" for number in range(12)]
    code, out, err = chat(*boats, "/search boat", "/search boat --page 2", "/search boat --page 0")
    assert "Showing 10 of 24 results (page 1 of 3)" in out and "Next page: /search boat --page 2" in out
    assert "Showing 10 of 24 results (page 2 of 3)" in out  # after the twelve boats what was said beside them
    assert (code, "'0' is not a number from 1" in err) == (1, True)


def test_a_model_error_is_reported_and_the_chat_continues(cli: Line, chat):
    """A failed turn shows its paragraph, and the next line gets an answer; the exit code is 0 because the last turn
    succeeded.
    """
    cli.script.answers = [ModelError("The endpoint is down.", kind="unreachable"), says("Back again.")]
    code, out, err = chat("hello?", "and now?")
    assert (code, err) == (0, "everlog: The endpoint is down.\nmore: everlog explain model-error\n")
    assert "Back again." in out
    cli.script.answers = [ModelError("Down again.", kind="unreachable")]
    assert chat("hello?")[0] == 1


def test_a_turn_that_was_given_up_is_shown_and_the_chat_continues(cli: Line, chat):
    """A turn that is abandoned at its last step is shown like the others; the exit code is 1 only if it was the last
    turn.
    """
    again = ("core_memory_append", {"name": "human", "content": "x", "request_heartbeat": True})
    cli.script.answers = [completion(again)] * 20 + [says("Here again.")]
    code, out, err = chat("Go on", "hello")
    assert (code, err) == (0, "")
    assert out.index("the turn was given up") < out.index("Here again.")
    cli.script.answers = [completion(again)] * 20
    assert chat("Go on")[0] == 1


def test_pop_and_retry_undo_or_repeat_the_last_message(cli: Line, chat):
    """/pop hides turns, /retry sends the same message again; hidden turns are not in the history of a later chat."""
    cli.script.answers = [says("One."), says("Two."), says("Three."), says("Better.")]
    code, out, err = chat("first", "second", "third", "/retry", "/pop 2", "/pop x", "/events 1")
    assert (code, err) == (0, "")
    assert "again: third" in out
    assert "Better." in out
    assert "Undid 2 turns. The model no longer sees them" in out
    assert "N must be a number" in out
    assert "turns 2, 4" in out
    seen = str(cli.json("context", "sam")["messages"])
    assert "first" in seen
    assert "second" not in seen
    assert "third" not in seen
    _, out, _ = chat()
    assert "you  first" in out
    assert "third" not in out


def test_undoing_without_a_turn_is_reported(chat):
    """/pop, /retry and /rethink of an agent without messages are errors, and the chat continues."""
    for command in ("/pop", "/retry", "/rethink x", "/rethink", "/pop 0"):
        code, _, err = chat(command)
        assert code == 1
        assert err.startswith("everlog: ")
    assert chat("/pop", "hello")[0] == 0


def test_a_thought_is_replaced_and_what_the_model_sees_is_dumped(cli: Line, chat):
    """/rethink rewords the last thought; /dump prints all messages, or the last ones, as JSON; the log has both
    thoughts.
    """
    cli.script.answers = [says("Hello.", thought="I am cross.")]
    code, out, err = chat("hi", "/rethink I am glad.", "/dump 3", "/events 1")
    assert (code, err) == (0, "")
    dumped = [msgspec.json.decode(line) for line in out.splitlines() if line.startswith("{")]
    assert [message["role"] for message in dumped] == ["user", "assistant", "tool"]
    assert dumped[1]["content"] == "I am glad."
    assert "reply_rethought" in out
    assert "I am cross." in [record["text"] for record in cli.lines("events", "sam")]
    _, out, _ = chat("/dump")
    assert msgspec.json.decode(next(line for line in out.splitlines() if line.startswith("{")))["role"] == "system"


def test_the_memory_warning_by_hand(cli: Line, chat):
    """/memorywarning shows the warning to the agent, and the agent's reaction."""
    cli.script.answers = [says("I saved it.")]
    code, out, err = chat("/memorywarning")
    assert (code, err) == (0, "")
    assert out.index("the agent was warned") < out.index("I saved it.")


def test_the_model_is_shown_and_changed(cli: Line, chat):
    """/model names the model and its window; with a name it changes the model, for later chats too."""
    code, out, err = chat("/model", "/model gpt-4o", "hello", "/model  ")
    assert (code, err) == (0, "")
    assert "offline, a rule-based stand-in, not a language model, 8,192 tokens" in out
    assert out.count("gpt-4o, 128,000 tokens") == 2
    assert msgspec.json.decode(cli.script.asked[-1])["model"] == "gpt-4o"
    _, out, _ = chat()
    assert "sam · gpt-4o" in out


def test_bytes_that_are_no_text(cli: Line, monkeypatch):
    """A line that is not UTF-8 is reported, whatever command it has, and the next line is answered."""
    lines = io.BytesIO(b"ab\xff\n/search \xff\n/heartbeat \xff\n/rethink \xff\nhello\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(lines, encoding="utf-8"))
    code, out, err = cli("chat", "sam")
    assert code == 0
    told = ["everlog: The text is not UTF-8", "more: everlog explain bad-input"]
    assert [line.partition(": character")[0] for line in err.splitlines()] == told * 4
    assert "Indeed." in out
    assert len(cli.script.asked) == 1


@pytest.mark.parametrize("line", ["/nonsense", "/pop x", "/search", "/nonsense\n/exit", "/nonsense\n/exit now"])
def test_what_cannot_be_done_is_a_failure(chat, line: str):
    """The exit code is 1 if the last line of a script failed; /exit is not a failure, with or without text after it."""
    assert chat(*line.split("\n"))[0] == 1
    assert chat(*line.split("\n")[:1], "/help", *line.split("\n")[1:])[0] == 0


def test_text_after_a_slash_command_is_separated(cli: Line, chat):
    """A tab separates a command from its text too, and /exit ignores all text after it."""
    code, out, _ = chat("/search\tboat", "/exit now", "never said")
    assert code == 0
    assert "nothing found" in out.lower() or "0 found" in out
    assert cli.script.asked == []


def test_two_slashes_are_said_as_one(cli: Line, chat):
    """A message that begins with a slash can be sent, by writing the slash twice."""
    assert chat("//etc/hosts is a file", "//")[0] == 0
    said = [record["text"] for record in cli.lines("events", "sam") if record["type"] == "user_message"]
    assert said == ["/etc/hosts is a file", "/"]


class Interrupted:
    """Input lines that end with Ctrl-C."""

    def isatty(self) -> bool:
        return False

    def readline(self) -> str:
        raise KeyboardInterrupt


def test_ctrl_c_of_a_script(cli: Line, monkeypatch):
    """Without a terminal, Ctrl-C between two lines ends the chat with exit code 130."""
    monkeypatch.setattr("sys.stdin", Interrupted())
    code, out, err = cli("chat", "sam")
    assert (code, err) == (130, "everlog: interrupted; nothing is lost.\n")
    assert "Goodbye" not in out


def test_a_model_set_by_another_process_is_shown(cli: Line, chat, monkeypatch):
    """/model shows the model of the log, not the model at the beginning of the chat."""
    opened = []
    real = AgentSystem.agent

    async def open_(self, *args, **options):
        agent = await real(self, *args, **options)
        agent.opened = msgspec.structs.replace(agent.opened, model="of long ago")
        opened.append(agent)
        return agent

    monkeypatch.setattr(AgentSystem, "agent", open_)
    _, out, _ = chat("/model")
    assert opened
    assert "offline, a rule-based stand-in, not a language model, 8,192 tokens" in out


class Unwatchable:
    """An agent that cannot be watched."""

    agent_id = "sam"

    async def subscribe(self):
        raise PartitionBusy("Somebody has it.")
        yield


def test_the_end_of_a_watch_is_shown_above_the_typed_line(cli: Line):
    """The error of another turn is printed like any event that arrives while the user types."""
    recorder = Recorder()
    out = console()
    terminal = TerminalFrontEnd(out)
    pages = ChatPages(None, "sam", cli.world, out, terminal)
    session = ChatSession(None, Unwatchable(), terminal, recorder, cli.world, pages, None)
    asyncio.run(session.watch())
    assert [str(error) for error in recorder.errors] == ["Somebody has it."]


def test_every_command_is_in_the_help_and_in_the_documents(chat):
    """/help lists the same commands as docs/reference/cli.md, which also names those that have another place here."""
    _, out, _ = chat("/help")
    listed = re.findall(r"^(/\w+)", out, re.MULTILINE)
    page = (Path(__file__).parents[3] / "docs" / "reference" / "cli.md").read_text()
    assert len(listed) > 15
    documented = set(re.findall(r"`(/\w+)", page.split("## everlog send")[0]))
    assert documented == set(listed) | set(ELSEWHERE)


def test_a_number_without_end(chat):
    """/events accepts a number of any size."""
    assert chat(f"/events {'9' * 5000}")[0] == 0


def test_at_a_terminal(cli: Line, monkeypatch):
    """At a prompt, Ctrl-C and Ctrl-D end the chat cleanly."""
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    cli.typed = ["hello"]
    code, out, err = cli("chat", "sam")
    assert (code, err) == (0, "")
    assert "Indeed." in out
    assert "Goodbye. The conversation is in the log." in out
    cli.typed = ["/exit"]
    assert "Goodbye." in cli("chat", "sam")[1]


def test_how_an_agent_began_is_no_part_of_its_first_answer(cli: Line):
    """The first `send` to a new agent prints only the records from the input on."""
    records = cli.lines("send", "newcomer", "hello")
    assert records[0]["type"] == "user_message"
    assert records[0]["seq"] > 1
    assert cli.lines("events", "newcomer")[0]["type"] == "agent_created"
