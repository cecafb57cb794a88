"""A reply that is streamed to a terminal: shown word by word, completed when it is final, and never shown twice."""

import re
import socket
from collections.abc import Callable, Iterator

import msgspec
import pytest
from rich.cells import cell_len

from everlog.actors.ports.effects import ReplyDelta
from tests.support.cli.command_line import Line, says
from tests.support.cli.terminal_program import CTRL_C, WAIT_S, TerminalProgram

LONG = "A long way to go, is it not, in this weather, and in this boat?"
"""A text that is longer than a line."""


class Speaker:
    """The test's replacement of the model."""

    def __init__(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.server.settimeout(WAIT_S)
        self._lines: list[socket.socket] = []

    @property
    def port(self) -> int:
        port: int = self.server.getsockname()[1]
        return port

    def asked(self) -> None:
        """Wait until the model gets a request."""
        self._lines.append(self.server.accept()[0])
        self._lines[-1].settimeout(WAIT_S)

    def say(self, *pieces: ReplyDelta | str) -> None:
        self._lines[-1].sendall(b"".join(msgspec.json.encode(piece) + b"\n" for piece in pieces))

    def left(self) -> bool:
        """Wait until the agent closes the connection."""
        return self._lines[-1].recv(1) == b""

    def close(self) -> None:
        for one in (*self._lines, self.server):
            one.close()


Sitting = Callable[..., TerminalProgram]


@pytest.fixture
def speaker() -> Iterator[Speaker]:
    one = Speaker()
    yield one
    one.close()


@pytest.fixture
def sits(cli: Line, speaker: Speaker) -> Iterator[Sitting]:
    """Return a function that starts a command on a terminal."""
    programs: list[TerminalProgram] = []

    def sits(*argv: str, width: int = 60) -> TerminalProgram:
        words = (str(speaker.port), "--store", str(cli.root), *argv)
        programs.append(TerminalProgram("tests.support.cli.scripted_cli", *words, width=width))
        return programs[-1]

    yield sits
    for program in programs:
        program.close()


def spoken(*parts: str) -> list[ReplyDelta]:
    """Return a message as the chunks of a streamed call."""
    whole = msgspec.json.encode({"message": "\n".join(parts)}).decode()
    pieces = [ReplyDelta(call=0, arguments=part) for part in re.split(r"(?<=\\n)", whole)]
    return [ReplyDelta(call=0, name="send_message"), *pieces]


def test_a_reply_is_shown_while_it_arrives(cli: Line, speaker: Speaker, sits: Sitting) -> None:
    """Thought and message are shown before the reply is complete, and once when it is.

    A truncated stream is announced, and the reply begins again. Ctrl-C ends the turn, closes the connection and returns
    to the prompt.
    """
    sam = sits("chat", "sam", "--model", "spoken")
    sam.prompted(1)
    sam.type("Hi")
    speaker.asked()
    speaker.say(ReplyDelta(text="I greet him,"), ReplyDelta(text=" warmly."))
    sam.until("  I greet him,")
    speaker.say(*spoken("Ahoy, sailor.", "Where to?")[:2])
    sam.until("sam  Ahoy, sailor.")
    assert "model_reply" not in cli.ok("events", "sam", "--from", "8")
    speaker.say(ReplyDelta(restart=True))
    sam.until("it starts again")
    speaker.say(ReplyDelta(text="I greet him again."), *spoken("Hello there.", LONG))
    sam.until("sam  Hello there.\n")
    speaker.say(says(f"Hello there.\n{LONG}", thought="I greet him again."))
    sam.until("boat?\n")
    assert re.search(r"\n     A long way .{20,50}\n     \S.*boat[?]\n", sam.shown)
    assert sam.shown.count("I greet him again.") == sam.shown.count("Hello there.") == 1

    sam.prompted(2)
    sam.type("And now?")
    speaker.asked()
    speaker.say(*spoken("Half of", "it")[:2])
    sam.until("sam  Half of")
    sam.press(CTRL_C)
    assert speaker.left()
    sam.until("(cancelled; the partial reply above was discarded)")
    assert cli.lines("events", "sam")[-1]["type"] == "turn_cancelled"
    sam.prompted(3)
    sam.type("Still there?")
    speaker.asked()
    speaker.say(says("I am.", thought=""))
    sam.until("sam  I am.\n")
    sam.prompted(4)
    sam.type("/exit")
    assert sam.ended() == 0
    assert "Half of" not in cli.ok("events", "sam", "--json")
    assert cli.ok("verify", "sam")


@pytest.mark.parametrize("width", [40, 200])
def test_ctrl_c_during_a_streamed_turn(width: int, cli: Line, speaker: Speaker, sits: Sitting) -> None:
    """At any width Ctrl-C ends the turn before the first word, in a thought and in a message; the prompt comes back
    each time, nothing is wider than the terminal, and the chat continues.
    """
    sam = sits("chat", "sam", "--model", "spoken", width=width)
    moments: list[tuple[list[ReplyDelta], str]] = [
        ([], ""),
        ([ReplyDelta(text="I think of this boat and ")], "I think of this boat"),
        (spoken("Half of it.", f"{LONG} And more")[:3], "in this boat? And"),
    ]
    for number, (pieces, seen) in enumerate(moments, 1):
        sam.prompted(number)
        sam.type(f"Question {number}")
        speaker.asked()
        speaker.say(*pieces)
        sam.until(seen)
        sam.press(CTRL_C)
        assert speaker.left()
        sam.until("the partial reply above was discarded)" if pieces else "the turn was cancelled")
        assert cli.lines("events", "sam")[-1]["type"] == "turn_cancelled"
    sam.prompted(len(moments) + 1)
    sam.type("Still there?")
    speaker.asked()
    speaker.say(says("I am.", thought=""))
    sam.until("sam  I am.")
    sam.prompted(len(moments) + 2)
    sam.type("/exit")
    assert sam.ended() == 0
    assert "in this boat" not in cli.ok("events", "sam", "--json")
    written = [line for line in sam.shown.splitlines() if "you  " not in line]
    assert max(map(cell_len, written)) <= width


def test_an_answer_is_streamed_only_where_it_is_wanted(cli: Line, speaker: Speaker, sits: Sitting) -> None:
    """`send --stream` shows chunks of the message as they arrive; without --stream, or with --no-stream, only the final
    message is shown; thoughts need -v.

    If the final message differs from the streamed text, the final message is shown too.
    """
    sam = sits("send", "sam", "Hi", "--model", "spoken", "--stream")
    speaker.asked()
    speaker.say(ReplyDelta(text="Thinking."), *spoken("One.", "Two.")[:2])
    sam.until("One.")
    speaker.say(says("One.\nTwo.", thought="Thinking."))
    assert sam.ended() == 0
    assert sam.shown.strip() == "One.\nTwo."
    other = sits("send", "sam", "Hi", "--stream")
    speaker.asked()
    speaker.say(*spoken("One.", "Two."), says("Something else."))
    assert other.ended() == 0
    assert other.shown.strip().splitlines() == ["One.", "Two.", "Something else."]
    plain = sits("chat", "sam", "--no-stream")
    plain.prompted(1)
    plain.type("Hi")
    speaker.asked()
    speaker.say(ReplyDelta(text="Thinking."), *spoken("One.", "Two."), says("Three."))
    plain.until("sam  Three.")
    assert "Thinking." not in plain.shown
    plain.prompted(2)
    plain.type("/exit")
    assert plain.ended() == 0
    assert [r["payload"].get("stream", False) for r in cli.lines("events", "sam", "--type", "agent_configured")][
        -1:
    ] == [False]
