"""A reply that is streamed to a terminal: shown word by word, completed when it is final, and never shown twice."""

import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from everlog.actors.ports.effects import ReplyDelta
from tests.support.cli.command_line import Line, says

ROOT = Path(__file__).resolve().parents[3]
LONG = "A long way to go, is it not, in this weather, and in this boat?"
"""A text that is longer than a line."""
WAIT_S = 30
"""Longest wait for an expected output; only a failing test waits so long."""


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


class Typist:
    """A command on a terminal, and the person who types."""

    def __init__(self, port: int, *argv: str) -> None:
        self._person, program = pty.openpty()
        termios.tcsetwinsize(program, (30, 60))
        kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        env = kept | {"TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "tests.support.cli.scripted_cli", str(port), *argv]
        ends = {"stdin": program, "stdout": program, "stderr": program}
        self.process = subprocess.Popen(command, **ends, env=env, cwd=ROOT, start_new_session=True)
        os.close(program)
        self.sent = ""

    @property
    def shown(self) -> str:
        """Return the output without colours and without overwritten text."""
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.sent).replace("\r\n", "\n")
        return "\n".join(line.rpartition("\r")[2] for line in text.split("\n"))

    def until(self, words: str) -> None:
        """Read until the words are shown."""
        while words not in self.shown:
            assert self._read(), f"{words!r} did not come: {self.shown}"

    def prompted(self, times: int) -> None:
        """Read until the prompt was shown `times` times."""
        while self.shown.count("\nyou  ") < times:
            assert self._read(), self.shown

    def type(self, text: str) -> None:
        os.write(self._person, f"{text}\n".encode())

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def ended(self) -> int:
        while self._read():
            pass
        return self.process.wait(WAIT_S)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._person)

    def _read(self) -> bool:
        if not select.select([self._person], [], [], WAIT_S)[0]:
            return False
        try:
            data = os.read(self._person, 65536)
        except OSError:  # the program has ended
            return False
        self.sent += data.decode(errors="replace")
        return bool(data)


Sitting = Callable[..., Typist]


@pytest.fixture
def speaker() -> Iterator[Speaker]:
    one = Speaker()
    yield one
    one.close()


@pytest.fixture
def sits(cli: Line, speaker: Speaker) -> Iterator[Sitting]:
    """Return a function that starts a command on a terminal."""
    typists: list[Typist] = []

    def sits(*argv: str) -> Typist:
        typists.append(Typist(speaker.port, "--store", str(cli.root), *argv))
        return typists[-1]

    yield sits
    for typist in typists:
        typist.close()


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
    sam.until("you")
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

    sam.type("And now?")
    speaker.asked()
    speaker.say(*spoken("Half of", "it")[:2])
    sam.until("sam  Half of")
    sam.interrupt()
    assert speaker.left()
    sam.until("(cancelled; the partial reply above was discarded)")
    assert cli.lines("events", "sam")[-1]["type"] == "turn_cancelled"
    sam.type("Still there?")
    speaker.asked()
    speaker.say(says("I am.", thought=""))
    sam.until("sam  I am.\n")
    sam.prompted(4)
    sam.type("/exit")
    assert sam.ended() == 0
    assert "Half of" not in cli.ok("events", "sam", "--json")
    assert cli.ok("verify", "sam")


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
    plain.until("now")
    plain.type("Hi")
    speaker.asked()
    speaker.say(ReplyDelta(text="Thinking."), *spoken("One.", "Two."), says("Three."))
    plain.until("sam  Three.")
    assert "Thinking." not in plain.shown
    plain.type("/exit")
    assert plain.ended() == 0
    assert [r["payload"].get("stream", False) for r in cli.lines("events", "sam", "--type", "agent_configured")][
        -1:
    ] == [False]
