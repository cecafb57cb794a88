"""A Python function as a function of the agent: its schema, arguments, results and effect class."""

import asyncio
import json
from typing import Annotated, Any

import msgspec
import pytest

from everlog.actors.functions.function_text import returned
from everlog.actors.functions.tools import Tool, tool
from everlog.actors.memory.core_memory import Memory
from everlog.events import BadInput, FunctionError, FunctionStarted, Record, event_of
from tests.support.agent_world import World, completion, kinds, say


class Place(msgspec.Struct):
    """A place, for tests of nested structures."""

    town: str
    zip: int = 0


@tool(effect="read_only")
def find(place: Place, words: list[str], strict: bool = False, near: str | None = None, weight: float = 1.0) -> str:
    """Find things.

    They are found in the place.

    Args:
        place: Where to look.
        words: What to look for,
            in any order.
        strict: Whether all must be there.
        near: Near what.
        weight: How much it matters.
    """
    return f"{place.town} {words} {strict} {near} {weight}"


def test_the_schema_comes_from_hints_and_docstring() -> None:
    """Types, descriptions, defaults and nested structures are in the schema; parameters without a default are required,
    and so is the heartbeat.
    """
    schema = json.loads(find.schema)
    assert schema["description"] == "Find things. They are found in the place."
    shape = schema["parameters"]
    assert shape["required"] == ["place", "words", "request_heartbeat"]
    assert shape["properties"]["words"]["description"] == "What to look for, in any order."
    assert shape["properties"]["words"]["items"] == {"type": "string"}
    assert shape["properties"]["strict"]["type"] == "boolean"
    assert shape["properties"]["request_heartbeat"]["type"] == "boolean"
    assert shape["$defs"]["Place"]["properties"]["zip"]["type"] == "integer"


GOOGLE = """Tell the wind.

It blows from somewhere.

Args:
    place: Name of a place
        at the coast.
    hours (int): How far: to look ahead.

Returns:
    A text.

Raises:
    hours: never.
"""
NUMPY = """Tell the wind.

It blows from somewhere.

Parameters
----------
place : str
    Name of a place

    at the coast.
hours : int, optional
    How far: to look ahead.

Returns
-------
str
    A text.
"""
FIELDS = """Tell the wind.

It blows from somewhere.

:param place: Name of a place
    at the coast.
:type place: str
:param int hours: How far: to look ahead.

Not this.

:returns: A text.
"""


@pytest.mark.parametrize("doc", [GOOGLE, NUMPY, FIELDS])
def test_docstrings_of_three_styles_give_the_same_schema(doc: str) -> None:
    """Google's, NumPy's and reStructuredText's descriptions of parameters are read alike."""

    def wind(place: str, hours: int = 24) -> str:
        return f"{place} {hours}"

    wind.__doc__ = doc
    schema = json.loads(tool(wind).schema)
    assert schema["description"] == "Tell the wind. It blows from somewhere."
    described = {name: shape.get("description") for name, shape in schema["parameters"]["properties"].items()}
    assert described["place"] == "Name of a place at the coast."
    assert described["hours"] == "How far: to look ahead."


def test_parameters_are_described_by_annotations() -> None:
    """A text in `Annotated` describes a parameter, and so does the description of a `msgspec.Meta`, whose limits hold.
    A docstring that describes the parameter comes first.
    """

    @tool(effect="read_only")
    def wind(
        place: Annotated[str, "Name of a place."],
        hours: Annotated[int, msgspec.Meta(ge=1, description="How far to look.")] = 24,
        unit: Annotated[str, "Not this."] = "knots",
    ) -> str:
        """Tell the wind.

        Args:
            unit: Unit of the speed.
        """
        return f"{place} {hours} {unit}"

    shapes = json.loads(wind.schema)["parameters"]["properties"]
    assert [shapes[name]["description"] for name in ("place", "hours", "unit")] == [
        "Name of a place.", "How far to look.", "Unit of the speed.",
    ]  # fmt: skip
    assert shapes["hours"]["minimum"] == 1
    with pytest.raises(FunctionError, match="hours"):
        wind.bind({"place": "Oslo", "hours": 0})


@pytest.mark.parametrize(("doc", "hint", "named"), [
    (None, int, "docstring"), ("Do.", int, "'x'"), ("Do.\n\nArgs:\n    y: No.", int, "'x'"),
    ("Do.\n\nArgs:\n    x: It.", None, "'x'"),
])  # fmt: skip
def test_functions_without_descriptions_are_refused(doc: str | None, hint: Any, named: str) -> None:
    """A function without a docstring, or a parameter without a hint or a description, raises BadInput with its name."""

    def vague(x):
        return x

    vague.__doc__ = doc
    if hint is not None:
        vague.__annotations__ = {"x": hint}
    with pytest.raises(BadInput, match=named):
        tool(vague)


@pytest.mark.parametrize(("arguments", "named"), [
    ({"words": []}, "place"), ({"place": {"town": 3}, "words": []}, "town"),
    ({"place": {"town": "a"}, "words": "b"}, "words"),
    ({"place": {"town": "a"}, "words": [], "nonsense": 1}, "nonsense"),
])  # fmt: skip
def test_arguments_are_checked_in_words_for_the_model(arguments: dict[str, Any], named: str) -> None:
    """Missing, unknown and mistyped parameters are named."""
    with pytest.raises(FunctionError, match=named):
        find.bind(arguments)
    assert find.bind({"place": {"town": "a"}, "words": ["b"]})["near"] is None


def test_long_results_are_cut_with_a_note_and_searches_are_not() -> None:
    """Results are cut at 3,000 characters, as in MemGPT; None becomes "None", structures become JSON, other objects are
    printed.
    """
    cut = returned("x" * 5000, whole=False)
    assert cut.startswith("x" * 3000 + "... [NOTE: function output was truncated")
    assert "(5000 > 3000)" in cut
    assert returned("x" * 5000, whole=True) == "x" * 5000
    assert (returned(None, whole=False), returned({"a": [1]}, whole=False)) == ("None", '{"a":[1]}')
    assert returned(object, whole=False) == '"<type>"'


def ran(made: Tool, *, arguments: dict[str, Any] | None = None) -> tuple[World, list[Record]]:
    """Return the records of a turn with one call of the tool."""
    world = World(completion(calls=[(made.name, arguments or {})]), say("So."), tools=[made])
    return world, asyncio.run(world.tell("go"))[7:]


def test_an_effect_outside_the_log_is_announced_in_a_commit_of_its_own() -> None:
    """The intent is durable when the function runs, and the result is the next commit. A read-only function has no
    intent.
    """
    seen: list[list[str]] = []

    @tool(effect="idempotent")
    def post(idempotency_key: str) -> str:
        """Post it."""
        seen.append([*world_of_test[0].kinds()[-2:], idempotency_key])
        return "posted"

    @tool(effect="read_only")
    async def look() -> str:
        """Look."""
        return "seen"

    world_of_test: list[World] = []
    world = World(completion(calls=[("post", {})]), completion(calls=[("look", {})]), tools=[post, look])
    world_of_test.append(world)
    left = asyncio.run(world.tell("go", "look"))[7:]
    assert kinds(left) == [
        "user_message", "model_reply", "function_started", "function_result", "user_message", "model_reply",
        "function_result",
    ]  # fmt: skip
    started = event_of(left[2])
    assert isinstance(started, FunctionStarted)
    assert seen == [["model_reply", "function_started", started.key]]
    assert left[3].commit == left[2].commit + 1
    assert "idempotency_key" not in post.schema
    assert left[6].text == "seen"


def test_any_exception_of_a_users_function_reaches_the_model() -> None:
    """The result is failed, with the text of the exception; a heartbeat follows, and the turn continues."""

    @tool(effect="read_only")
    def broken() -> str:
        """Break."""
        raise ZeroDivisionError("by nothing")

    _, left = ran(broken)
    assert kinds(left)[:5] == ["user_message", "model_reply", "function_result", "heartbeat", "model_reply"]
    assert "by nothing" in (left[2].text or "")


def test_a_function_with_a_memory_edits_all_or_nothing() -> None:
    """The function's edits are in the reply's commit; if the function fails half-way, there are none."""

    @tool
    def plan(memory: Memory, text: str) -> str:
        """Plan.

        Args:
            text: What.
        """
        memory.append("human", text)
        memory.append("persona", text)
        return "planned"

    _, left = ran(plan, arguments={"text": "Sail."})
    assert kinds(left)[1:5] == ["model_reply", "memory_edited", "memory_edited", "function_result"]
    assert len({record.commit for record in left[1:5]}) == 1
    _, left = ran(plan, arguments={"text": "x" * 1990})
    assert "memory_edited" not in kinds(left)
    assert plan.effect == "pure"


def test_a_function_can_do_nothing_that_stops_the_agent() -> None:
    """An exit, a result that is no text, and an object that fails to print give failed calls, and the turn
    continues.
    """

    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("mute")

    @tool(effect="read_only")
    def leave() -> str:
        """Leave."""
        raise SystemExit(3)

    @tool(effect="read_only")
    def mute() -> str:
        """Say nothing."""
        raise Mute

    @tool
    def scribble(memory: Memory) -> None:
        """Write what is no text."""
        memory.set("human", ["a"])  # type: ignore[arg-type]

    @tool
    def halve(memory: Memory) -> None:
        """Write half a character."""
        memory.set("human", "\ud800")

    for made in (leave, mute, scribble, halve):
        world, left = ran(made)
        assert kinds(left)[:5] == ["user_message", "model_reply", "function_result", "heartbeat", "model_reply"], (
            made.name
        )
        assert {turn["status"] for turn in world.system.view("sam").rows("turns")} == {"done"}


def test_a_name_is_given_once_and_memory_is_not_edited_asynchronously() -> None:
    """Two functions of one name, a built-in name (current or old), and an async function that edits memory raise
    BadInput.
    """

    def made(name: str) -> Tool:
        @tool(name=name)
        def anything() -> None:
            """Do."""

        return anything

    for tools in ([made("twice"), made("twice")], [made("send_message")], [made("edit_memory")]):
        with pytest.raises(BadInput, match="already"):
            World(tools=tools)
    with pytest.raises(BadInput, match="async"):

        @tool
        async def edit(memory: Memory) -> None:
            """Edit."""


def test_values_unknown_to_json_are_named_by_type() -> None:
    """A result that JSON cannot represent is recorded by its type: an object's address would differ when verify runs
    the function again.
    """
    assert returned(object(), whole=False) == '"<object>"'
    assert returned({"a": {1, 2}, "b": object()}, whole=False).endswith('"b":"<object>"}')
