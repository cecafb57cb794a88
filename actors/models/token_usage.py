"""What a reply cost, as the server that gave it says. Pure.

Servers agree on how the tokens of a request and of a reply are named, and not on those of the request that were still
in a cache: each of the names that are in use is looked for.
"""

import re
from typing import Any

import msgspec

from everlog.actors.ports.agent_constants import TOKENS_MAX
from everlog.events import Usage

_FIGURES = re.compile(r"[0-9]{1,15}")


class UsagePayload(msgspec.Struct):
    """The object `usage` of an answer."""

    prompt_tokens: Any = None
    completion_tokens: Any = None
    total_tokens: Any = None
    prompt_tokens_details: Any = None
    """OpenAI, vLLM, llama.cpp: an object with `cached_tokens`."""
    prompt_cache_hit_tokens: Any = None
    """DeepSeek."""
    cache_read_input_tokens: Any = None
    """Proxies in front of Anthropic."""


class CostFields(msgspec.Struct):
    """The parts of an answer that say what it cost."""

    usage: UsagePayload | None = None
    timings: Any = None
    """llama.cpp: an object with `cache_n`."""


BOM = "\ufeff"
"""The mark of byte order that some servers begin an answer with."""

_bills = msgspec.json.Decoder(CostFields)


def usage_of(raw: str) -> Usage:
    """The tokens that `raw` says it cost; zeros where it does not say."""
    try:
        bill = _bills.decode(raw.removeprefix(BOM))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return Usage()
    return usage_in(bill.usage, bill.timings)


def usage_in(payload: UsagePayload | None, timings: object = None) -> Usage:
    """The tokens, each a count that can be. A cached token is one of the prompt's."""
    if payload is None:
        return Usage()
    prompt, completion, total = map(_count, (payload.prompt_tokens, payload.completion_tokens, payload.total_tokens))
    return Usage(
        prompt=prompt,
        completion=completion,
        total=total or prompt + completion,
        cached=min(_cached(payload, timings), prompt),
    )


def _cached(payload: UsagePayload, timings: object) -> int:
    """The first figure above 0 that is a number; those of others are 0 or not there."""
    figures = (
        _within(payload.prompt_tokens_details, "cached_tokens"),
        payload.prompt_cache_hit_tokens,
        payload.cache_read_input_tokens,
        _within(timings, "cache_n"),
    )
    return next((count for figure in figures if (count := _count(figure))), 0)


def _within(found: object, key: str) -> object:
    return found.get(key) if isinstance(found, dict) else None


def _count(figure: object) -> int:
    """A count of tokens that can be: whole, not below 0, and within what the tables hold. Some servers write text."""
    if isinstance(figure, str) and _FIGURES.fullmatch(figure):
        figure = int(figure)
    if isinstance(figure, bool) or not isinstance(figure, int | float):
        return 0
    return int(min(max(figure, 0), TOKENS_MAX))
