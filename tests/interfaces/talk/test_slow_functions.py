"""A slow function of the user's, at a terminal: its call is shown first, and Ctrl-C ends the call and not the chat."""

import re
from pathlib import Path

import pytest
from rich.console import Console

from everlog.actors.formats.reply_preview import Preview
from everlog.events import Call
from everlog.interfaces.output.terminal_output import TerminalFrontEnd
from tests.interfaces.talk.test_streaming_text import Sitting, Speaker, sits, speaker
from tests.support.cli.command_line import Line, completion, says
from tests.support.cli.terminal_program import CTRL_C

__all__ = ["sits", "speaker"]

FILE = '''
"""Functions that hang, each in its way."""

import asyncio
import threading

from everlog import progress, tool


@tool(effect="read_only", timeout_s=None)
def slow(s: int) -> str:
    """Hang in a thread, without any end.

    Args:
        s: How long.
    """
    progress("1 of \\x1b[2J2 winds")
    threading.Event().wait()
    return "never"


@tool(timeout_s=None)
async def wait(s: int) -> str:
    """Hang in the event loop.

    Args:
        s: How long.
    """
    progress("1 of \\x1b[2J2 winds")
    await asyncio.Event().wait()
    return "never"
'''


@pytest.fixture
def tools(tmp_path: Path) -> str:
    path = tmp_path / "slow.py"
    path.write_text(FILE)
    return str(path)


@pytest.mark.parametrize("name", ["slow", "wait"])
def test_ctrl_c_ends_the_call_and_not_the_chat(
    name: str, cli: Line, speaker: Speaker, sits: Sitting, tools: str
) -> None:
    """The thought, the call and its progress are on the screen while the function runs. Ctrl-C ends the turn at once,
    although the thread of a plain function cannot be stopped; the next message is answered, and the process ends
    although the thread hangs.
    """
    sam = sits("chat", "sam", "--model", "spoken", "--tools", tools)
    sam.prompted(1)
    sam.type("Do it")
    speaker.asked()
    speaker.say(completion((name, {"s": 20}), thought="I am thinking about tomorrow"))
    sam.until(f"ƒ {name}(s=20)\n")
    sam.until("1 of \\x1b[2J2 winds")
    assert "I am thinking about tomorrow\n" in sam.shown
    sam.press(CTRL_C)
    sam.until("cancelled")
    assert cli.lines("events", "sam")[-1]["type"] == "turn_cancelled"
    sam.prompted(2)
    sam.type("Still there?")
    speaker.asked()
    speaker.say(says("I am.", thought=""))
    sam.until("sam  I am.\n")
    sam.prompted(3)
    assert sam.shown.count("I am thinking about tomorrow") == 1
    sam.type("/exit")
    assert sam.ended() == 0
    assert cli.ok("verify", "sam", "--tools", tools)


def test_send_shows_the_call_first_and_ends_at_ctrl_c(cli: Line, speaker: Speaker, sits: Sitting, tools: str) -> None:
    """`send -v` at a terminal shows the call before the function runs, and its process ends at Ctrl-C although the
    thread hangs. The turn is finished later.
    """
    sam = sits("send", "sam", "Do it", "-v", "--model", "spoken", "--tools", tools)
    speaker.asked()
    speaker.say(completion(("slow", {"s": 20}), thought="Now."))
    sam.until("ƒ slow(s=20)\n")
    sam.until("    1 of \\x1b[2J2 winds\n")
    assert sam.shown.index("Now.") < sam.shown.index("ƒ slow")
    sam.press(CTRL_C)
    assert sam.ended() == 130


def shown(*steps: tuple[str, object]) -> str:
    """Return what a terminal shows after these calls of a front end."""
    out = Console(width=80, force_terminal=True, color_system=None, highlight=False)
    front_end = TerminalFrontEnd(out, verbose=True)
    with out.capture() as captured:
        for step, value in steps:
            match step, value:
                case "call", Call():
                    front_end.preview(Preview(1, 1, "call", call=value), "sam")
                case "progress", str():
                    front_end.preview(Preview(1, 1, "progress", value), "sam")
                case "thought", str():
                    front_end.preview(Preview(1, 1, "thought", value), "sam")
                case "thought is final", str():
                    front_end.inner_monologue(value)
                case "said", str():
                    front_end.assistant_message(value, "sam")
                case "result", Call():
                    front_end.function_message(value, "west", ok=True)
                case "failure", Call():
                    front_end.function_message(value, "no wind", ok=False)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", captured.get())


WIND = Call("c1", "wind", '{"place":"Oslo"}')
OTHER = Call("c2", "tide", "{}")


def test_a_result_is_shown_below_its_call() -> None:
    """The last word of a streamed thought is shown before the call, and the thought is not shown again when it is
    durable. The result is below the call.
    """
    steps = [("thought", "I look it up"), ("call", WIND), ("thought is final", "I look it up"), ("result", WIND)]
    assert shown(*steps) == '  I look it up\n  ƒ wind(place="Oslo")\n    → west\n'


def test_progress_is_shown_between_a_call_and_its_result() -> None:
    """The lines of progress stand below the call, without control characters, and the result below them."""
    steps = [("call", WIND), ("progress", "1 of 2"), ("progress", "\x1b[2J2 of 2"), ("result", WIND)]
    assert shown(*steps) == '  ƒ wind(place="Oslo")\n    1 of 2\n    \\x1b[2J2 of 2\n    → west\n'


def test_a_result_names_its_call_if_the_call_is_not_the_line_above() -> None:
    """After other output, and without an announcement, call and result are on one line."""
    assert shown(("call", WIND), ("said", "Wait."), ("failure", WIND)) == (
        '  ƒ wind(place="Oslo")\nsam  Wait.\n  ƒ wind(place="Oslo") → no wind\n'
    )
    assert shown(("call", WIND), ("result", OTHER), ("result", WIND)) == (
        '  ƒ wind(place="Oslo")\n  ƒ tide() → west\n  ƒ wind(place="Oslo") → west\n'
    )


def test_the_result_of_the_only_call_is_one_line_without_an_announcement() -> None:
    """A memory function, which is not announced, stays one line."""
    assert shown(("result", WIND)) == '  ƒ wind(place="Oslo") → west\n'
