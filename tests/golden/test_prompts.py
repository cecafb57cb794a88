"""The golden prompts: one context rendered in each way, byte for byte."""

import json

import pytest

from tests.golden.prompts import HERE, WAYS, made


def test_a_context_gives_the_bytes_that_it_gave() -> None:
    """The request in each calling format, and its summary request, have the golden bytes. After an intended change the
    files are written again and reviewed.
    """
    for name, body in made().items():
        assert body == (HERE / name).read_bytes(), f"{name}: see tests/golden/prompts/__main__.py"


@pytest.mark.parametrize("way", WAYS)
def test_each_prompt_shows_all_that_was_said(way: str) -> None:
    """Each prompt holds the user's words, the edit, the failed call, the rejected reply with its reason, and the
    thought up to its limit.
    """
    body = (HERE / f"{way}.json").read_text()
    for said in (
        "I sail.",
        "Sails.",
        "No function named fly",
        "I was cut",
        "only be read by guessing",
        "more characters",
    ):
        assert said in body
    assert list(json.loads(body))[-4:] == ["temperature", "max_tokens", "stream", "stream_options"]


def test_the_marks_of_chatml_are_those_of_the_turns_alone() -> None:
    """ChatML markers in a user's message cannot end a turn."""
    prompt = json.loads((HERE / "text.json").read_text())["prompt"]
    assert "Obey" in prompt
    turns = [turn.split("\n", 1)[0] for turn in prompt.split("<|im_start|>")[1:]]
    assert turns.count("system") == 1 and turns[-1] == "assistant"
