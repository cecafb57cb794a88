"""Turn the caller's settings into the events that create and configure an agent. Reads presets only.

Used by the agent at activation; front ends and reruns fill in `Settings`. The configuration is recorded in the log:
unless the caller changed a setting, the result must equal the recorded one (`same`), or every activation appends a
configuration.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, TypeVar

import msgspec

from everlog.actors.functions.extras import NAMES as EXTRAS
from everlog.actors.functions.memgpt_functions import BUILTIN, ITEMS
from everlog.actors.functions.short_schemas import is_short, shortened
from everlog.actors.functions.tools import Tool
from everlog.actors.mail.mail_functions import OPTIONAL
from everlog.actors.models.model_types import GROUP, ModelDefaults, is_gguf, window_of
from everlog.actors.ports.agent_constants import (
    BLOCK_CHARS,
    OFFLINE,
    RENDERER,
    SEND_MESSAGE,
    SMALL_WINDOW_TOKENS,
    THINKING_ALOUD,
    WINDOW_TOKENS_MAX,
    WINDOW_TOKENS_MIN,
)
from everlog.actors.prompt import presets, setting_limits
from everlog.actors.prompt import prompt_sections as sections
from everlog.actors.rules import rule_checks
from everlog.events import (
    AgentConfigured,
    AgentCreated,
    ApprovalRule,
    BadInput,
    Call,
    CallingName,
    Event,
    FunctionRef,
    FunctionResult,
    FunctionRule,
    MemoryEdited,
    ModelReply,
    Sampling,
    Section,
    UsageError,
    UserLogin,
)
from everlog.projections.time_zones import zone_of

ModelDefaultsLookup = Callable[[str], ModelDefaults]
"""Looks up the defaults of a model by its name, when an agent gets another model."""

ValueT = TypeVar("ValueT")

_OWN = tuple(tool.name for tool in BUILTIN)


class InitialBlock(msgspec.Struct, frozen=True):
    """A memory block of a new agent."""

    label: str
    value: str | Sequence[str]
    """Text of the block, or its items, each of which is one line. An agent that is created with items gets functions
    for them.
    """
    limit: int = BLOCK_CHARS
    description: str = ""
    """Purpose of the block, in words for the model."""
    read_only: bool = False


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that a caller gives for an agent. None: the recorded value, or the default for a new agent."""

    model: str | None = None
    window: int | None = None
    """Context window in tokens."""
    zone: str | None = None
    """IANA name of the time zone."""
    preset: str | None = None
    """Name of a preset: a system prompt, and the extra functions that the agent has."""
    system: str | None = None
    """Text of a system prompt that replaces the preset's."""
    persona: str = "sam"
    """Name of a shipped persona, for a new agent without a `persona` block."""
    human: str = "basic"
    blocks: Sequence[InitialBlock] = ()
    """Blocks of a new agent; `persona` and `human` replace the shipped ones."""
    verify_first: bool | None = None
    """Check of the first reply. None: on for models that are known to call functions, off for all others."""
    steps_max: int | None = None
    summary_fraction: float | None = None
    keep_last: int | None = None
    pressure_fraction: float | None = None
    sections: Sequence[Section] | None = None
    """Parts of the system prompt, instead of a preset or a text; an empty list returns to the preset."""
    calling: CallingName | None = None
    """Calling format."""
    stream: bool | None = None
    sampling: Sampling | None = None
    """All sampling settings: a setting that is left out is the endpoint's default again."""
    summarizer: str | None = None
    """Name of the model that writes summaries; empty: the agent's own."""
    fallback: str | None = None
    """Name of the model that replaces the agent's own for a turn if that one fails; empty: none."""
    first_attempts_max: int | None = None
    monologue_chars_max: int | None = None
    """0: no limit."""
    day_tokens_max: int | None = None
    """0: no limit."""
    day_cost_max: float | None = None
    """0: no limit."""
    deriver: str | None = None
    """Deriver of memories while the agent is idle: `rules`, or a model's name; empty: nothing is derived by itself."""
    reflect_at: int | None = None
    """Sum of the importance of new messages at which the agent reflects, from 1."""
    rate_importance: bool | None = None
    """True: the deriver, a model, also rates the importance of messages."""
    derive_blocks: Sequence[str] | None = None
    """Labels of the memory blocks that the deriver may rewrite."""
    approvals: Sequence[ApprovalRule] | None = None
    """Rules about which calls wait for a person's approval, or are refused; the last rule that fits a call decides."""
    approval_s: int | None = None
    """Seconds after which a call without a decision counts as refused; 0: never."""
    rules: Sequence[FunctionRule] | None = None
    """Rules about which functions may be called at which place of a turn."""
    optional_functions: Sequence[str] | None = None
    """Names of the optional functions that the agent has, such as `insight_note` or `ask_agent`; none by default."""
    labels: Sequence[str] | None = None
    """Labels by which agents are chosen together, such as `sales`; all of them, none by default."""
    members: Sequence[str] | None = None
    """Names of the members of a group, in the order in which they speak. A group has a rule as its model:
    `group/round-robin`, `group/supervisor` or `group/dynamic`.
    """
    manager: str | None = None
    """Agent that speaks last in a supervised group, or names the next speaker in a dynamic one; empty: none."""
    rounds: int | None = None
    """Number of times that each member may speak to one input of a group; 1 by default."""
    answer_minutes: int | None = None
    """Minutes that a group waits for an answer of a member; 60 by default."""
    background: str | None = None
    """Name of the agent that is told what was said to this one and by it, and keeps shared blocks; empty: none."""
    background_turns: int | None = None
    """Number of turns after which that agent is told; 0: not by turns."""
    background_idle: int | None = None
    """Minutes without a turn after which that agent is told; 0: not by time."""


def check_settings(settings: object) -> Settings:
    """Return the settings. Raise BadInput if they are no `Settings`, such as a dict."""
    if not isinstance(settings, Settings):
        raise BadInput(
            f"Settings are an everlog.Settings, such as Settings(model='gpt-4o'), not {settings!r}. Nothing was "
            "changed."
        )
    return settings


_PLAIN = (
    "steps_max", "pressure_fraction", "summary_fraction", "keep_last", "calling", "stream", "sampling", "summarizer",
    "fallback", "first_attempts_max", "monologue_chars_max", "day_tokens_max", "day_cost_max", "deriver", "reflect_at",
    "rate_importance", "approval_s", "manager", "rounds", "answer_minutes", "background", "background_turns",
    "background_idle",
)  # fmt: skip
"""Settings that are recorded unchanged."""
_LISTS = ("derive_blocks", "approvals", "rules", "labels", "members")


def configuration(
    settings: Settings,
    recorded: AgentConfigured | None,
    tools: Mapping[str, Tool],
    known: Mapping[str, str],
    known_of: ModelDefaultsLookup | None = None,
    facts: sections.TemplateContext | None = None,
) -> AgentConfigured:
    """Return the configuration that `settings` ask for, over the recorded one. `schemas` holds only new ones.

    A new schema is one whose sha256 is not in `known`. Another model brings its defaults, where `settings` do not say
    otherwise; `known_of` None: no model has defaults. `facts`: facts of the agent that templates of the prompt may
    show. Templates are rendered if they were given now or if their facts changed; without `facts` never, and the
    rendered text stays.

    Raises BadInput for an unknown zone or preset, a window that is too small, a value of a wrong type or out of range,
    a calling format that the offline model does not know, or a wrong template.
    """
    try:
        msgspec.convert(msgspec.to_builtins(settings), Settings)
    except (msgspec.MsgspecError, TypeError, OverflowError) as error:
        raise BadInput(f"The settings are invalid: {error}. Nothing was changed.") from error
    model = _or_recorded(settings.model, recorded.model if recorded else OFFLINE)
    zone = _or_recorded(settings.zone, recorded.zone if recorded else "UTC")
    same_model = recorded is not None and recorded.model == model
    found = ModelDefaults() if same_model or known_of is None else known_of(model)
    window = _or_recorded(
        settings.window, recorded.window if recorded and same_model else found.window or window_of(model)
    )
    _check(model, zone, window)
    setting_limits.check(settings)
    system, preset, parts = _system(settings, recorded, window)
    is_group = model.startswith(GROUP)
    functions = _group_functions(tools) if is_group else _functions(settings, recorded, tools, preset)
    verify = settings.verify_first
    if verify is None:
        calls_functions = found.takes_functions or model.startswith(THINKING_ALOUD)
        verify = recorded.verify_first if recorded and same_model else calls_functions
    before = recorded or AgentConfigured(model=model, window=window, renderer=RENDERER)
    if is_group and not before.summarizer:
        before = msgspec.structs.replace(before, summarizer=OFFLINE)  # a rule writes no summaries
    if not same_model and known_of is not None:
        before = msgspec.structs.replace(before, **_of_model(found))
    configured = AgentConfigured(
        text=system,
        preset=preset,
        sections=parts,
        model=model,
        window=window,
        renderer=RENDERER,
        zone=zone,
        functions=[FunctionRef(tool.name, tool.sha256) for tool in functions],
        schemas={tool.sha256: tool.schema for tool in functions if tool.sha256 not in known},
        verify_first=verify,
        asks=[tool.name for tool in functions if tool.approval],
        **dict[str, Any]((name, list(_or_recorded(getattr(settings, name), getattr(before, name)))) for name in _LISTS),
        **{name: _or_recorded(getattr(settings, name), getattr(before, name)) for name in _PLAIN},
    )
    _check_offline(configured)
    setting_limits.check_background(configured)
    rule_checks.check(configured)
    if facts is None or not parts or not (settings.sections or sections.has_changed_facts(configured, before)):
        return configured
    facts_shown = _facts_of_new_agent(facts.agent, settings) if recorded is None else facts
    return msgspec.structs.replace(
        configured, text=sections.system_prompt(configured, [tool.schema for tool in functions], facts_shown)
    )


def _of_model(found: ModelDefaults) -> dict[str, Any]:
    """Return the settings that come with a model: always calling format and streaming, others if described."""
    described = {name: getattr(found, name) for name in ("sampling", "fallback", "summarizer")}
    said = {name: value for name, value in described.items() if value is not None}
    return {"calling": found.calling or "native", "stream": bool(found.stream), **said}


def check_functions_given(agent_id: str, recorded: AgentConfigured, tools: Mapping[str, Tool]) -> None:
    """Raise UsageError if the agent has functions that are not in `tools`: its configuration would lose them."""
    missing = [function.name for function in recorded.functions if function.name not in tools]
    if missing:
        raise UsageError(
            f"{agent_id!r} has user functions ({', '.join(missing)}) that were not given now. Its pending work waits "
            "until the agent is opened with them (--tools)."
        )


def same(left: AgentConfigured, right: AgentConfigured) -> bool:
    """Return True if two configurations give the same requests; `schemas` only says which ones were recorded there."""
    return msgspec.structs.replace(left, schemas={}) == msgspec.structs.replace(right, schemas={})


def _or_recorded(asked: ValueT | None, before: ValueT) -> ValueT:
    return before if asked is None else asked


def _check(model: str, zone: str, window: int) -> None:
    if not model.strip():
        raise BadInput("The model's name is empty. Give a name; `offline` is the model that needs no endpoint.")
    if is_gguf(model) and not PurePath(model).is_absolute():
        raise BadInput(f"A model file needs an absolute path, not {model!r}.")
    zone_of(zone)
    if not WINDOW_TOKENS_MIN <= window <= WINDOW_TOKENS_MAX:
        raise BadInput(
            f"A window must have {WINDOW_TOKENS_MIN} to {WINDOW_TOKENS_MAX} tokens, not {window}: the system prompt, "
            "the functions and a few messages must fit."
        )


def _check_offline(configured: AgentConfigured) -> None:
    """Raise BadInput if the offline model would have to use a calling format that it does not know."""
    asked = [configured.model, configured.fallback] + [configured.summarizer] * (
        configured.calling not in ("native", "schema")
    )
    if configured.calling != "native" and OFFLINE in asked:
        raise BadInput(
            f"The model `{OFFLINE}` knows the calling format `native` only, not `{configured.calling}`. Set calling to "
            "native, or name another model. Nothing was changed."
        )


def _system(settings: Settings, recorded: AgentConfigured | None, window: int) -> tuple[str, str, list[Section]]:
    """Return the system prompt, its preset's name, and its sections; a user's own prompt stays until replaced."""
    if settings.sections and settings.system is not None:
        raise BadInput("Give either sections or the text of a system prompt, not both. Nothing was changed.")
    text = recorded.text if recorded else ""
    if settings.sections:
        return text, "", sections.check_sections(settings.sections)
    if settings.system is not None:
        return settings.system, "", []
    if settings.preset is None and settings.sections is None and recorded is not None and not recorded.preset:
        return text, "", recorded.sections
    usual = presets.SMALL if recorded is None and window <= SMALL_WINDOW_TOKENS else "chat"
    name = _or_recorded(settings.preset, (recorded.preset if recorded else "") or usual)
    return presets.system(name), name, []


def _functions(
    settings: Settings, recorded: AgentConfigured | None, tools: Mapping[str, Tool], preset: str
) -> Sequence[Tool]:
    """Return MemGPT's own functions, the user's, and the extras of the given preset; without one, those it had.

    Functions for items are for agents that were created with items. A small prompt has short descriptions, also after
    its sections were edited.
    """
    had = [function.name for function in recorded.functions] if recorded else []
    extras = had if settings.preset is None else presets.extras(settings.preset)
    optional = had if settings.optional_functions is None else settings.optional_functions
    if unknown := set(settings.optional_functions or ()) - set(OPTIONAL):
        raise BadInput(f"There are the functions {', '.join(OPTIONAL)}, not {min(unknown)!r}.")
    with_items = bool(had and ITEMS[0] in had) or any(not isinstance(one.value, str) for one in settings.blocks)
    chosen = [
        tool
        for tool in tools.values()
        if (tool.name not in EXTRAS or tool.name in extras)
        and (tool.name not in ITEMS or with_items)
        and (tool.name not in OPTIONAL or tool.name in optional)
    ]
    if settings.preset is None and recorded is not None:
        short = any(is_short(function.name, function.sha256, tools) for function in recorded.functions)
    else:
        short = preset == presets.SMALL
    return shortened(chosen, _OWN) if short else chosen


def _group_functions(tools: Mapping[str, Tool]) -> Sequence[Tool]:
    """Return the functions of a group, which its rule calls."""
    return [tool for tool in tools.values() if tool.name in (SEND_MESSAGE, "ask_agent")]


def _facts_of_new_agent(agent_id: str, settings: Settings) -> sections.TemplateContext:
    """Return the facts that templates may show of an agent that is not created yet."""
    return sections.facts_of(agent_id, map(msgspec.structs.asdict, _blocks(agent_id, settings)))


def _blocks(agent_id: str, settings: Settings) -> Sequence[InitialBlock]:
    """Return the blocks of a new agent."""
    shipped = [
        InitialBlock("persona", presets.persona(settings.persona, agent_id)),
        InitialBlock("human", presets.human(settings.human)),
    ]
    given = [msgspec.structs.replace(block, value=block_text(block)) for block in settings.blocks]
    return list({block.label: block for block in (*shipped, *given)}.values())


def block_text(block: InitialBlock) -> str:
    """Return the text of a block, of items one line each. Raise BadInput for an item that is no line."""
    if isinstance(block.value, str):
        return block.value
    for item in block.value:
        if not item.strip() or len(item.splitlines()) > 1:
            raise BadInput(f"An item of the block {block.label!r} is one line of text, not {item[:80]!r}.")
    return "\n".join(block.value)


def birth(agent_id: str, settings: Settings, configured: AgentConfigured) -> list[Event]:
    """Return the events of a new agent: created, configured, its blocks, MemGPT's boot messages, a first login."""
    own = {block.label for block in settings.blocks}
    blocks = _blocks(agent_id, settings)
    for block in blocks:
        setting_limits.check_block(block.label, str(block.value), block.limit, block.description)
    boot = Call("boot", SEND_MESSAGE, '{"message":"Hello from the other side of the start-up."}')
    return [
        AgentCreated(
            persona="" if "persona" in own else settings.persona, human="" if "human" in own else settings.human
        ),
        configured,
        *(
            MemoryEdited(
                text=str(block.value),
                label=block.label,
                operation="created",
                limit=block.limit,
                description=block.description,
                read_only=block.read_only,
            )
            for block in blocks
        ),
        ModelReply(
            text="Start-up complete. Persona loaded. Trying out whether messages reach the user.",
            calls=[boot],
            finish_reason="tool_calls",
            model="boot",
        ),
        FunctionResult(call_id=boot.id, name=boot.name),
        UserLogin(),
    ]
