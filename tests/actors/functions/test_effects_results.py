"""Results and exceptions of users' functions: reported to the model, never fatal."""

import asyncio
import json
from typing import Any

import pytest

from everlog.actors.functions.tools import Tool, tool
from everlog.actors.memory.core_memory import Memory
from everlog.events import BadInput
from tests.actors.functions.test_effects import BORN, assert_verified, results, told
from tests.support.agent_world import World, completion, kinds, say


def raising(error: Exception, *, effect: Any = "at_most_once") -> Tool:
    @tool(effect=effect)
    def fail(what: str) -> str:
        """Fail.

        Args:
            what: What to fail at.
        """
        raise error

    return fail


@pytest.mark.parametrize("effect", ["at_most_once", "idempotent", "read_only"])
@pytest.mark.parametrize("error", [KeyError("lost"), ZeroDivisionError("by zero"), OSError(5, "broken")], ids=repr)
def test_a_function_that_raises_anything_has_failed(error: Exception, effect: str) -> None:
    """The model gets the error as the call's result and a heartbeat, and the turn ends normally."""
    world = World(completion(calls=[("fail", {"what": "x"})]), say("Oh."), tools=[raising(error, effect=effect)])
    left = told(world)[BORN:]
    assert kinds(left)[-5:] == ["function_result", "heartbeat", "model_reply", "message_sent", "function_result"]
    failed = results(left)[0]
    assert (failed.ok, failed.unknown) == (False, False)
    assert failed.text == f"Error calling function fail: {type(error).__name__}: {error}"
    assert json.loads(world.model.messages()[-2]["content"])["status"] == "Failed"
    assert_verified(world)


class Strange:
    """A value that JSON cannot represent."""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        ("plain", "plain"),
        (3, "3"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (Strange(), '"<Strange>"'),
        ([Strange()], '["<Strange>"]'),
        (2**80, str(2**80)),
        ({(1, 2): 3}, '{"<tuple>":3}'),
        ("half \ud83d", "half ?"),
        ("x" * 4000, "x" * 3000 + "... [NOTE: function output was truncated since it exceeded the character limit "
         "(4000 > 3000)]"),
    ],
    ids=["none", "text", "number", "object", "strange", "strange in a list", "large", "odd keys", "surrogate", "long"],
)  # fmt: skip
@pytest.mark.parametrize("effect", ["at_most_once", "read_only"])
def test_any_result_of_a_function_is_recorded_and_shown(value: Any, text: str, effect: Any) -> None:
    """Any return value leaves a complete turn, and verify computes the same result text."""

    @tool(effect=effect)
    def give(what: str) -> Any:
        """Give something back.

        Args:
            what: What to give.
        """
        return value

    world = World(completion(calls=[("give", {"what": "x"})]), tools=[give])
    left = told(world)[BORN:]
    assert [(r.ok, r.text) for r in results(left)] == [(True, text)]
    assert_verified(world)


def test_an_error_text_is_cut_and_cleaned_like_a_result() -> None:
    """A traceback of megabytes, or half a character, in an exception does not end the turn."""
    for error in (ValueError("y" * 5000), ValueError("half \ud83d")):
        world = World(completion(calls=[("fail", {"what": "x"})]), say("Oh."), tools=[raising(error)])
        failed = results(told(world)[BORN:])[0]
        assert not failed.ok
        assert len(failed.text) < 3200
        assert_verified(world)


def test_async_functions_are_awaited() -> None:
    """A function of each effect class may be a coroutine function, and may fail like any other."""

    @tool(effect="read_only")
    async def wait(what: str) -> str:
        """Wait.

        Args:
            what: What to wait for.
        """
        await asyncio.sleep(0)
        if what == "godot":
            raise TimeoutError("he does not come")
        return f"{what} came"

    world = World(completion(calls=[("wait", {"what": "rain"}), ("wait", {"what": "godot"})]), say("Ok."), tools=[wait])
    left = told(world)[BORN:]
    assert [r.text for r in results(left)][:2] == [
        "rain came",
        "Error calling function wait: TimeoutError: he does not come",
    ]
    assert_verified(world)


@tool
def remember_twice(memory: Memory, label: str, what: str) -> str:
    """Write something into a block two times.

    Args:
        label: The block.
        what: The text.
    """
    memory.append(label, what)
    if what == "fail":
        raise RuntimeError("no more")
    memory.append(label, what)
    return f"{len(memory.value(label))} characters"


def test_a_users_function_may_edit_memory() -> None:
    """A first parameter of type Memory makes a function pure: its edits are recorded, there is no intent, and a failure
    has no effect.
    """
    assert remember_twice.effect == "pure"
    assert "memory" not in json.loads(remember_twice.schema)["parameters"]["properties"]
    world = World(completion(calls=[("remember_twice", {"label": "human", "what": "Sails."})]), tools=[remember_twice])
    left = told(world)[BORN:]
    assert kinds(left) == ["user_message", "model_reply", "memory_edited", "memory_edited", "function_result"]
    assert left[3].text and left[3].text.endswith("Sails.\nSails.")
    assert len({record.commit for record in left}) == 2
    assert_verified(world)


def test_a_memory_function_that_fails_leaves_memory_as_it_was() -> None:
    """An edit before the exception is undone, the model is told, and the next call sees the old value."""
    calls = [
        ("remember_twice", {"label": "human", "what": "fail"}),
        ("remember_twice", {"label": "moon", "what": "x"}),
        ("core_memory_append", {"name": "human", "content": "Fine."}),
    ]
    world = World(completion(calls=calls), say("Oh."), tools=[remember_twice])
    left = told(world)[BORN:]
    assert [result.ok for result in results(left)][:3] == [False, False, True]
    (edit,) = [record for record in left if record.type == "memory_edited"]
    assert edit.text and "fail" not in edit.text
    assert_verified(world)


def test_an_async_memory_function_is_refused_where_it_is_made() -> None:
    """An async function with a Memory parameter is refused, because memory edits are pure and cannot wait."""

    async def later(memory: Memory, what: str) -> None:
        """Edit later.

        Args:
            what: The text.
        """

    with pytest.raises(BadInput, match="later"):
        tool(later)


def no_shape(odd: object, fine: int) -> None:
    """Do it.

    Args:
        odd: Has a type that a schema cannot say.
        fine: Is fine.
    """


def no_name(*rest: str) -> None:
    """Do it.

    Args:
        rest: Has no names.
    """


def taken_name(request_heartbeat: bool) -> None:
    """Do it.

    Args:
        request_heartbeat: Ours.
    """


def odd_default(words: list[str] = ["a"]) -> None:  # noqa: B006
    """Do it.

    Args:
        words: Have a default that would be shared.
    """


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (no_shape, "'odd'"),
        (no_name, "'rest'"),
        (taken_name, "'request_heartbeat'"),
        (odd_default, "'words'"),
    ],
)
def test_a_function_that_the_model_could_not_call_is_refused_by_name(function: Any, named: str) -> None:
    """A type that JSON cannot represent, parameters without names, and reserved names raise BadInput with one
    paragraph.
    """
    with pytest.raises(BadInput, match=named) as caught:
        tool(function)
    assert function.__name__ in str(caught.value)
    assert "\n" not in str(caught.value)
