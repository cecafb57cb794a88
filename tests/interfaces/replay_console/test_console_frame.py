"""A frame has exactly as many lines and cells as the terminal, whatever the story contains; and it shows the story."""

import io
from collections.abc import Sequence

import pytest
from rich.cells import cell_len
from rich.console import Console as Out
from rich.text import Text

from everlog.events import AgentConfigured, Event, FunctionResult, MemoryEdited, ModelReply, Usage, UserMessage
from everlog.interfaces.replay_console import console_panes
from everlog.interfaces.replay_console.console_frame import KEYS, frame
from everlog.interfaces.replay_console.console_state import Console
from everlog.interfaces.replay_console.playback import Playback
from everlog.interfaces.replay_console.timeline import ReplayTimeline
from tests.support.cli.story_records import RECORDS, console_at, recorded, story_of
from tests.support.seeds import few_and_all, pick

SIZES = [(80, 24), (120, 40), (200, 60), (60, 20), (100, 12), (40, 9), (20, 5), (90, 7), (3, 2), (1, 1)]
STORY = story_of(RECORDS)
HOSTILE = [
    "\x1b[2J\x1b[31mred\x1b]0;title\x07",
    "[bold red]markup[/bold red] [/] [link=x]",
    "漢字" * 300,
    "👩‍👩‍👧 e\u0301\u200b" * 100,
    "\t\ttabs\r\nand\rreturns\x08\x00" * 20,
    "x" * 5000,
    "line\n" * 500,
    "\u202eright to left\u2066",
    "",
    "\n\n\n",
]


def hostile() -> ReplayTimeline:
    """Return a story with all troublesome characters in every place that has text."""
    told: list[tuple[Event, int, int]] = [(AgentConfigured(model=HOSTILE[0], window=7, renderer=1), 0, 0)]
    for turn, text in enumerate(HOSTILE, start=1):
        told += [
            (UserMessage(text=text, name=text[:50]), turn, 0),
            (ModelReply(text=text, usage=Usage(1, 1, 10**12)), turn, 1),
            (MemoryEdited(label=text[:60], operation="set", limit=9, text=text), turn, 1),
            (MemoryEdited(label="human", operation="set", limit=9, text=text + HOSTILE[2]), turn, 1),
            (FunctionResult(call_id="a", name=text, text=text, ok=False), turn, 1),
        ]
    return story_of(recorded(told))


def rendered(text: Text, width: int, height: int) -> str:
    out = Out(width=width, height=height, file=io.StringIO(), color_system=None, legacy_windows=False)
    with out.capture() as shown:
        out.print(text)
    return shown.get()


def lines(console: Console, story: ReplayTimeline, width: int, height: int) -> Sequence[str]:
    return frame(console, story, width, height).plain.split("\n")


@pytest.mark.parametrize("count", few_and_all(3, part="commands"))
@pytest.mark.parametrize(("width", "height"), SIZES, ids=str)
def test_a_frame_fills_the_terminal_and_no_more(width: int, height: int, count: int | None) -> None:
    """At any moment and in each mode, the frame has as many lines as the terminal, and each line as many cells."""
    for story in (STORY, hostile()):
        for seq in pick(range(1, story.last + 1), count, label=f"frames {width} {height}"):
            for changed in ({}, {"mode": "help"}, {"mode": "fork", "typed": HOSTILE[0] * 9}, {"said": HOSTILE[2]}):
                shown = lines(console_at(story, seq, **changed), story, width, height)
                assert len(shown) == height
                assert {cell_len(line) for line in shown} == {width}


def test_a_terminal_shows_it_line_by_line() -> None:
    """Rich, which draws the frame, wraps no line and adds nothing."""
    for width, height in SIZES:
        page = frame(console_at(STORY, 9), STORY, width, height)
        assert rendered(page, width, height) == page.plain + "\n"


def test_words_from_outside_have_no_power() -> None:
    """No escape sequence, bell, carriage return or direction mark reaches the terminal; square brackets are shown."""
    story, seen = hostile(), ""
    for seq in range(1, story.last + 1):
        seen += rendered(frame(console_at(story, seq, search_text="[bold"), story, 120, 40), 120, 40)
    assert not {c for c in seen if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 or c in "\u202e\u2066"}
    assert r"\x1b[2J\x1b[31mred" in seen
    assert "[bold red]markup[/bold red]" in seen


WHOLE = """\
 PAUSE 1x   sam · scripted                                                   2023-11-14 22:13:31 UTC
context ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┃━━────────  820 of 1,000  82%  warned                    ▇▇
─ events ─────────────────────────────────────────────────┬─ core memory ───────────────────────────
      5 thinks    A sailor!  · 800 tokens, 80%            │ human  16 of 200      appended at seq 6
        calls     core_memory_append(name="human",        │  Name: Chad
                  content="Sails") ♥                      │  Sails
      6 memory    human appended: Name: Chad Sails        │
      7 → ok      core_memory_append                      │
      8 ♥         requested                               │
      9 pressure  the agent is warned that its context is │
                  filling up                              │
     10 thinks    I greet him.  · 820 tokens, 82%         │
        calls     wind(place="Bergen")                    │
▌    11 failed    wind: no such place                     │
             e                   e                               f                   s
 ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━●─────────────────────────────────
 seq 11 of 16 · turn 1, step 2 · function_result · 1.0 s later                  2 edits · 1 failure
 space play, pause  ← → event  n p turn  s summary  e edit  f failure  + - speed  ? help  q quit"""
NARROW = """\
 PAUSE 1x   sam · scripted           2023-11-14 22:13:26 UTC
context ━━━━━━━━━━━━━━━━━━━━━━━━┃━───────  800 of 1,000  80%
─ events ───────────────────────────────────────────────────
                  UTC
      3 memory    human created: Name: Chad
── turn 1 · 2023-11-14 22:13:24 UTC ────────────────────────
      4 user      I sail a boat
      5 thinks    A sailor!  · 800 tokens, 80%
        calls     core_memory_append(name="human",
                  content="Sails") ♥
▌     6 memory    human appended: Name: Chad Sails
─ core memory ──────────────────────────────────────────────
human  16 of 200                          appended at seq 6
 Name: Chad
 Sails

        e           e                  f          s
 ━━━━━━━━━━━━━━━━━━━●──────────────────────────────────────
 seq 6 of 16 · turn 1, step 1 · memory_edited · 1.0 s later
 space play, pause  ← → event  n p turn  ? help  q quit"""


@pytest.mark.parametrize(("seq", "width", "height", "expected"), [(11, 100, 18, WHOLE), (6, 60, 20, NARROW)])
def test_the_whole_of_a_frame(seq: int, width: int, height: int, expected: str) -> None:
    """One whole frame: memory is next to the story, or below it on a narrow terminal."""
    shown = "\n".join(line.rstrip() for line in lines(console_at(STORY, seq), STORY, width, height))
    assert shown == expected


def styles(text: Text, words: str) -> set[str]:
    """Return the styles of the place where these words are."""
    at = text.plain.index(words)
    return {str(span.style) for span in text.spans if span.start <= at and at + len(words) <= span.end}


def test_changes_are_coloured_for_one_turn() -> None:
    """In the turn of an edit the added text is coloured, in the story and in the block; in the next turn it is not."""
    shown = Text("\n").join(console_panes.memory(STORY, 12, 40, 10))
    assert "bold green underline" in styles(shown, "Sails")
    assert "bold green underline" not in styles(shown, "Name: Chad")
    shown = Text("\n").join(console_panes.memory(STORY, 13, 40, 10))
    assert "bold green underline" not in styles(shown, "Sails")


def test_removed_text_is_struck_through_for_one_turn() -> None:
    """Text that an edit removed is shown struck through during that turn."""
    told = [
        (MemoryEdited(label="human", operation="created", limit=99, text="Lives in Bergen"), 0, 0),
        (UserMessage(text="no"), 1, 0),
        (MemoryEdited(label="human", operation="removed", limit=99, text="Lives"), 1, 1),
        (UserMessage(text="next"), 2, 0),
    ]
    story = story_of(recorded(told))
    shown = Text("\n").join(console_panes.memory(story, 3, 40, 10))
    assert "red strike" in styles(shown, "in Bergen")
    assert "Bergen" not in Text("\n").join(console_panes.memory(story, 4, 40, 10)).plain


def test_the_block_that_changed_gets_room() -> None:
    """If blocks are longer than the pane, the change is visible, and every block has its heading."""
    long = "\n".join(f"line {n}" for n in range(100))
    born = [
        (MemoryEdited(label=label, operation="created", limit=9999, text=long), 0, 0)
        for label in ("persona", "human", "plans")
    ]
    edit = (MemoryEdited(label="human", operation="replaced", limit=9999, text=long.replace("line 70", "rain")), 1, 1)
    story = story_of(recorded([*born, edit]))
    shown = [line.plain for line in console_panes.memory(story, 4, 40, 20)]
    assert len(shown) == 20
    assert [label for label in ("persona", "human", "plans") if any(line.startswith(label) for line in shown)]
    assert any("rain" in line for line in shown)
    assert sum(line.startswith(" line") for line in shown) > 10
    assert len(console_panes.memory(story, 4, 40, 3)) <= 3
    assert console_panes.memory(story, 4, 40, 3)[0].plain.startswith("human")


@pytest.mark.parametrize(
    ("tokens", "style"), [(0, "green"), (10, "green"), (600, "yellow"), (760, "red"), (1000, "red"), (5000, "red")]
)
def test_the_gauge(tokens: int, style: str) -> None:
    """The gauge shows the tokens of the last call, has its mark at the warning threshold, and is red from there."""
    told = [
        (AgentConfigured(model="m", window=1000, renderer=1, pressure_fraction=0.75), 0, 0),
        (ModelReply(text="x", usage=Usage(1, 1, tokens)), 1, 1),
    ]
    shown = console_panes.gauge(story_of(recorded(told)), 2, 80)
    figures = f"  {tokens:,} of 1,000  {tokens / 1000:.0%}"
    assert shown.plain.endswith(figures)
    bar = shown.plain.removeprefix("context ").removesuffix(figures)
    mark = int(len(bar) * 0.75)
    full = min(len(bar), round(len(bar) * tokens / 1000) or int(tokens > 0))
    assert bar[mark] == "┃"
    assert bar.replace("┃", "━" if full > mark else "─") == "━" * full + "─" * (len(bar) - full)
    assert f"bold {style}" in styles(shown, f"{tokens / 1000:.0%}")


def test_a_story_without_a_configuration_has_a_frame() -> None:
    """An agent whose configuration is missing has no gauge and no memory, and the frame says so."""
    story = story_of(recorded([(UserMessage(text="hi"), 1, 0)]))
    shown = "\n".join(lines(console_at(story, 1), story, 100, 20))
    assert "no window" in shown
    assert "no memory blocks yet" in shown


def test_the_timeline_has_the_important_signs() -> None:
    """Of several signs in one cell, a failure takes precedence over a summary, and a summary over an edit."""
    signs, bar = console_panes.timeline(STORY, Playback(seq=16, first=1, last=16), 18)
    assert signs.plain == "   e  e    f  s   "
    assert bar.plain == " " + "━" * 15 + "●" + " "
    squeezed, _ = console_panes.timeline(STORY, Playback(seq=1, first=1, last=16), 4)
    assert "f" in squeezed.plain
    part, _ = console_panes.timeline(STORY, Playback(seq=5, first=5, last=8), 18)
    assert part.plain.split() == ["e"]


def test_the_state_of_the_player_is_said() -> None:
    """The frame shows playing, paused, at the end or waiting for more, and the speed."""

    def head(**changed: object) -> str:
        playback = Playback(**{"seq": 3, "first": 1, "last": 16, **changed})
        return lines(Console(playback=playback), STORY, 80, 24)[0]

    assert " PLAY 8x " in head(speed=8.0)
    assert " PAUSE 0.5x " in head(playing=False, speed=0.5)
    assert " END 1x " in head(seq=16, playing=False)
    assert " LIVE 1x " in head(seq=16, follow=True)


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_a_message_is_not_cut_on_a_narrow_terminal(width: int) -> None:
    """The command that continues with a fork is shown whole, on more lines if needed; the frame keeps its size."""
    command = "everlog chat 'a fork of sam at noon'"
    shown = lines(console_at(STORY, 3, said=f"Forked. Run `{command}`."), STORY, width, 24)
    assert len(shown) == 24
    assert f"Forked. Run `{command}`." in " ".join(" ".join(line.split()) for line in shown[-4:])


def test_the_foot_shows_input_or_a_message_instead_of_the_keys() -> None:
    """A search, a name or a message replaces the list of keys; otherwise the list is shown, with help and quit if they
    fit.
    """
    assert " search: boat█" in lines(console_at(STORY, 3, mode="search", typed="boat"), STORY, 80, 24)[-1]
    typing = lines(console_at(STORY, 3, mode="fork", typed="bob"), STORY, 80, 24)[-1]
    assert " fork at seq 3, name: bob█" in typing
    assert "There is no x." in lines(console_at(STORY, 3, said="There is no x."), STORY, 80, 24)[-1]
    for width in (20, 40, 80, 200):
        keys = lines(console_at(STORY, 3), STORY, width, 24)[-1]
        assert "? help  q quit" in keys
    assert all(f" {key} {does} " in keys for key, does in KEYS)


def test_help_has_every_key() -> None:
    """The help page names each key that the foot names."""
    shown = "\n".join(lines(console_at(STORY, 3, mode="help"), STORY, 80, 24))
    for key in ("space", "← →", "p n", "s S", "e E", "f ", "g G", "+ -", "/ ", "F ", "q "):
        assert f"  {key}" in shown


def test_search_matches_are_marked() -> None:
    """Matches of the last search are marked in the story."""
    shown = frame(console_at(STORY, 12, search_text="AHOY"), STORY, 100, 20)
    assert "black on yellow" in styles(shown, "Ahoy")
