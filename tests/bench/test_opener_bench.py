"""The conversation opener: an agent that speaks first uses what it was told about the user, and the past."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.paper import opener
from everlog.actors.agent.agent_setup import InitialBlock
from everlog.actors.memory.agent_search import AgentSearcher
from everlog.actors.ports.effects import Page


def figures(folder: Path, plan: opener.Plan = opener.QUICK) -> dict[str, float]:
    opened = asyncio.run(opener.measure(folder / "store", plan))
    assert sum(found.failed for _, found in opened) == 0
    return {one.key: one.value for one in opener.figures(opened)}


def test_no_two_scenes_share_a_word_that_counts() -> None:
    """A word that counts is in its own scene and in no other, so that an opener cannot score for another user."""
    for scene in opener.SCENES:
        assert all(opener.uses(" ".join(scene.lines), [word]) for word in scene.line_words)
        assert all(opener.uses(scene.past, [word]) for word in scene.past_words)
        for other in opener.SCENES:
            text = " ".join([*other.lines, other.past])
            assert other is scene or not opener.uses(text, [*scene.line_words, *scene.past_words])
        assert not opener.uses(" ".join(scene.lines), scene.past_words)
        assert not opener.uses(scene.past, scene.line_words)


def test_a_script_that_reads_core_memory_and_searches_uses_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every opener uses a line and the past, and the past was in no request before the search had found it."""
    before: list[str] = []
    script = opener.next_call

    def watched(messages: Sequence[dict[str, Any]]) -> opener.Call:
        name, arguments = script(messages)
        if name == opener.FUNCTION:
            before.append(json.dumps(messages))
        return name, arguments

    monkeypatch.setattr(opener, "next_call", watched)
    found = figures(tmp_path)
    assert (found["opener_persona"], found["opener_past"]) == (1, 1)
    assert len(before) == len(opener.QUICK.scenes)
    assert not any(scene.past in request for scene in opener.SCENES for request in before)


def test_an_opener_without_a_search_does_not_use_the_past(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the search finds nothing, the use of the past falls to 0, and that of core memory stays."""

    async def nothing(*_: object) -> Page:
        return Page(total=0, page=0, pages=0, results=())

    monkeypatch.setattr(AgentSearcher, "recall", nothing)
    found = figures(tmp_path)
    assert (found["opener_persona"], found["opener_past"]) == (1, 0)


def test_an_opener_without_core_memory_does_not_use_the_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If core memory lacks the lines, their use falls to 0."""
    monkeypatch.setattr(opener, "human", lambda _: InitialBlock("human", "Nothing is known about the user."))
    assert figures(tmp_path)["opener_persona"] == 0


def test_similarity_is_that_of_the_nearest_lines() -> None:
    """SIM-1 is 1 for a line itself, SIM-3 is the mean of three lines and lower, and no opener has 0."""
    scene = opener.SCENES[0]
    assert opener.similarity(scene.lines[1], scene, 1) == pytest.approx(1, abs=0.01)
    assert 0 < opener.similarity(scene.lines[1], scene, 3) < 0.9
    assert opener.similarity("", scene, 1) == 0


def test_the_last_line_has_the_promised_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last line is one JSON object with exactly the promised keys, and no file is left."""
    monkeypatch.chdir(tmp_path)
    opener.report(opener.Plan(scenes=opener.SCENES[:2]))
    said = json.loads(capsys.readouterr().out.strip().split("\n")[-1])
    assert tuple(figure["key"] for figure in said["figures"]) == opener.KEYS
    assert not list(tmp_path.iterdir())
