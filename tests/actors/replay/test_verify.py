"""Verify names the call and the part in which a log or the code differs, and reports no mismatch otherwise."""

import asyncio
import random
from collections.abc import Callable

import msgspec
import pytest

from everlog.actors.formats import native_format, render_request, request_fingerprints
from everlog.actors.ports.agent_constants import RENDERER
from everlog.actors.prompt import context_fit, message_format, presets
from everlog.actors.replay import request_diff
from everlog.actors.replay.rebuild_check import verify
from everlog.actors.replay.verify import sampled
from everlog.events import Record, event_of
from everlog.store import MemoryStore
from tests.support.agent_world import World
from tests.support.agents.tampered_log import calls, conversed, first, lived, payload_of, replaced, some, verified

Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module")
def world() -> World:
    """Make an agent that did everything once; no test changes its log."""
    return conversed()


@pytest.mark.parametrize("seed", some(2, 12, "accused"))
def test_random_agents_verify_without_faults(seed: int) -> None:
    """For random agents, every request has the same bytes, every reply the same effects, and every decision is the
    same.
    """
    world = lived(seed)
    report = verified(world)
    assert report.faults == [] and report.notes == []
    assert report.calls.equal == [call.seq for call in calls(world)]


@pytest.mark.parametrize("seed", some(2, 12, "changed"))
def test_a_change_of_any_record_breaks_the_chain(seed: int, world: World) -> None:
    """A change of one character in any record breaks the chain."""
    chance = random.Random(seed)
    chosen = chance.choice([record for record in world.log() if record.text])
    at = chance.randrange(len(chosen.text or ""))

    def change(record: Record) -> Record:
        if record.seq != chosen.seq or record.text is None:
            return record
        other = "x" if record.text[at] != "x" else "y"
        return msgspec.structs.replace(record, text=record.text[:at] + other + record.text[at + 1 :])

    assert "the chain of records 1 to" in verified(world, change).faults[0]


def test_the_chain_is_checked_at_each_recorded_chain_value() -> None:
    """An agent that moved recorded its chain value: a change before the move is told apart from a change after it."""
    world = World(store=MemoryStore(shards=1))
    asyncio.run(world.tell("Before"))
    world.system.move("sam", shared=True)
    asyncio.run(world.tell("After"))
    moved = first(world, "agent_moved")
    before, after = first(world, "user_message", "Before"), first(world, "user_message", "After")
    fault = verified(world, replaced(before.seq, "Before", "before")).faults[0]
    assert f"records 1 to {moved.seq - 1}" in fault and f"seq {moved.seq} (agent_moved)" in fault
    fault = verified(world, replaced(after.seq, "After", "after")).faults[0]
    assert f"records {moved.seq + 1} to {world.log()[-1].seq}" in fault and "the log ends with" in fault
    assert verified(world).faults == []


def test_fingerprints_are_decoded_as_they_were_encoded(world: World) -> None:
    """Every request has fingerprints in the order of its body; decoding and encoding them gives the recorded text."""
    for call in calls(world):
        written = payload_of(call)["parts"]
        marks = request_fingerprints.decode_fingerprints(written)
        assert request_fingerprints.encode_fingerprints(marks) == written
        names = list(marks)
        assert names[:3] == ["prompt", "header", "block persona"] or names == ["instructions", "transcript"]
        assert all(len(mark) == 6 and int(mark, 16) >= 0 for mark in marks.values())
    assert request_fingerprints.decode_fingerprints("") == {}


def header(patch: Patch, _: World) -> None:
    patch.setattr(render_request, "ACCESS", render_request.ACCESS.replace("use", "Use"))


def heartbeat(patch: Patch, _: World) -> None:
    reasons = {**message_format._REASONS, "requested": message_format._REASONS["requested"] + "."}
    patch.setattr(message_format, "_REASONS", reasons)


def block_order(patch: Patch, _: World) -> None:
    parts = render_request.system_parts
    patch.setattr(render_request, "system_parts", lambda seen: [*parts(seen)[:2], *parts(seen)[:1:-1]])


def function_order(patch: Patch, _: World) -> None:
    functions = native_format._functions
    patch.setattr(native_format, "_functions", lambda schemas: functions(schemas[::-1]))


def wording(patch: Patch, _: World) -> None:
    patch.setattr(render_request, "SUMMARIZER", render_request.SUMMARIZER.replace("keep", "Keep", 1))


@pytest.mark.parametrize(
    ("mutate", "kind", "part"),
    [
        (header, "model_reply", "the memory header"),
        (block_order, "model_reply", "the order of its parts, at 'block persona'"),
        (function_order, "model_reply", "the functions"),
        (wording, "summary", "the instructions"),
    ],
)
def test_a_changed_renderer_is_found_in_the_first_call(
    mutate: Callable[[Patch, World], None], kind: str, part: str, world: World, monkeypatch: Patch
) -> None:
    mutate(monkeypatch, world)
    found = verified(world).mismatches[0]
    assert found.seq == next(call.seq for call in calls(world) if call.type == kind)
    assert found.difference is not None and found.difference.part == part


def test_a_changed_envelope_is_found_at_its_message(world: World, monkeypatch: Patch) -> None:
    """The mismatch names the first call that shows a requested heartbeat, and the heartbeat's record."""
    beat = first(world, "heartbeat", "requested")
    heartbeat(monkeypatch, world)
    found = verified(world).mismatches[0]
    assert found.seq == next(call.seq for call in calls(world) if call.seq > beat.seq)
    assert found.difference is not None
    assert found.difference.part == f"the message of record {beat.seq} (heartbeat)"


@pytest.mark.parametrize(
    ("kind", "holding", "old", "new", "part"),
    [
        ("agent_configured", "", "You are", "You Are", "the system prompt"),
        ("agent_configured", "", '\\"type\\":\\"object', '\\"type\\":\\"Object', "the schema of the function"),
        ("memory_edited", "Sails", "Sails", "Soils", "the memory block 'human'"),
        ("user_message", "Forget Mars", "Mars", "Mark", "the message of record"),
        ("function_result", "Content not found", "found", "bound", "the message of record"),
    ],
)
def test_a_changed_record_is_found_in_the_first_call_that_shows_it(
    kind: str, holding: str, old: str, new: str, part: str, world: World
) -> None:
    """The chain check reports a change; the first call whose request contains the record shows it."""
    record = first(world, kind, holding)
    report = verified(world, replaced(record.seq, old, new))
    assert "the chain of records" in report.faults[0]
    requests = [m for m in report.mismatches if m.what == "request"]
    assert requests[0].seq == next(call.seq for call in calls(world) if call.seq > record.seq)
    assert requests[0].difference is not None and requests[0].difference.part.startswith(part)


def test_a_summary_that_was_changed_is_named_itself_and_so_is_the_next_call() -> None:
    """The summary no longer matches its raw reply, and the next request shows the changed text."""
    world = next(w for w in map(lived, range(40)) if _summarized(w))
    record = next(r for r in world.log() if r.type == "summary" and '"raw"' in r.payload)
    report = verified(world, replaced(record.seq, "We talked", "He talked"))
    assert (report.mismatches[0].seq, report.mismatches[0].what) == (record.seq, "reply")
    shown = next(m for m in report.mismatches if m.what == "request")
    assert shown.difference is not None and shown.difference.part == "the summary"


def _summarized(world: World) -> bool:
    """Return True if a model reply follows a summary that a model made."""
    log = world.log()
    seqs = [r.seq for r in log if r.type == "summary" and '"raw"' in r.payload]
    return bool(seqs) and any(r.type == "model_reply" and r.seq > seqs[0] for r in log)


@pytest.mark.parametrize("times", [0.4, 3])
def test_a_changed_estimator_is_found_at_a_different_decision(times: float, monkeypatch: Patch) -> None:
    """With equal bytes another decision is a mismatch: too high an estimate at a call that would not be sent, too low
    an estimate at a summary that would not be made.
    """
    world = next(w for w in map(lived, range(40)) if any(r.type == "summary" and r.step for r in w.log()))
    count = context_fit.tokens_of
    monkeypatch.setattr(context_fit, "tokens_of", lambda size, context: int(count(size, context) * times))
    found = verified(world).mismatches
    assert {m.what for m in found} == {"decision"}
    if times < 1:
        kinds = {m.type for m in found}
        assert kinds <= {"summary", "context_trimmed", "reply_rejected"} and "summary" in kinds
    else:
        assert "would not be sent" in found[0].text


def test_new_presets_do_not_change_recorded_requests(world: World, monkeypatch: Patch) -> None:
    """Prompts and functions are recorded in the log, so other ones in a later version are no mismatch."""
    text = presets._text
    monkeypatch.setattr(presets, "_text", lambda kind, name: text(kind, name) + ".")
    assert presets.system("chat") not in {event_of(record).text for record in world.log()}
    assert verified(world).faults == []


def test_a_difference_is_shown_against_the_last_call_that_is_the_same(world: World) -> None:
    """The report shows the block's text in the recorded call and in the new one, with the one character that
    differs.
    """
    record = first(world, "memory_edited", "Sails")
    found = verified(world, replaced(record.seq, "Sails", "Soils")).mismatches
    difference = next(m.difference for m in found if m.what == "request")
    assert difference is not None and "+ Soils." in difference.lines
    assert difference.against.startswith("the same part of the last matching call")


def test_a_lasting_mismatch_is_reported_once(world: World, monkeypatch: Patch) -> None:
    """Calls that differ in the same part are one fault, and a mismatch each for programs."""
    header(monkeypatch, world)
    report = verified(world)
    replies = [call.seq for call in calls(world) if call.type == "model_reply"]
    assert [m.seq for m in report.mismatches] == replies
    assert len(report.faults) == 1 and f"seq {replies[1]} to {replies[-1]}" in report.faults[0]


def test_a_missing_renderer_is_no_mismatch(world: World) -> None:
    """Calls of a renderer that no longer exists are counted separately, with a note and without a mismatch."""
    record = first(world, "agent_configured")
    report = verified(world, replaced(record.seq, f'"renderer":{RENDERER}', '"renderer":999'))
    assert report.mismatches == []
    assert report.calls.renderer_gone == {999: [call.seq for call in calls(world)]}
    assert "renderer 999 gone" in report.notes[0]


def test_a_missing_function_is_reported_and_the_request_still_checked(world: World) -> None:
    view = world.system.view("sam")
    tools = {name: tool for name, tool in world.system.tools.items() if name != "core_memory_append"}
    report = verify(view, tools)
    assert report.faults == []
    assert report.calls.missing_function == {"core_memory_append": [first(world, "model_reply", "Sails").seq]}
    assert len(report.calls.equal) == len(calls(world))


def test_a_sample_is_spread_and_the_same_each_time(world: World) -> None:
    """A sample has one call of each section of the log, chosen by a seed; the chain is checked whole."""
    total = len(calls(world))
    report = verified(world, sample=3)
    assert report.calls.chosen == len(report.calls.equal) == 3
    assert report.calls.calls == total
    assert report.notes == [f"a sample: 3 of {total} model calls were looked at"]
    assert verified(world, sample=3).calls.equal == report.calls.equal
    others = {tuple(verified(world, sample=3, seed=str(seed)).calls.equal) for seed in range(8)}
    assert len(others) > 1
    last = world.log()[-1]
    assert verified(world, replaced(last.seq, "sea", "see"), sample=1).faults
    assert sampled(10, 20, "") == list(range(10))
    for number, place in enumerate(sampled(1000, 10, "x")):
        assert number * 100 <= place < (number + 1) * 100


def test_long_lines_are_cut_to_where_they_differ() -> None:
    before = "a" * 500
    lines = request_diff.diff_lines(before + "x" + before, before + "y" + before)
    assert [line[0] for line in lines] == ["-", "+"]
    assert all("…" in line and len(line) < 130 for line in lines)
    assert "x" in lines[0] and "y" in lines[1]
    assert request_diff.diff_lines("\n".join("abcdefghijklmnop"), "")[-1].strip() == "... and 4 lines more"
