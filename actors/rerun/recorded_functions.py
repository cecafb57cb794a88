"""Answer the function calls of a rerun with recorded results. A rerun has no outside effect unless the user allows it.

Functions that edit or search memory run for real, on the fork. Any other call that was recorded with the same arguments
gets its recorded result, as often as it was recorded. A call that was not recorded counts as a difference: a function
that only reads is run if it is available; a function with an outside effect is refused unless the user allows it. Used
by `rerun.py`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from everlog.actors.functions.function_text import failure
from everlog.actors.functions.tools import HEARTBEAT, Effect, Tool
from everlog.actors.rerun.recorded_past import RecordedResults, canonical, edits_of, key_of, results_of
from everlog.events import FunctionError, FunctionResult, FunctionStarted, Record, UsageError, event_of

ResultOrigin = Literal["own", "recorded", "ran", "refused"]
"""Origin of a call's result: `own`, a function of memory; `recorded`, the log; `ran`, a function that ran; `refused`,
none.
"""

REFUSED = "refused: this is a rerun, and the call was not made then"
"""Error text that the model gets for a call that is refused."""

SEARCHES = ("conversation_search", "conversation_search_date", "archival_memory_search", "memory_read")
"""Functions whose results depend on more than the log: ranking by meaning depends on the index, and documents are
there.
"""

BeforeResultHook = Callable[[], Awaitable[None]]
"""Hook that is awaited before a recorded result is returned."""


def is_refusal(result: FunctionResult) -> bool:
    """Return True if the call was refused because it was made in a rerun."""
    return not result.ok and result.text.endswith(REFUSED)


def schema_only_tool(schema: str, effect: Effect) -> Tool:
    """Build a function from its schema alone: the model can call the function, but its code is not available."""
    shape = msgspec.json.decode(schema)
    parameters = shape["parameters"]
    if not all(_fits_a_field(name, about) for name, about in parameters["properties"].items()):
        from everlog.actors.functions.schema_tool import NoArguments, SchemaTool

        return _never_run_tool(SchemaTool, shape["name"], effect, schema, NoArguments, parameters)
    required = parameters.get("required", ())
    fields: list[Any] = [
        (name, Any) if name in required else (name, Any, msgspec.field(default=described.get("default")))
        for name, described in parameters["properties"].items()
        if name != HEARTBEAT
    ]
    arguments = msgspec.defstruct(f"{shape['name']}_arguments", fields, kw_only=True)
    return _never_run_tool(Tool, shape["name"], effect, schema, arguments, parameters)


def _fits_a_field(name: str, described: Mapping[str, Any]) -> bool:
    """Return True if a parameter can be a field of a Struct: those of MCP servers may have any name and default."""
    return name.isidentifier() and not isinstance(described.get("default"), list | dict)


def _never_run_tool(
    kind: type[Tool],
    name: str,
    effect: Effect,
    schema: str,
    arguments: type[msgspec.Struct],
    parameters: Mapping[str, Any],
) -> Tool:
    return kind(
        name=name,
        function=_never_run,
        effect=effect,
        schema=schema,
        arguments=arguments,
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
    """Return a schema-only function, by name, for each function that the agent had and that is not among `tools`.

    `records` are all records of the agent. Raise UsageError for a function that edited memory after `cut`: its recorded
    result does not repeat the edit.
    """
    # A function that was called without a `function_started` is read-only: such calls record no start. A function that
    # was never called gets the strictest class.
    effects = {event.name: event.effect for event in map(event_of, records) if isinstance(event, FunctionStarted)}
    called = {name for _, name, _, result in results_of(records) if result is not None}
    made = {}
    for schema in schemas.values():
        name = msgspec.json.decode(schema)["name"]
        if name in tools:
            continue
        if edits_of(records[cut:], name):
            raise UsageError(
                f"The function {name!r} of {agent_id!r} edits memory, and a recorded result does not repeat the edit. "
                "Pass the function's code with --tools. No fork was made."
            )
        made[name] = schema_only_tool(schema, effects.get(name, "read_only" if name in called else "at_most_once"))
    return made


class FunctionReplayer:
    """Wrapper that makes functions return recorded results. The fork's log shows which calls were refused or run."""

    def __init__(
        self,
        then: Sequence[Record],
        tools: Mapping[str, Tool],
        *,
        live: bool,
        recorded: bool,
        meanwhile: BeforeResultHook,
        run: Callable[[Tool, Mapping[str, Any]], Awaitable[Any]],
    ) -> None:
        """Read the recorded results from `then`.

        `tools`: all functions, schema-only ones included. `live`: functions with outside effects may run. `recorded`:
        no function runs, nor a search of the fork, whose index may differ from the recorded one. `meanwhile` is awaited
        before each recorded result. `run` runs a function that was not recorded.
        """
        self._live = live
        self._recorded = recorded
        self._meanwhile = meanwhile
        self._run = run
        self._results = RecordedResults()
        for _, name, text, result in results_of(then):
            if result is not None:
                self._results.add(key_of(tools.get(name), name, text), result)

    def wrap(self, tool: Tool) -> Tool:
        """Return the function as the rerun calls it."""
        if tool.effect == "pure" and not (self._recorded and tool.name in SEARCHES):
            return tool

        async def answered(*desk: Any, **given: Any) -> Any:
            # The key of a call contains the agent's id, so that the fork's keys differ from the recorded ones.
            bare = {name: value for name, value in given.items() if name != "idempotency_key" or not tool.takes_key}
            result = self._results.take((tool.name, canonical(bare)))
            if result is not None:
                await self._meanwhile()
                return result
            if not self._runs(tool):
                return refusal(tool.name)
            if tool.searches:
                return await tool.function(*desk, **given)
            return await self._run(tool, given)

        return msgspec.structs.replace(tool, function=answered, lent=False)

    def _runs(self, tool: Tool) -> bool:
        """Return True if a call that was not recorded may run."""
        there = tool.function is not _never_run and not self._recorded
        return there and (self._live or tool.effect == "read_only")


def refusal(name: str) -> FunctionResult:
    """Return the result of a call that is refused."""
    return FunctionResult(text=failure(name, FunctionError(REFUSED)), call_id="", name=name, ok=False)
