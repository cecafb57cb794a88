"""Read the agent that a client of Letta wants, as settings of everlog. Pure.

What everlog does not have is refused in words if the agent would be another one without it.
"""

from typing import Any

import msgspec

from everlog.actors.agent.agent_setup import InitialBlock, Settings
from everlog.actors.ports.agent_constants import BLOCK_CHARS
from everlog.events import Sampling
from everlog.interfaces.http.letta.letta_calls import refused

AGENT_TYPE = "memgpt_agent"
"""Type that every agent is shown with."""
_TYPES = ("memgpt_agent", "memgpt_v2_agent", "letta_v1_agent")
"""Types that are taken for it: programs talk to all of them in the same way."""


class LettaBlockBody(msgspec.Struct, frozen=True, kw_only=True):
    """A memory block to create."""

    label: str
    value: str = ""
    limit: int | None = None
    description: str | None = None
    read_only: bool | None = None
    metadata: dict[str, Any] | None = None
    tags: list[str] | None = None


class LettaAgentBody(msgspec.Struct, frozen=True, kw_only=True):
    """An agent to create, or what to change of one. Fields that are not listed are ignored: they concern Letta's cloud,
    its databases, or how it cuts texts for its index.
    """

    name: str | None = None
    agent_type: str | None = None
    model: str | None = None
    system: str | None = None
    description: str | None = None
    memory_blocks: list[LettaBlockBody] | None = None
    block_ids: list[str] | None = None
    tools: list[str] | None = None
    tool_ids: list[str] | None = None
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None
    timezone: str | None = None
    context_window_limit: int | None = None
    max_tokens: int | None = None
    model_settings: dict[str, Any] | None = None
    llm_config: dict[str, Any] | None = None
    compaction_settings: dict[str, Any] | None = None
    folder_ids: list[str] | None = None
    source_ids: list[str] | None = None
    include_base_tools: bool | None = None
    tool_rules: list[Any] | None = None
    initial_message_sequence: list[Any] | None = None
    message_buffer_autoclear: bool | None = None
    enable_sleeptime: bool | None = None
    identity_ids: list[str] | None = None
    response_format: dict[str, Any] | None = None
    secrets: dict[str, Any] | None = None
    tool_exec_environment_variables: dict[str, Any] | None = None
    memory_variables: dict[str, Any] | None = None
    from_template: str | None = None
    template_id: str | None = None
    base_template_id: str | None = None
    message_ids: list[str] | None = None


_REFUSED = {
    "initial_message_sequence": "a new agent has no messages: import a conversation with "
    "POST /api/v1/agents/{name}/imports.",
    "message_buffer_autoclear": "agents remember their messages.",
    "enable_sleeptime": "what an agent does while it is idle is the setting `deriver` of everlog.",
    "identity_ids": "there are no identities: a message says the name of its user.",
    "response_format": "agents answer in the format of their functions.",
    "secrets": "secrets are the operator's: `everlog serve --allow`.",
    "tool_exec_environment_variables": "functions run with what the operator grants them.",
    "memory_variables": "there are no templates.",
    "from_template": "there are no templates.",
    "template_id": "there are no templates.",
    "base_template_id": "there are no templates.",
    "message_ids": "what the context shows is computed from the log: use undo, or summarize.",
}
_COMPACTION = {"model"}
_SAMPLED = {"temperature": "temperature", "max_output_tokens": "max_tokens", "top_p": "top_p", "seed": "seed"}
"""Names of sampling parameters in Letta's settings of models, with everlog's."""
_IGNORED_MODEL_SETTINGS = {"provider_type", "parallel_tool_calls", "strict"}


def check_supported(body: LettaAgentBody) -> None:
    """Raise the refusal of an agent that would be another one here."""
    for field, words in _REFUSED.items():
        if getattr(body, field):
            raise refused(f"`{field}` is not supported: {words}")
    if body.agent_type is not None and body.agent_type not in _TYPES:
        raise refused(f"`agent_type` is one of {', '.join(_TYPES)}, not {body.agent_type[:80]!r}.")
    if body.include_base_tools is False:
        raise refused("`include_base_tools: false` is not supported: an agent needs the functions of its memory.")


def settings_of_body(body: LettaAgentBody, known_models: frozenset[str], *, new: bool) -> Settings:
    """Return the settings that a body asks for. `known_models`: names of the models of the store.

    A new agent streams, so that words can be sent as the model writes them.
    """
    config = body.llm_config or {}
    model = body.model or config.get("model")
    window = body.context_window_limit or config.get("context_window")
    compaction = {key: value for key, value in (body.compaction_settings or {}).items() if value is not None}
    if compaction.keys() - _COMPACTION:
        raise refused(
            f"`compaction_settings` has only `model` here, not {', '.join(sorted(compaction.keys() - _COMPACTION))}: "
            "the others are `summary_fraction` and `keep_last` of everlog's own settings."
        )
    blocks = [
        InitialBlock(
            label=block.label, value=block.value, limit=block.limit or max(BLOCK_CHARS, len(block.value)),
            description=block.description or "", read_only=bool(block.read_only),
        )
        for block in body.memory_blocks or ()
    ]  # fmt: skip
    try:
        return Settings(
            model=None if model is None else model_named(str(model), known_models), window=window,
            system=body.system or None, zone=body.timezone or None, blocks=blocks if new else (),
            stream=True if new else None, sampling=_sampling(body),
            summarizer=model_named(str(compaction["model"]), known_models) if compaction else None,
        )  # fmt: skip
    except (msgspec.ValidationError, TypeError) as error:
        raise refused(f"A setting is not what it should be: {error}.") from error


def model_named(handle: str, known: frozenset[str]) -> str:
    """Return the name of a model by its handle in Letta, PROVIDER/NAME: NAME, unless a model has the whole handle as
    its name. everlog knows the endpoint of a model by the model's name.
    """
    provider, slash, name = handle.partition("/")
    return handle if handle in known or not slash or not name or not provider else name


def _sampling(body: LettaAgentBody) -> Sampling | None:
    given = {key: value for key, value in (body.model_settings or {}).items() if value is not None}
    unknown = given.keys() - _SAMPLED.keys() - _IGNORED_MODEL_SETTINGS
    if unknown:
        raise refused(f"`model_settings` has {', '.join(_SAMPLED)} here, not {', '.join(sorted(unknown))}.")
    found = {_SAMPLED[key]: value for key, value in given.items() if key in _SAMPLED}
    if body.max_tokens is not None:
        found["max_tokens"] = body.max_tokens
    if not found:
        return None
    try:
        return msgspec.convert(found, Sampling)
    except msgspec.ValidationError as error:
        raise refused(f"A setting of the model is not what it should be: {error}.") from error
