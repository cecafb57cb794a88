"""`everlog chat`: what is typed, what is shown, how it ends."""

import io

import pytest

from events import ModelError
from interfaces.send import Gate
from tests.interfaces.line import Line, Recorder, completion, says


@pytest.fixture
def chat(cli: Line, monkeypatch):
    """Chat with lines on stdin, which is no terminal: exit code, stdout, stderr."""

    def talk(*lines: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        return cli("chat", "sam")

    return talk


def test_a_conversation(cli: Line, chat):
    """Each step is shown as it happens: thought, function, message."""
    edit = ("core_memory_append", {"name": "human", "content": "Sails", "request_heartbeat": True})
    cli.script.answers = [completion(edit, thought="A sailor!"), says("Ahoy.", thought="I greet him.")]
    code, out, err = chat("I sail")
    assert (code, err) == (0, "")
    places = [out.index(part) for part in ("A sailor!", "ƒ core_memory_append", "I greet him.", "sam  Ahoy.")]
    assert places == sorted(places)


def test_history_is_shown(cli: Line, chat):
    """A later chat begins with what was said before."""
    cli.script.answers = [says("Hello Chad.")]
    cli.ok("send", "sam", "I am Chad")
    _, out, _ = chat()
    assert "you  I am Chad" in out
    assert "sam  Hello Chad." in out


def test_slash_commands(cli: Line, chat):
    """Every slash command answers, and none of them is said to the agent."""
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
        "1 found",
        "say what",
        "/heartbeat",
        "no /nonsense",
        "no summary",
    ):
        assert part in out
    assert sum("message_sent" in line or "function_result" in line for line in out.splitlines()) == 2


def test_heartbeat_and_summaries(cli: Line, chat):
    """/heartbeat runs the agent without a user; /summarize hides the oldest messages, /expand shows them again."""
    cli.script.answers = [says("One."), says("Beat."), says("Two."), completion(words="Short.")]
    code, out, err = chat("first " * 100, "/heartbeat", "second " * 100, "/summarize", "/expand")
    assert (code, err) == (0, "")
    kinds = [record["type"] for record in cli.lines("events", "sam")]
    assert {"heartbeat", "summary", "summary_expanded"} <= set(kinds)
    assert "Beat." in out
    assert "taken back" in out


def test_a_model_error_is_told_and_the_chat_goes_on(cli: Line, chat):
    """A failed turn shows its paragraph; the next line is answered; exit 0 because the last one was."""
    cli.script.answers = [ModelError("The endpoint is down.", kind="unreachable"), says("Back again.")]
    code, out, err = chat("hello?", "and now?")
    assert (code, err) == (0, "everlog: The endpoint is down.\n")
    assert "Back again." in out
    cli.script.answers = [ModelError("Down again.", kind="unreachable")]
    assert chat("hello?")[0] == 1


def test_a_turn_that_was_given_up_is_shown_and_the_chat_goes_on(cli: Line, chat):
    """A turn that ends at its last step is shown among the others; exit 1 only if it was the last one."""
    again = ("core_memory_append", {"name": "human", "content": "x", "request_heartbeat": True})
    cli.script.answers = [completion(again)] * 20 + [says("Here again.")]
    code, out, err = chat("Go on", "hello")
    assert (code, err) == (0, "")
    assert out.index("the turn was given up") < out.index("Here again.")
    cli.script.answers = [completion(again)] * 20
    assert chat("Go on")[0] == 1


def test_a_number_without_end(chat):
    """/events takes any number."""
    assert chat(f"/events {'9' * 5000}")[0] == 0


def test_at_a_terminal(cli: Line, monkeypatch):
    """At a prompt Ctrl-C and Ctrl-D leave cleanly."""
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    cli.typed = ["hello"]
    code, out, err = cli("chat", "sam")
    assert (code, err) == (0, "")
    assert "Indeed." in out
    assert "Nothing is lost" in out


def test_an_interface_hears_what_it_should():
    """A gate lets nothing through until it is open: how an agent began is not part of an answer."""
    recorder = Recorder()
    gate = Gate(recorder)
    gate.on_records([])
    assert recorder.records == recorder.errors == []
