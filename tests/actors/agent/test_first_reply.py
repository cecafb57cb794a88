"""The check of the first reply: for which models it is on, and what it demands."""

import pytest

from everlog.actors.agent.agent_setup import Settings, configuration
from everlog.actors.models.model_catalogue import shipped
from everlog.actors.models.model_types import OPENAI_URL, Abilities, Catalogue, ModelDefaults, ProbeFindings
from everlog.actors.rules.first_message import NO_MONOLOGUE, first_message_fault
from everlog.events import Call, ModelReply


@pytest.mark.parametrize(
    ("model", "takes", "verified"),
    [("qwen3", True, True), ("qwen3", False, False), ("gpt-4o", False, True), ("gpt-5", True, True)],
)
def test_every_model_that_is_known_to_call_functions_is_checked(model: str, takes: bool, verified: bool) -> None:
    """A new agent has the check if its model calls functions; an agent keeps what it has, and a setting decides."""

    def known(_: str) -> ModelDefaults:
        return ModelDefaults(takes_functions=takes)

    made = configuration(Settings(model=model), None, {}, {}, known)
    assert made.verify_first is verified
    assert configuration(Settings(), made, {}, {}, known).verify_first is verified
    assert configuration(Settings(model=model, verify_first=not verified), None, {}, {}, known).verify_first != verified


def test_only_gpt_4_must_think_aloud() -> None:
    """A reply without a monologue is a fault of the models for which MemGPT demanded one, and of no other."""
    silent = ModelReply(text="", calls=[Call("1", "send_message", "{}")], finish_reason="tool_calls", model="m")
    assert first_message_fault(silent, aloud=True) == NO_MONOLOGUE
    assert first_message_fault(silent, aloud=False) is None
    assert first_message_fault(ModelReply(text="Hm.", finish_reason="stop", model="m"), aloud=False) is not None


@pytest.mark.parametrize(
    ("name", "url", "tools", "takes"),
    [
        ("gpt-5", OPENAI_URL, None, True),
        ("mine", OPENAI_URL, None, False),
        ("qwen3", "http://127.0.0.1:1/v1", True, True),
        ("qwen3", "http://127.0.0.1:1/v1", False, False),
        ("qwen3", "http://127.0.0.1:1/v1", None, False),
    ],
)
def test_a_test_or_the_name_tells_if_a_model_calls_functions(
    name: str, url: str, tools: bool | None, takes: bool
) -> None:
    """A tested model takes functions if it called one; at OpenAI's address the models with its names do."""
    tested = ProbeFindings(url=url, model=name, at=1, abilities=Abilities(tools=tools))
    catalogue = Catalogue(found=[] if tools is None else [tested], shipped=shipped())
    assert catalogue.known(name, url).takes_functions is takes
