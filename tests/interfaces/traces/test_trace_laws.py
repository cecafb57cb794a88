"""The laws of traces: spans are what the log says, for agents that did everything."""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import closing
from random import Random
from typing import Any

import pytest

from everlog.actors.agent.fork_agent import open_turns_of
from everlog.actors.reports import span_attributes as genai
from everlog.actors.reports.dataset import TimeSpan
from everlog.actors.reports.otlp_json import otlp_body
from everlog.actors.reports.trace_spans import ALWAYS, TraceSpan, spans_of
from everlog.events import INPUTS, AgentConfigured, AgentCreated, Record, event_of, is_erased
from tests.laws.test_rerun_identity import lived
from tests.support.agent_world import World
from tests.support.agents.random_edited_agent import edited
from tests.support.seeds import split


def spans(world: World, within: TimeSpan = ALWAYS, *, content: bool = False) -> list[TraceSpan]:
    return list(spans_of("sam", world.log(), within=within, content=content))


def life_of(records: Sequence[Record]) -> Sequence[Record]:
    """Return the records of the newest incarnation."""
    births = [number for number, record in enumerate(records) if record.type == AgentCreated.kind]
    return records[births[-1] :]


def check_tree(found: Sequence[TraceSpan]) -> None:
    """Check that ids are unique, and that a span lies within its parent, in the same trace."""
    by_id = {span.span_id: span for span in found}
    assert len(by_id) == len(found)
    for span in found:
        assert (len(span.trace_id), len(span.span_id)) == (32, 16)
        assert span.start <= span.end
        if span.parent_id:
            parent = by_id[span.parent_id]
            assert parent.trace_id == span.trace_id
            assert parent.start <= span.start
            assert span.end <= parent.end


def check_against_the_log(world: World, found: Sequence[TraceSpan]) -> None:
    """Check that every finished turn, model call and function of the newest incarnation has one span, and no other."""
    life = life_of(world.log())
    open_turns = set(open_turns_of(life))
    opened = {record.turn: record for record in life if record.type in INPUTS and not record.step and record.turn
              and not getattr(event_of(record), "imported", False)}  # fmt: skip
    roots = [span for span in found if span.attributes.get(genai.OPERATION) == "invoke_agent"]
    since = life[0].recorded_at
    assert {span.trace_id: span.attributes[genai.TURN] for span in roots if span.start >= since} == {
        record.event_id.replace("-", ""): turn for turn, record in opened.items() if turn not in open_turns
    }
    with closing(world.system.view("sam")) as view:
        calls, functions = view.rows("model_calls"), view.rows("function_calls")
    done = [row for row in calls if not row["step"] or (row["turn"] in opened and row["turn"] not in open_turns)]
    chats = [span for span in found if span.attributes.get(genai.OPERATION) == "chat" and span.end >= since]
    assert {span.attributes[genai.SEQ] for span in chats} == {row["seq"] for row in done}
    for span in chats:
        (row,) = [row for row in done if row["seq"] == span.attributes[genai.SEQ]]
        assert span.attributes.get(genai.INPUT_TOKENS, 0) == row["prompt_tokens"]
        assert span.attributes.get(genai.OUTPUT_TOKENS, 0) == row["completion_tokens"]
        assert bool(span.error) == (row["outcome"] != "ok")
    ended = [row for row in functions if row["outcome"] != "open" and row["turn"] and row["turn"] not in open_turns]
    tools = [span for span in found if span.attributes.get(genai.OPERATION) == "execute_tool" and span.end >= since]
    assert Counter((span.attributes[genai.TOOL_NAME], bool(span.error)) for span in tools) == Counter(
        (row["name"], row["outcome"] != "ok") for row in ended
    )


def check_usage(found: Sequence[TraceSpan]) -> None:
    """Check that a turn has the tokens of its model calls."""
    used: dict[str, int] = defaultdict(int)
    for span in found:
        if span.attributes.get(genai.OPERATION) == "chat" and span.parent_id:
            used[span.trace_id] += int(str(span.attributes.get(genai.OUTPUT_TOKENS, 0)))
    for span in found:
        if span.attributes.get(genai.OPERATION) == "invoke_agent":
            assert span.attributes.get(genai.OUTPUT_TOKENS, 0) == used[span.trace_id]


def check(world: World, seed: int) -> None:
    found = spans(world)
    check_tree(found)
    check_against_the_log(world, found)
    check_usage(found)
    assert spans(world) == found
    times = [record.recorded_at for record in world.log()]
    at = Random(seed).choice(times)
    early, late = spans(world, TimeSpan(None, at)), spans(world, TimeSpan(at + 1, None))
    assert sorted(span.span_id for span in [*early, *late]) == sorted(span.span_id for span in found)
    check_tree(early)
    check_tree(late)
    check_later_part(world, late, at)


def check_later_part(world: World, late: Sequence[TraceSpan], at: int) -> None:
    """Check that reading from that time on, with the configuration before it, gives the same spans."""
    records = world.log()
    first = next((number for number, record in enumerate(records) if record.recorded_at > at), len(records))
    config = None
    for record in records[:first]:
        event = None if is_erased(record.payload) else event_of(record)
        config = event if isinstance(event, AgentConfigured) else config
    assert list(spans_of("sam", records[first:], config=config, within=TimeSpan(at + 1, None))) == late


@pytest.mark.parametrize("seed", split(range(40), 2, label="traces", part="laws"))
def test_spans_are_what_the_log_says(seed: int) -> None:
    """Every finished turn, model call and function has one span with the right parent, times, tokens and outcome; the
    same records give the same spans, and a division in time divides the spans.
    """
    check(lived(seed)[0], seed)


@pytest.mark.parametrize("seed", split(range(40), 2, label="traces of edited agents", part="laws"))
def test_spans_of_an_agent_whose_past_was_edited(seed: int) -> None:
    """The same holds with undone turns, imports, summaries and an earlier agent of the name."""
    check(edited(seed), seed)


@pytest.mark.parametrize("seed", split(range(20), 1, label="words in traces", part="laws"))
def test_words_are_in_traces_only_if_asked_for(seed: int) -> None:
    """No text of a message, thought, argument or result is in a span without `content`, and all said is with it."""
    world, _ = lived(seed)
    texts: set[str] = set()
    said: set[str] = set()
    open_turns = set(open_turns_of(world.log()))
    for record in world.log():
        event: Any = event_of(record)
        if record.turn and record.turn not in open_turns and record.type not in ("summary", "agent_configured"):
            texts |= {event.text} if len(event.text or "") > 4 else set()
            texts |= {call.arguments for call in getattr(event, "calls", [])}
        if record.type == "message_sent" and not event.imported and record.turn not in open_turns:
            said.add(event.text)
    silent = otlp_body(spans(world), "1").decode()
    assert [text for text in texts if json.dumps(text)[1:-1] in silent] == []
    loud = "".join(str(span.attributes.get(genai.OUTPUT_MESSAGES, "")) for span in spans(world, content=True))
    assert said
    assert [text for text in said if json.dumps(text, ensure_ascii=False)[1:-1] not in loud] == []
