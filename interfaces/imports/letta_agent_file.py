"""Read a Letta agent file (`.af`): the memory blocks, the settings and the messages of each agent in it.

Used by `read_conversations`. Nothing of the file is run: its tools are program text of others, and those that everlog
does not have itself are only counted. Both shapes are read: that with lists `agents` and `blocks`, and the flat one of
early 2025, which has one agent.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.agent.agent_setup import InitialBlock, Settings
from everlog.actors.functions.memgpt_functions import ALIASES, BUILTIN
from everlog.actors.ports.agent_constants import (
    BLOCK_CHARS,
    DESCRIPTION_CHARS_MAX,
    SEND_MESSAGE,
    WINDOW_TOKENS_MAX,
    WINDOW_TOKENS_MIN,
)
from everlog.actors.prompt.setting_limits import SAMPLING, WORD_CHARS_MAX
from everlog.actors.rules.rule_checks import functions_of
from everlog.events import BadInput, Sampling
from everlog.interfaces.imports.letta_messages import add_messages
from everlog.interfaces.imports.letta_tool_rules import AgentRules, rules_of
from everlog.interfaces.imports.past_conversation import (
    JsonMap,
    MessageCollector,
    PastConversation,
    bad,
    field,
    iso_us,
    objects,
)
from everlog.projections.time_zones import zone_of

_OF_EVERY_AGENT = {tool.name for tool in BUILTIN}
OWN_FUNCTIONS = {tool.name for tool in BUILTIN} | set(ALIASES)
"""Names of functions that every agent here has, or knows by another name."""

_LISTS = {
    "files": "files", "sources": "document sources", "groups": "groups", "mcp_servers": "MCP servers",
    "skills": "skills",
}  # fmt: skip
"""Lists of a file whose things an agent here does not get, and the words for them."""
_OF_AGENT = {
    "tags": "tags", "identity_ids": "identities", "tool_exec_environment_variables": "environment variables",
    "secrets": "secrets",
}  # fmt: skip
"""The same, of an agent."""


def letta_conversations(value: Any, source: str) -> Sequence[PastConversation]:
    """Return the conversation of each agent of the file, with its memory blocks and settings. Raises BadInput."""
    if isinstance(value, dict) and "core_memory" in value and "agents" not in value:
        return [_conversation({**value, "memory_blocks": value["core_memory"]}, {}, value, source)]
    if not isinstance(value, dict) or not isinstance(value.get("agents"), list):
        raise bad(source, "it has neither a list `agents` nor `core_memory`, as a Letta agent file has")
    blocks = {str(block.get("id")): block for block in objects(value, "blocks", source)}
    return [
        _conversation(agent, blocks, value, f"{source}, agents[{number}]")
        for number, agent in enumerate(objects(value, "agents", source))
    ]


def _conversation(agent: JsonMap, blocks: Mapping[str, JsonMap], file: JsonMap, place: str) -> PastConversation:
    collector = MessageCollector()
    collector.left_out.update(_not_carried(agent, file, place))
    made = field(file, "created_at", str, place)
    rules = _rules(agent, collector.left_out, place)
    settings = msgspec.structs.replace(
        _settings(agent, collector.left_out, place),
        rules=rules.functions or None, approvals=rules.approvals or None,
    )  # fmt: skip
    own = _blocks(agent, blocks, collector.left_out, place)
    add_messages(collector, objects(agent, "messages", place), None if made is None else iso_us(made, place), place)
    return PastConversation(
        id=field(agent, "id", str, place, default=""),
        title=field(agent, "name", str, place, default=""),
        messages=collector.messages,
        blocks=own,
        settings=settings,
        left_out=dict(+collector.left_out),
    )


def _not_carried(agent: JsonMap, file: JsonMap, place: str) -> Counter[str]:
    """Count what an agent here cannot have, by kind."""
    tools = [tool for tool in objects(file, "tools", place) if tool.get("name") not in OWN_FUNCTIONS]
    found = {"tools": len(tools)}
    for of, names in ((file, _LISTS), (agent, _OF_AGENT)):
        for key, words in names.items():
            found[words] = len(field(of, key, (list, dict), place, default=[]))
    return Counter({words: count for words, count in found.items() if count})


def _rules(agent: JsonMap, left_out: Counter[str], place: str) -> AgentRules:
    """Return the rules about functions that every agent here has; others are counted as left out.

    A turn ends with a message to the user anyway, so that rule is not needed.
    """
    found = AgentRules([], [])
    for given in objects(agent, "tool_rules", place):
        if (given.get("type"), given.get("tool_name")) == ("exit_loop", SEND_MESSAGE):
            continue
        try:
            read = rules_of([given])
        except BadInput:
            left_out["tool rules"] += 1
            continue
        named = {name for rule in read.functions for name in functions_of(rule)}
        if not named | {rule.function for rule in read.approvals} <= _OF_EVERY_AGENT:
            left_out["tool rules"] += 1
            continue
        found.functions.extend(read.functions)
        found.approvals.extend(read.approvals)
    return found


def _settings(agent: JsonMap, left_out: Counter[str], place: str) -> Settings:
    """Return the system prompt and the settings of the model; those that are unusable here are counted as left out."""
    config = field(agent, "llm_config", dict, place, default={})
    handle = field(agent, "model", str, place, default="")
    model = field(config, "model", str, place, default="") or handle.partition("/")[2] or handle
    window = field(config, "context_window", int, place)
    if window is None:
        window = field(agent, "context_window_limit", int, place)
    if window is not None and not WINDOW_TOKENS_MIN <= window <= WINDOW_TOKENS_MAX:
        left_out["context windows"] += 1
        window = None
    zone = field(agent, "timezone", str, place) or None
    try:
        zone_of(zone or "UTC")
    except BadInput:
        left_out["time zones"] += 1
        zone = None
    return Settings(
        model=model.strip() or None,
        window=window,
        zone=zone,
        system=field(agent, "system", str, place) or None,
        sampling=_sampling(config, left_out, place),
    )


def _sampling(config: JsonMap, left_out: Counter[str], place: str) -> Sampling | None:
    given: dict[str, Any] = {}
    for name, kind in (("temperature", (int, float)), ("frequency_penalty", (int, float)), ("max_tokens", int)):
        value = field(config, name, kind, place)
        least, most, _ = SAMPLING[name]
        if value is not None and least <= value <= most:
            given[name] = value
        elif value is not None:
            left_out["sampling settings"] += 1
    effort = field(config, "reasoning_effort", str, place)
    if effort is not None:
        given["reasoning_effort"] = effort
    return Sampling(**given) if given else None


def _blocks(agent: JsonMap, blocks: Mapping[str, JsonMap], left_out: Counter[str], place: str) -> list[InitialBlock]:
    """Return the agent's memory blocks: those that it names by id, and those inside of it."""
    named = field(agent, "block_ids", list, place, default=[])
    missing = [str(name) for name in named if str(name) not in blocks]
    if missing:
        raise bad(place, f"it names the block {missing[0][:60]!r}, which the file does not have")
    found = [blocks[str(name)] for name in named] + objects(agent, "memory_blocks", place)
    made: dict[str, InitialBlock] = {}
    for number, block in enumerate(found):
        one = _block(block, left_out, f"{place}, block {number + 1}")
        if made.setdefault(one.label, one) is not one:
            raise bad(place, f"it has two blocks with the label {one.label!r}")
    return list(made.values())


def _label(given: str) -> str:
    """Return a label with `_` for each character that labels here do not have."""
    return "".join(one if one.isalnum() or one in "-_" else "_" for one in given)[:WORD_CHARS_MAX]


def _block(block: JsonMap, left_out: Counter[str], place: str) -> InitialBlock:
    """Return a memory block. A label, description or limit that is unusable here is changed, and the change counted."""
    value = field(block, "value", str, place, default="")
    given, described = (
        field(block, "label", str, place, default=""),
        field(block, "description", str, place, default=""),
    )
    label, description, limit = _label(given), described, field(block, "limit", int, place, default=BLOCK_CHARS)
    if not description.isprintable() or len(description) > DESCRIPTION_CHARS_MAX:
        printable = "".join(character if character.isprintable() else " " for character in description)
        description = " ".join(printable.split())[:DESCRIPTION_CHARS_MAX]
    for words, changed in (
        ("changed labels", label != given),
        ("changed descriptions", description.split() != described.split()),
        ("raised limits", "limit" in block and len(value) > limit),
    ):
        left_out[words] += changed
    return InitialBlock(
        label=label,
        value=value,
        limit=max(limit, len(value)),
        description=description,
        read_only=field(block, "read_only", bool, place, default=False),
    )
