"""Turn a Python function into a function of the agent: schema from type hints and docstring, checked arguments.

    @tool(effect="read_only")
    def weather(city: str) -> str:
        '''Tell the weather.

        Args:
            city: Name of the city.
        '''

The first parameter may be annotated with `Memory`: then the function edits core memory, and its effect *is* the events
that it leaves there (effect class `pure`). Pure: this file runs no function; `decide.py` and `run_function.py` do. Used
by `memgpt_functions.py` and `extras.py`, by all code that passes functions to an agent, and by users. The schema is
hashed and recorded in the log: the same function must always give the same text.
"""

import functools
import hashlib
import inspect
import math
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from everlog.actors.functions.docstrings import read_docstring
from everlog.actors.memory.core_memory import FunctionMemory, Memory
from everlog.actors.ports.agent_constants import FUNCTION_LIMIT_S
from everlog.events import BadInput, FunctionError

Effect = Literal["pure", "read_only", "idempotent", "at_most_once"]
"""`pure`: only events. `read_only`: can be run again. `idempotent`: gets a key. `at_most_once`: never run twice."""

HEARTBEAT = "request_heartbeat"

HEARTBEAT_SCHEMA = {
    "type": "boolean",
    "description": "Ask to run again right after this function, to use what it gives back.",
}


class ProcessLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of the process of a function. Its time limit is that of the function."""

    memory_mb: int = 512
    """Address space of each of its processes, MiB, from 64."""
    output_bytes: int = 1_000_000
    """Size that what it prints, its result, and each file that it writes must not reach."""
    network: bool = False
    """True: it may use the network."""
    variables: Sequence[str] = ()
    """Names of environment variables that it gets, such as those of secrets; all others are kept from it."""


class Tool(msgspec.Struct, frozen=True):
    """A function that the model may call."""

    name: str
    function: Callable[..., Any]
    effect: Effect
    schema: str
    """JSON text: name, description and parameters, as the model sees them."""
    arguments: type[msgspec.Struct]
    """Parameters as a Struct, which decodes and checks a call."""
    aliases: Mapping[str, str]
    """Other accepted names of parameters."""
    takes_memory: bool
    searches: bool
    """True for a built-in function that waits for a search: its result is in the log, and is not searched again."""
    takes_key: bool
    heartbeat: bool
    """True if the model may request a heartbeat with a call."""
    whole: bool
    """True if a result of any length is shown whole."""
    faults: tuple[type[BaseException], ...]
    """Exceptions that are shown to the model; any other is a bug of everlog. For a user's function: all of them."""
    timeout_s: float | None = None
    """Seconds that a call may take; None: no limit."""
    approval: bool = False
    """True if each call waits for a person's approval, unless a rule of the agent says otherwise."""
    process: ProcessLimits | None = None
    """Limits of a process of its own for each call; None: it runs in this process."""
    lent: bool = True
    """True if it may take any time, and so never runs in the event loop by itself; False for functions of everlog's own
    memory, and for the recorded results of a rerun.
    """

    @property
    def sha256(self) -> str:
        """Name of the schema: sha256 of its text, in hexadecimal."""
        return _sha256(self.schema)

    def bind(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Check and convert the arguments of a call. Raise FunctionError, in words for the model."""
        known = {self.aliases.get(name, name): value for name, value in arguments.items()}
        unknown = known.keys() - set(self.arguments.__struct_fields__)
        if unknown:
            raise FunctionError(
                f"{self.name} has no parameter {', '.join(sorted(unknown))}; "
                f"it takes {', '.join(self.arguments.__struct_fields__) or 'none'}"
            )
        try:
            bound = msgspec.convert(known, self.arguments, strict=False)
        except msgspec.ValidationError as error:
            raise FunctionError(f"wrong arguments for {self.name}: {error}") from error
        return {name: getattr(bound, name) for name in self.arguments.__struct_fields__}


@functools.lru_cache(maxsize=1024)
def _sha256(schema: str) -> str:
    """Hash a schema; cached, because every opening of an agent hashes each of its functions."""
    return hashlib.sha256(schema.encode()).hexdigest()


@typing.overload
def tool(
    function: Callable[..., Any],
    *,
    effect: Effect = ...,
    name: str = ...,
    aliases: Mapping[str, str] | None = ...,
    heartbeat: bool = ...,
    whole: bool = ...,
    faults: tuple[type[BaseException], ...] = ...,
    timeout_s: float | None = ...,
    approval: bool = ...,
    process: ProcessLimits | None = ...,
) -> "Tool": ...


@typing.overload
def tool(
    *,
    effect: Effect = ...,
    name: str = ...,
    aliases: Mapping[str, str] | None = ...,
    heartbeat: bool = ...,
    whole: bool = ...,
    faults: tuple[type[BaseException], ...] = ...,
    timeout_s: float | None = ...,
    approval: bool = ...,
    process: ProcessLimits | None = ...,
) -> Callable[[Callable[..., Any]], "Tool"]: ...


def tool(
    function: Callable[..., Any] | None = None,
    *,
    effect: Effect = "at_most_once",
    name: str = "",
    aliases: Mapping[str, str] | None = None,
    heartbeat: bool = True,
    whole: bool = False,
    faults: tuple[type[BaseException], ...] = (Exception, SystemExit),
    timeout_s: float | None = FUNCTION_LIMIT_S,
    approval: bool = False,
    process: ProcessLimits | None = None,
) -> Any:
    """Make a `Tool` from a function. A parameter named `idempotency_key` gets the call's key; the model does not see
    it.

    `timeout_s`: seconds that a call may take (more than 0; the default is 120); None: no limit. A function that edits
    memory has no limit, because `verify` runs it again. `approval`: each call waits until a person approves it.
    `process`: limits of a process of its own for each call; None: it runs in this process.

    Raises BadInput if a parameter has no type hint or no description: the model could not use it.
    """
    if function is None:
        return functools.partial(
            tool, effect=effect, name=name, aliases=aliases, heartbeat=heartbeat, whole=whole, faults=faults,
            timeout_s=timeout_s, approval=approval, process=process,
        )  # fmt: skip
    name = name or function.__name__
    parameters = list(inspect.signature(function).parameters.values())
    hints = typing.get_type_hints(function, include_extras=True)
    first = _bare(hints.get(parameters[0].name)) if parameters else None
    takes_memory = isinstance(first, type) and issubclass(first, Memory)
    searches = takes_memory and inspect.iscoroutinefunction(function)
    if searches and first is not FunctionMemory:
        raise BadInput(f"The function {name!r} edits memory, so it cannot be async: its effect is its edits alone.")
    _check_runnable(name, function, timeout_s, takes_memory=takes_memory)
    shown = [p for p in parameters[takes_memory:] if p.name != "idempotency_key"]
    summary, described = _described(function, shown, hints)
    for parameter in shown:
        _check_parameter(name, parameter, hints, described)
    arguments, schema = _shape(name, summary, shown, hints, described, heartbeat=heartbeat)
    if process is not None:
        _check_limits(name, process, takes_memory=takes_memory)
    return Tool(
        name=name,
        function=function,
        effect="pure" if takes_memory else effect,
        schema=schema,
        arguments=arguments,
        aliases=dict(aliases or {}),
        takes_memory=takes_memory,
        searches=searches,
        takes_key=any(p.name == "idempotency_key" for p in parameters),
        heartbeat=heartbeat,
        whole=whole,
        faults=faults,
        timeout_s=None if takes_memory else timeout_s,
        approval=approval,
        process=process,
    )


def own_tool(function: Callable[..., Any], **options: Any) -> Tool:
    """Turn a function of everlog's own, whose name has a `_` before it, into a tool. `options` as for `tool`.

    Only its FunctionErrors are shown to the model, and it runs in the event loop.
    """
    made: Tool = tool(function, name=function.__name__.removeprefix("_"), faults=(FunctionError,), **options)
    return msgspec.structs.replace(made, lent=False)


def _check_limits(name: str, limits: ProcessLimits, *, takes_memory: bool) -> None:
    """Raise BadInput for limits with which no function could run, and for a function that edits memory."""
    if takes_memory:
        raise BadInput(f"The function {name!r} edits memory, so it runs in this process: leave out `process`.")
    if limits.memory_mb < 64 or limits.output_bytes < 1:
        raise BadInput(
            f"The limits of the function {name!r} are `memory_mb` from 64 and `output_bytes` from 1; not "
            f"{limits.memory_mb} and {limits.output_bytes}."
        )


_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _bare(hint: Any) -> Any:
    """Return the type of an `Annotated`; any other hint unchanged."""
    return hint.__origin__ if typing.get_origin(hint) is typing.Annotated else hint


def _check_runnable(name: str, function: Callable[..., Any], timeout_s: float | None, *, takes_memory: bool) -> None:
    """Raise BadInput for a generator, and for a time limit that cannot hold."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise BadInput(
            f"The function {name!r} contains `yield`, so a call of it would run nothing: return a list or a text."
        )
    if timeout_s is None:
        return
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float) or not 0 < timeout_s < math.inf:
        raise BadInput(
            f"`timeout_s` of the function {name!r} is a number of seconds above 0, or None for no limit; "
            f"not {timeout_s!r}."
        )
    if takes_memory and timeout_s != FUNCTION_LIMIT_S:
        raise BadInput(
            f"The function {name!r} edits memory, so it has no time limit: `verify` runs it again, and it must do the "
            "same at any speed. Leave out `timeout_s`."
        )


def _check_parameter(
    name: str, parameter: inspect.Parameter, hints: Mapping[str, Any], described: Mapping[str, str]
) -> None:
    """Raise BadInput for a parameter that the model cannot know or cannot pass."""
    if parameter.name not in hints or not described.get(parameter.name):
        raise BadInput(
            f"The parameter {parameter.name!r} of the function {name!r} needs a type hint and a description, because "
            "the model sees nothing else of it. Describe it under 'Args:' in the docstring, or write "
            f'`{parameter.name}: Annotated[str, "..."]`.'
        )
    if parameter.name == HEARTBEAT or parameter.kind not in _BY_NAME:
        raise BadInput(
            f"The parameter {parameter.name!r} of the function {name!r} cannot be passed by the model: arguments "
            f"are passed by name, and the name {HEARTBEAT} is reserved."
        )


def _described(
    function: Callable[..., Any], shown: Sequence[inspect.Parameter], hints: Mapping[str, Any]
) -> tuple[str, dict[str, str]]:
    """Return the descriptions of the function and of its parameters. The docstring comes before `Annotated`."""
    doc = inspect.getdoc(function)
    if not doc:
        raise BadInput(f"The function {function.__name__!r} needs a docstring: the model sees nothing else of it.")
    summary, described = read_docstring(doc)
    annotated = {parameter.name: _annotation(hints.get(parameter.name)) for parameter in shown}
    return summary, {**annotated, **{name: text for name, text in described.items() if text}}


def _annotation(hint: Any) -> str:
    """Return the description in an `Annotated`: a text, or the description of a `msgspec.Meta`. Empty: none."""
    for extra in getattr(hint, "__metadata__", ()):
        text = extra if isinstance(extra, str) else getattr(extra, "description", None)
        if isinstance(text, str):
            return " ".join(text.split())
    return ""


def _shape(
    name: str,
    summary: str,
    shown: Sequence[inspect.Parameter],
    hints: Mapping[str, Any],
    described: Mapping[str, str],
    *,
    heartbeat: bool,
) -> tuple[type[msgspec.Struct], str]:
    """Return the arguments as a Struct, and the schema as text. Raise BadInput for a type that JSON cannot hold."""
    try:
        arguments = msgspec.defstruct(f"{name}_arguments", [_field(p, hints) for p in shown], kw_only=True)
        return arguments, _schema(name, summary, arguments, described, heartbeat=heartbeat)
    except TypeError as error:
        at_fault = next((p.name for p in shown if not _holds(_field(p, hints))), "?")
        raise BadInput(
            f"The parameter {at_fault!r} of the function {name!r} has a type or default that JSON cannot hold: "
            f"{' '.join(str(error).split())}."
        ) from error


def _holds(field: Any) -> bool:
    """Return True if JSON can hold a value of this parameter."""
    try:
        msgspec.json.schema(msgspec.defstruct("one", [field]))
    except TypeError:
        return False
    return True


def _field(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> Any:
    if parameter.default is inspect.Parameter.empty:
        return (parameter.name, hints[parameter.name])
    return (parameter.name, hints[parameter.name], parameter.default)


def _schema(
    name: str, summary: str, arguments: type[msgspec.Struct], described: Mapping[str, str], *, heartbeat: bool
) -> str:
    (_, components) = msgspec.json.schema_components([arguments], ref_template="#/$defs/{name}")
    shape = components.pop(arguments.__name__)
    properties = {key: {**value, "description": described[key]} for key, value in shape["properties"].items()}
    required = list(shape.get("required", []))
    if heartbeat:
        properties[HEARTBEAT] = HEARTBEAT_SCHEMA
        required.append(HEARTBEAT)
    parameters: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    if components:
        parameters["$defs"] = components
    return msgspec.json.encode({"name": name, "description": summary, "parameters": parameters}).decode()
