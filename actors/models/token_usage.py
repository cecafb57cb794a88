"""Read the token usage from an answer. Pure.

Servers use the same names for the tokens of requests and replies, but several for request tokens that were in a cache:
all of these names are tried. Used by `parse_reply.py`, `model_step.py` and `daily_usage.py`. The figures are fields of
a parsed reply: raise `parse_reply.READER` if they change.
"""

import re
from typing import Any

import msgspec

from everlog.actors.ports.agent_constants import TOKENS_MAX, WINDOW_TOKENS_MAX
from everlog.events import Usage

_FIGURES = re.compile(r"[0-9]{1,15}")


class UsagePayload(msgspec.Struct):
    """Object `usage` of an answer."""

    prompt_tokens: Any = None
    completion_tokens: Any = None
    total_tokens: Any = None
    prompt_tokens_details: Any = None
    """OpenAI, vLLM, llama.cpp: an object with `cached_tokens`."""
    prompt_cache_hit_tokens: Any = None
    """Name that DeepSeek uses."""
    cache_read_input_tokens: Any = None
    """Name that proxies for Anthropic use."""


class CostFields(msgspec.Struct):
    """Fields of an answer with usage figures."""

    usage: UsagePayload | None = None
    timings: Any = None
    """Object with `cache_n`, from llama.cpp."""


BOM = "\ufeff"
"""Byte order mark, with which some servers begin an answer."""

_bills = msgspec.json.Decoder(CostFields)


def usage_of(raw: str) -> Usage:
    """Return the usage that `raw` reports; zeros if it reports none."""
    try:
        bill = _bills.decode(raw.removeprefix(BOM))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return Usage()
    return usage_in(bill.usage, bill.timings)


def usage_in(payload: UsagePayload | None, timings: object = None) -> Usage:
    """Return the usage with each figure brought into range. A cached token is one of the prompt's.

    A figure above WINDOW_TOKENS_MAX, which no model can have read or written in one call, makes all of them
    unbelievable: zeros are returned, as for an answer that reports none, and callers estimate.
    """
    if payload is None:
        return Usage()
    prompt, completion, total = map(_count, (payload.prompt_tokens, payload.completion_tokens, payload.total_tokens))
    if max(prompt, completion, total) > WINDOW_TOKENS_MAX:
        return Usage()
    return Usage(
        prompt=prompt,
        completion=completion,
        total=total or prompt + completion,
        cached=min(_cached(payload, timings), prompt),
    )


def _cached(payload: UsagePayload, timings: object) -> int:
    """Return the first figure above 0; the figures of other servers are 0 or missing."""
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
    """Return a valid count of tokens: whole, and from 0 to TOKENS_MAX. Some servers write figures as text."""
    if isinstance(figure, str) and _FIGURES.fullmatch(figure):
        figure = int(figure)
    if isinstance(figure, bool) or not isinstance(figure, int | float):
        return 0
    return int(min(max(figure, 0), TOKENS_MAX))
