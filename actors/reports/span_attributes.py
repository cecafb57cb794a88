"""Name the attributes of spans, by the semantic conventions for generative AI, and read their values from events. Pure.

The names of the conventions will change: all of them are in this file. Used by `trace_spans.py`.
"""

import json
from collections.abc import Iterable, Sequence

from everlog.actors.models.model_types import is_gguf, is_rule_based
from everlog.events import (
    AgentConfigured,
    AnyEvent,
    BudgetExceeded,
    ModelFailed,
    ModelReply,
    ModelSwitched,
    ReplyRejected,
    Summary,
    TurnAbandoned,
    TurnCancelled,
)
from everlog.events.derived import DerivationReplied

AttributeValue = str | int | float | bool | Sequence[str]

OPERATION, PROVIDER = "gen_ai.operation.name", "gen_ai.provider.name"
AGENT_NAME, CONVERSATION = "gen_ai.agent.name", "gen_ai.conversation.id"
REQUEST_MODEL, RESPONSE_MODEL, FINISH = (
    "gen_ai.request.model", "gen_ai.response.model", "gen_ai.response.finish_reasons",
)  # fmt: skip
INPUT_TOKENS, OUTPUT_TOKENS, CACHED_TOKENS = (
    "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.cache_read.input_tokens",
)  # fmt: skip
TOOL_NAME, TOOL_TYPE, TOOL_CALL = "gen_ai.tool.name", "gen_ai.tool.type", "gen_ai.tool.call.id"
TOOL_ARGUMENTS, TOOL_RESULT = "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"
INPUT_MESSAGES, OUTPUT_MESSAGES = "gen_ai.input.messages", "gen_ai.output.messages"
ERROR = "error.type"
TURN, STEP, SEQ, OPENED_BY, OUTCOME, PURPOSE = (
    "everlog.turn", "everlog.step", "everlog.seq", "everlog.opened_by", "everlog.outcome", "everlog.purpose",
)  # fmt: skip
"""Attributes of ours."""

REQUESTED = {
    "temperature": "gen_ai.request.temperature", "top_p": "gen_ai.request.top_p", "top_k": "gen_ai.request.top_k",
    "max_tokens": "gen_ai.request.max_tokens", "seed": "gen_ai.request.seed",
    "presence_penalty": "gen_ai.request.presence_penalty", "frequency_penalty": "gen_ai.request.frequency_penalty",
}  # fmt: skip
"""Attributes of the settings of sampling that the conventions name."""

ModelRequestEvent = ModelReply | ReplyRejected | ModelFailed | ModelSwitched | Summary | DerivationReplied
"""Events that a request to a model leaves in the log."""


def provider_of(model: str) -> str:
    """Return the provider of a model, as far as its name says: everlog itself, a model file, or an endpoint that speaks
    OpenAI's API.
    """
    if is_rule_based(model):
        return "everlog"
    return "llama.cpp" if is_gguf(model) else "openai"


def latency_of(event: ModelRequestEvent) -> int:
    """Return the microseconds that a request took; 0 if that was not recorded."""
    return 0 if isinstance(event, ModelFailed | ModelSwitched) else event.latency_us


def requested_model(event: ModelRequestEvent, config: AgentConfigured | None, switched: str | None) -> str:
    """Return the model that was asked."""
    if isinstance(event, ModelFailed | ModelSwitched | DerivationReplied) and event.model:
        return event.model
    own = config.model if config is not None else event.model
    if isinstance(event, Summary) or (isinstance(event, ReplyRejected) and event.purpose == "summary"):
        own = (config.summarizer if config is not None else "") or own
    return switched or own or "unknown"


def purpose_of(event: ModelRequestEvent) -> str:
    """Return what a model was asked for."""
    if isinstance(event, Summary):
        return "summary"
    return event.purpose if isinstance(event, ReplyRejected | DerivationReplied) else "reply"


def usage_of(event: ModelRequestEvent) -> dict[str, int]:
    """Return the tokens of a model call, as attributes; those that were not counted are missing."""
    usage = event.usage
    found = {INPUT_TOKENS: usage.prompt, OUTPUT_TOKENS: usage.completion, CACHED_TOKENS: usage.cached}
    return {key: count for key, count in found.items() if count}


def sampling_of(config: AgentConfigured | None) -> dict[str, AttributeValue]:
    """Return the sampling settings of a request, as attributes; without a configuration none."""
    sampling = config.sampling if config is not None else None
    found = {key: getattr(sampling, name, None) for name, key in REQUESTED.items()}
    return {key: value for key, value in found.items() if value is not None}


def fault_of(event: ModelRequestEvent) -> tuple[str, str]:
    """Return the class of the failure of a model call and the words on it; empty if it succeeded."""
    if isinstance(event, ModelFailed | ModelSwitched):
        return event.failure, event.text
    if isinstance(event, ReplyRejected):
        return "reply_rejected", event.text
    return ("reply_rejected", event.fault) if isinstance(event, DerivationReplied) and event.fault else ("", "")


def ends_turn(event: AnyEvent) -> bool:
    """Return True for an event that ends a turn before the agent is idle."""
    return isinstance(event, ModelFailed | TurnCancelled | TurnAbandoned | BudgetExceeded)


def outcome_of(events: Iterable[AnyEvent]) -> tuple[str, str, str]:
    """Return how a turn ended, the class of its failure (empty for none), and the words on it.

    `events`: those of the turn, newest first.
    """
    for event in events:
        match event:
            case ModelFailed(failure=failure, text=text):
                return "failed", failure, text
            case BudgetExceeded(text=text):
                return "failed", "budget_exceeded", text
            case TurnAbandoned(reason=reason, text=text):
                return "abandoned", reason, text
            case TurnCancelled():
                return "cancelled", "", ""
    return "done", "", ""


def with_error(attributes: dict[str, AttributeValue], error: str) -> dict[str, AttributeValue]:
    """Return attributes with the class of a failure, if there is one."""
    return {**attributes, ERROR: error} if error else attributes


def reply_words(reply: ModelReply) -> str:
    """Return the thought and the calls of a reply, as a message in JSON."""
    parts: list[dict[str, str]] = [{"type": "reasoning", "content": reply.text}] if reply.text else []
    parts += [
        {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments} for call in reply.calls
    ]
    return json.dumps([{"role": "assistant", "parts": parts, "finish_reason": reply.finish_reason}], ensure_ascii=False)


def messages_of(role: str, texts: Sequence[str]) -> str:
    """Return messages as the conventions have them in an attribute: a list in JSON."""
    return json.dumps(
        [{"role": role, "parts": [{"type": "text", "content": text}]} for text in texts], ensure_ascii=False
    )
