"""Check settings: the range of each number, the names of sampling settings, and the rules of a block. Pure.

Used by `agent_setup.py`, by the commands that edit memory blocks, and by the command line.
"""

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.ports.agent_constants import BLOCK_CHARS_MAX, BLOCKS_MAX, DESCRIPTION_CHARS_MAX, TOKENS_MAX
from everlog.events import AgentConfigured, BadInput, Sampling

SettingRange = tuple[float, float, str]
"""Smallest value, largest value, and the range in words."""

SETTINGS: Mapping[str, SettingRange] = {
    "steps_max": (1, 1000, "1 to 1,000 model calls"),
    "pressure_fraction": (0.05, 1, "0.05 to 1 of the window"),
    "summary_fraction": (0.05, 1, "0.05 to 1 of the messages' tokens"),
    "keep_last": (0, 1000, "0 to 1,000 messages"),
    "first_attempts_max": (1, 100, "1 to 100 replies"),
    "monologue_chars_max": (0, 1_000_000, "0 (no limit) to 1,000,000 characters"),
    "day_tokens_max": (0, TOKENS_MAX, "0 (no limit) or more tokens"),
    "day_cost_max": (0, 1e12, "0 (no limit) or more"),
    "approval_s": (0, 315_360_000, "0 (no limit) to 315,360,000 seconds (10 years)"),
    "rounds": (1, 20, "1 to 20"),
    "answer_minutes": (1, 10_080, "1 to 10,080 minutes (7 days)"),
    "reflect_at": (1, 1_000_000, "1 to 1,000,000 points of importance"),
    "background_turns": (0, 100_000, "0 (not by turns) to 100,000 turns"),
    "background_idle": (0, 525_600, "0 (not by time) to 525,600 minutes (a year)"),
}
SAMPLING: Mapping[str, SettingRange] = {
    "temperature": (0, 2, "0 to 2"),
    "top_p": (0, 1, "0 to 1"),
    "top_k": (-1, 1_000_000, "-1 or 0 (all words), or 1 to 1,000,000"),
    "min_p": (0, 1, "0 to 1"),
    "repeat_penalty": (0, 10, "0 to 10"),
    "presence_penalty": (-2, 2, "-2 to 2"),
    "frequency_penalty": (-2, 2, "-2 to 2"),
    "seed": (-(2**63), 2**63 - 1, "a whole number of 64 bits"),
    "max_tokens": (1, 100_000_000, "1 to 100,000,000 tokens"),
    "max_completion_tokens": (1, 100_000_000, "1 to 100,000,000 tokens"),
}
WORD_CHARS_MAX = 64
AGENT_LABELS_MAX = 50


def check(settings: Any) -> None:
    """Raise BadInput for a setting out of its range; settings that are None are ignored."""
    for name, bounds in SETTINGS.items():
        _within(name, getattr(settings, name), bounds)
    if settings.sampling is not None:
        for name, bounds in SAMPLING.items():
            _within(name, getattr(settings.sampling, name), bounds)
        effort = settings.sampling.reasoning_effort
        if effort is not None and not (effort.isalpha() and len(effort) <= WORD_CHARS_MAX):
            raise BadInput(f"reasoning_effort is a word such as low, medium or high, not {effort[:80]!r}.")
    for label in settings.derive_blocks or ():
        check_label(label)
    _check_agent_labels(settings.labels or ())
    for name in ("summarizer", "fallback", "deriver"):
        model = getattr(settings, name)
        if model and not model.strip():
            raise BadInput(f"The name of the {name} is blank; leave it empty for none. Nothing was changed.")


def check_background(configured: AgentConfigured) -> None:
    """Raise BadInput for a background agent that would never be told anything."""
    if configured.background and not (configured.background_turns or configured.background_idle):
        raise BadInput(
            f"The background agent {configured.background!r} would never be told anything: set `background_turns`, "
            "`background_idle` or both above 0. Nothing was changed."
        )


def _within(name: str, value: float | None, bounds: SettingRange) -> None:
    if value is not None and not (math.isfinite(value) and bounds[0] <= value <= bounds[1]):
        raise BadInput(f"`{name}` is {bounds[2]}, not {value}. Nothing was changed.")


def sampling(given: Iterable[str]) -> Sampling:
    """Parse sampling settings such as temperature=0.7; the word `default` alone clears all. Raise BadInput."""
    words = list(given)
    if words == ["default"]:
        return Sampling()
    found: dict[str, Any] = {}
    for word in words:
        key, sign, value = word.partition("=")
        if key not in Sampling.__struct_fields__:
            raise BadInput(f"There is no sampling setting {key[:80]!r}{_near(key)}.")
        if not sign or key in found:
            raise BadInput(f"--sampling {word[:80]}: give each setting once, as {key}=VALUE.")
        found[key] = value
    try:
        return msgspec.convert(found, Sampling, strict=False)
    except msgspec.ValidationError as error:
        raise BadInput(f"--sampling {' '.join(words)[:200]}: {error}.") from error


def _near(key: str) -> str:
    near = difflib.get_close_matches(key, Sampling.__struct_fields__, n=1, cutoff=0.5)
    return f" (did you mean {near[0]}?)" if near else f"; there are {', '.join(Sampling.__struct_fields__)}"


def _check_agent_labels(labels: Sequence[str]) -> None:
    """Raise BadInput for labels of an agent that are blank, too long, given twice or too many."""
    if len(labels) > AGENT_LABELS_MAX:
        raise BadInput(f"An agent has up to {AGENT_LABELS_MAX} labels, not {len(labels)}. Nothing was changed.")
    for label in labels:
        if not label or label != label.strip() or len(label) > WORD_CHARS_MAX or not label.isprintable():
            raise BadInput(
                f"A label of an agent is 1 to {WORD_CHARS_MAX} printable characters without space around them, not "
                f"{label[:80]!r}. Nothing was changed."
            )
        if labels.count(label) > 1:
            raise BadInput(f"The label {label!r} is given twice. Nothing was changed.")


def check_label(label: str) -> None:
    """Raise BadInput for an invalid label of a memory block."""
    if not label or len(label) > WORD_CHARS_MAX or not label.replace("_", "a").replace("-", "a").isalnum():
        raise BadInput(
            f"A block's label is up to {WORD_CHARS_MAX} letters, digits, - and _, not {label[:80]!r}. Nothing was "
            "changed."
        )


def check_blocks(count: int) -> None:
    """Raise BadInput for more memory blocks than an agent may have."""
    if count > BLOCKS_MAX:
        raise BadInput(f"An agent has {BLOCKS_MAX} memory blocks at most. Nothing was changed.")


def check_block(label: str, value: str, limit: int, description: str) -> None:
    """Raise BadInput for an invalid block."""
    check_label(label)
    if not 1 <= limit <= BLOCK_CHARS_MAX:
        raise BadInput(f"The limit of the block {label!r} is 1 to {BLOCK_CHARS_MAX:,} characters, not {limit}.")
    if len(value) > limit:
        raise BadInput(
            f"The block {label!r} holds {len(value)} characters, and its limit is {limit}. Shorten it, or give a "
            "higher limit. Nothing was changed."
        )
    if len(description) > DESCRIPTION_CHARS_MAX or not description.isprintable():
        raise BadInput(
            f"A block's description is one line of up to {DESCRIPTION_CHARS_MAX:,} characters. Nothing was changed."
        )
    for text in (value, description):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise BadInput(
                f"The text holds half a character (at {error.start}), which cannot be stored. Nothing was changed."
            ) from error
