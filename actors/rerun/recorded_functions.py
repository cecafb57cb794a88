"""The functions of an agent in a rerun: what came of the same call then is what comes of it now; nothing else reaches
outside unasked.

Functions that edit memory or search it run for real, on the fork. Of the others a call that was made then, with the
same arguments and as often, is given the result of then. Any other call is a difference, and told as one: what only
reads is run, where the function is there; what acts is refused, unless the person allows it.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from everlog.actors.agent.decide import failure
from everlog.actors.functions.tools import HEARTBEAT, Effect, Tool
from everlog.actors.rerun.recorded_past import RecordedResults, canonical, edits_of, key_of, results_of
from everlog.events import FunctionError, FunctionResult, FunctionStarted, Record, UsageError, event_of

ResultOrigin = Literal["own", "recorded", "ran", "refused"]
"""How a call was answered: `own`, by a function of memory; from the record; by a function that ran; not at all."""

REFUSED = "refused: this is a rerun, and the call was not made then"
"""What the model is told of a call that is not run."""

SEARCHES = ("conversation_search", "conversation_search_date", "archival_memory_search")
"""Functions whose results depend on more than the log: what found by meaning depends on the index."""

BeforeResultHook = Callable[[], Awaitable[None]]
"""What is awaited before a result of then is given."""


def is_refusal(result: FunctionResult) -> bool:
    """Whether a call was refused because it was made in a rerun."""
    return not result.ok and result.text.endswith(REFUSED)


def schema_only_tool(schema: str, effect: Effect) -> Tool:
    """A function of which nothing is there but its schema: it can be asked for, and not run."""
    shape = msgspec.json.decode(schema)
    parameters = shape["parameters"]
    required = parameters.get("required", ())
    fields: list[Any] = [
        (name, Any) if name in required else (name, Any, msgspec.field(default=described.get("default")))
        for name, described in parameters["properties"].items()
        if name != HEARTBEAT
    ]
    return Tool(
        name=shape["name"],
        function=_never_run,
        effect=effect,
        schema=schema,
        arguments=msgspec.defstruct(f"{shape['name']}_arguments", fields, kw_only=True),
        aliases={},
        takes_memory=False,
        searches=False,
        takes_key=False,
        heartbeat=HEARTBEAT in parameters["properties"],
        whole=True,
        faults=(),
    )


def _never_run(**_: Any) -> FunctionResult:
    raise AssertionError("a function that is not there was run")


def schema_only_tools(
    agent_id: str, records: Sequence[Record], schemas: Mapping[str, str], tools: Mapping[str, Tool], cut: int
) -> dict[str, Tool]:
    """A stand-in for each function that the agent had and that is not among `tools`, by name.

    `records` are all of the agent's. Raises UsageError for one that edited memory after the cut: its result alone is
    not what it did.
    """
    effects = {event.name: event.effect for event in map(event_of, records) if isinstance(event, FunctionStarted)}
    called = {name for _, name, _, result in results_of(records) if result is not None}
    made = {}
    for schema in schemas.values():
        name = msgspec.json.decode(schema)["name"]
        if name in tools:
            continue
        if edits_of(records[cut:], name):
            raise UsageError(
                f"{name}, a function of {agent_id!r}, edits memory, and its results alone are not what it did: give it "
                "with --tools. Nothing was begun."
            )
        made[name] = schema_only_tool(schema, effects.get(name, "read_only" if name in called else "at_most_once"))
    return made


class FunctionReplayer:
    """Gives functions the results of then. What it refuses or lets run is told by the log of the fork."""

    def __init__(
        self,
        then: Sequence[Record],
        tools: Mapping[str, Tool],
        *,
        live: bool,
        recorded: bool,
        meanwhile: BeforeResultHook,
    ) -> None:
        """`tools`: all that there are, stand-ins too. `live`: what acts may run. `recorded`: nothing is run, not even
        a search of the fork, whose index need not be that of then.
        """
        self._live = live
        self._recorded = recorded
        self._meanwhile = meanwhile
        self._results = RecordedResults()
        for _, name, text, result in results_of(then):
            if result is not None:
                self._results.add(key_of(tools.get(name), name, text), result)

    def wrap(self, tool: Tool) -> Tool:
        """The function as a rerun has it."""
        if tool.effect == "pure" and not (self._recorded and tool.name in SEARCHES):
            return tool

        async def answered(*desk: Any, **given: Any) -> Any:
            bare = {name: value for name, value in given.items() if name != "idempotency_key" or not tool.takes_key}
            result = self._results.take((tool.name, canonical(bare)))
            if result is not None:
                await self._meanwhile()
                return result
            if not self._runs(tool):
                return refusal(tool.name)
            value = tool.function(*desk, **given)
            return await value if inspect.isawaitable(value) else value

        return msgspec.structs.replace(tool, function=answered)

    def _runs(self, tool: Tool) -> bool:
        """Whether a call that was not made then may run."""
        there = tool.function is not _never_run and not self._recorded
        return there and (self._live or tool.effect == "read_only")


def refusal(name: str) -> FunctionResult:
    """What comes of a call that is refused."""
    return FunctionResult(text=failure(name, FunctionError(REFUSED)), call_id="", name=name, ok=False)
