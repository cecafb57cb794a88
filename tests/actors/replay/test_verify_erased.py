"""In verify, erased records excuse the differences that they may have caused, and no others."""

import random

import msgspec
import pytest

from everlog.actors.formats import render_request, request_fingerprints
from everlog.actors.prompt import message_format
from everlog.events import tombstone
from tests.support.agent_world import World
from tests.support.agents.random_edited_agent import edited
from tests.support.agents.tampered_log import (
    Change,
    calls,
    conversed,
    first,
    lived,
    payload_of,
    replaced,
    some,
    verified,
)
from tests.support.seeds import few_and_all, pick

Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module")
def world() -> World:
    """Make an agent that did everything once; no test changes its log."""
    return conversed()


TELLING = {
    "agent_configured", "context_trimmed", "memory_edited", "message_sent", "reply_rethought", "summary",
    "summary_expanded", "turns_hidden",
}  # fmt: skip
"""Kinds of records that decide how other records are shown, or that are shown apart from turns."""


def erased(*seqs: int) -> Change:
    """Return a change that replaces those records by tombstones."""
    return lambda record: tombstone(record) if record.seq in seqs else record


def other_prompt(patch: Patch) -> None:
    """Patch the code to write one character of the system prompt differently."""
    from_export = render_request.system_parts
    patch.setattr(
        render_request,
        "system_parts",
        lambda context: [(n, t.replace("e", "E", 1) if n == "prompt" else t) for n, t in from_export(context)],
    )


def test_a_change_of_the_prompt_is_found_though_a_result_was_erased(world: World, monkeypatch: Patch) -> None:
    """With one result of the first turn erased, every call with a changed prompt is still a mismatch."""
    gone = first(world, "function_result")
    assert verified(world, erased(gone.seq)).faults == []
    other_prompt(monkeypatch)
    report = verified(world, erased(gone.seq))
    replies = [call.seq for call in calls(world) if call.type == "model_reply"]
    assert [m.seq for m in report.mismatches] == replies
    assert {m.difference.part for m in report.mismatches if m.difference} == {"the system prompt"}
    assert report.mismatches[0].difference is not None and report.mismatches[0].difference.also == []


def test_a_block_that_was_changed_is_found_though_a_message_was_erased(world: World) -> None:
    """The changed block has a record of its own that is not erased, so the difference is found."""
    edited, gone = first(world, "memory_edited", "Sails"), first(world, "user_message", "I am Chad")
    report = verified(world, erased(gone.seq), replaced(edited.seq, "Sails", "Soils"))
    found = [m for m in report.mismatches if m.what == "request"]
    assert found[0].seq == next(call.seq for call in calls(world) if call.seq > edited.seq)
    assert found[0].difference is not None and found[0].difference.part == "the memory block 'human'"


def test_a_message_that_was_changed_is_found_though_another_was_erased(world: World) -> None:
    """Each of the newest messages has its own fingerprint, so a changed message is found next to an erased one."""
    changed, gone = first(world, "user_message", "Forget Mars"), first(world, "user_message", "I am Chad")
    report = verified(world, erased(gone.seq), replaced(changed.seq, "Mars", "Mark"))
    found = [m for m in report.mismatches if m.what == "request"]
    assert found[0].seq == next(call.seq for call in calls(world) if call.seq > changed.seq)
    assert found[0].difference is not None
    assert found[0].difference.part == f"the message of record {changed.seq} (user_message)"


def test_a_block_of_which_the_newest_change_was_erased_is_no_fault(world: World, monkeypatch: Patch) -> None:
    """The content of the erased change is unknown; the other calls, and the other parts of the affected calls, must
    match.
    """
    gone = first(world, "memory_edited", "Sails")
    report = verified(world, erased(gone.seq))
    assert report.faults == []
    later = [call.seq for call in calls(world) if call.seq > gone.seq]
    left_it = max(call.seq for call in calls(world) if call.seq < gone.seq)
    assert report.calls.erased[:2] == [left_it, later[0]]
    other_prompt(monkeypatch)
    assert later[0] in [m.seq for m in verified(world, erased(gone.seq)).mismatches]


def test_calls_after_a_summary_that_hides_what_was_erased_are_checked(monkeypatch: Patch) -> None:
    """A request after the summary contains nothing of the erased result, so it is checked fully."""
    world, gone, later = next(filter(None, map(_hidden, range(40))))
    report = verified(world, erased(gone))
    assert report.mismatches == []
    assert set(later) <= set(report.calls.equal)
    other_prompt(monkeypatch)
    assert set(later) <= set(verified(world, erased(gone)).calls.mismatch)


def _hidden(seed: int) -> tuple[World, int, list[int]] | None:
    """Return a world, a result that a summary covers, and the later calls for replies; None if the seed has none."""
    world = lived(seed)
    log = world.log()
    for summary in (record for record in log if record.type == "summary"):
        covered = payload_of(summary)["covers_to"]
        results = [r.seq for r in log if r.type == "function_result" and r.turn and r.seq <= covered]
        later = [call.seq for call in calls(world) if call.seq > summary.seq and call.type == "model_reply"]
        if results and later:
            return world, results[0], later
    return None


@pytest.mark.parametrize("seed", some(2, 12, "erased"))
def test_no_erased_record_causes_a_mismatch(seed: int) -> None:
    """After erasing random ranges of a random agent's records, no call is a mismatch, and each has a verdict."""
    world = lived(seed)
    chance = random.Random(seed)
    for _ in range(4):
        gone = _ranges(chance, world)
        report = verified(world, erased(*gone))
        assert report.mismatches == [], sorted(gone)
        assert report.faults == []
        whole = [call.seq for call in calls(world) if call.seq not in gone]
        checked = report.calls
        assert sorted({*checked.equal, *checked.erased} - gone) == whole
        assert checked.chosen == len(checked.equal) + len(checked.erased)


@pytest.mark.parametrize("count", few_and_all(3, part="agents"))
def test_no_erased_kind_causes_a_mismatch(count: int | None, world: World) -> None:
    """Erasing the first record of a kind, the last, or all of them is no fault."""
    kinds = sorted({record.type for record in world.log()})
    for kind in pick(kinds, count, label="erased kinds"):
        seqs = [record.seq for record in world.log() if record.type == kind]
        for gone in ([seqs[0]], [seqs[-1]], seqs):
            assert verified(world, erased(*gone)).faults == [], kind


@pytest.mark.parametrize("seed", some(1, 8, "edited"))
def test_erased_edits_of_the_past_cause_no_mismatch(seed: int) -> None:
    """Erased undos, reworded replies, expanded summaries, imports, configurations, and records of an earlier agent of
    the name cause no mismatch.
    """
    world = edited(seed)
    log, chance = world.log(), random.Random(seed)
    assert verified(world).faults == []
    telling = [record.seq for record in log if record.type in TELLING]
    for gone in (chance.sample(telling, min(3, len(telling))), chance.sample(telling, 1), _ranges(chance, world)):
        assert verified(world, erased(*gone)).faults == [], sorted(gone)


def _ranges(chance: random.Random, world: World) -> set[int]:
    head = len(world.log())
    found: set[int] = set()
    for _ in range(chance.randint(1, 4)):
        begin = chance.randint(1, head)
        found.update(range(begin, min(head, begin + chance.choice([0, 0, 1, 3, 12])) + 1))
    return found


@pytest.mark.parametrize("seed", some(1, 8, "otherwise"))
def test_a_changed_prompt_is_found_whatever_is_erased(seed: int, monkeypatch: Patch) -> None:
    """As long as the configuration is not erased, all remaining calls for replies are mismatches."""
    world = lived(seed)
    configured = {record.seq for record in world.log() if record.type == "agent_configured"}
    gone = _ranges(random.Random(seed), world) - configured
    other_prompt(monkeypatch)
    report = verified(world, erased(*gone))
    replies = [
        call.seq
        for call in calls(world)
        if "prompt" in request_fingerprints.decode_fingerprints(payload_of(call)["parts"])
    ]
    assert set(replies) - gone <= set(report.calls.mismatch)


def test_a_changed_envelope_is_found_though_an_older_message_was_erased(world: World, monkeypatch: Patch) -> None:
    beat, gone = first(world, "heartbeat", "requested"), first(world, "user_message", "I am Chad")
    reasons = {**message_format._REASONS, "requested": message_format._REASONS["requested"] + "."}
    monkeypatch.setattr(message_format, "_REASONS", reasons)
    found = verified(world, erased(gone.seq)).mismatches[0]
    assert found.seq == next(call.seq for call in calls(world) if call.seq > beat.seq)
    assert found.difference is not None
    assert found.difference.part == f"the message of record {beat.seq} (heartbeat)"


def test_a_different_reading_of_a_reply_is_found_though_another_step_was_erased(
    world: World, monkeypatch: Patch
) -> None:
    """The effects of a reply depend on its own step, the blocks and the configuration, none of which were erased."""
    from everlog.actors.formats import parse_reply

    gone, reply = first(world, "function_result"), first(world, "model_reply", "The Ada.")
    read = parse_reply.reply
    monkeypatch.setattr(
        parse_reply,
        "reply",
        lambda raw, *more: (
            msgspec.structs.replace(read(raw, *more), text="Other.") if "The Ada." in raw else read(raw, *more)
        ),
    )
    assert (reply.seq, "reply") in [(m.seq, m.what) for m in verified(world, erased(gone.seq)).mismatches]


def test_only_calls_that_were_sent_are_counted_as_erased(world: World) -> None:
    """The records of an agent's creation include a reply that no model gave; erasing it is not counted as an erased
    call.
    """
    boot = first(world, "model_reply")
    assert not boot.turn
    report = verified(world, erased(boot.seq))
    assert boot.seq not in report.calls.erased
    assert report.calls.calls == len(calls(world))


def test_a_sample_counts_only_chosen_calls(world: World) -> None:
    """Erased calls cannot be chosen for a sample, and are not counted in its verdicts."""
    gone = [call.seq for call in calls(world)][:3]
    checked = verified(world, erased(*gone), sample=3).calls
    assert checked.chosen == 3 == len(checked.equal) + len(checked.mismatch) + len(checked.erased)
    assert not {*gone} & {*checked.erased}
    whole = verified(world, erased(*gone)).calls
    assert {*gone} <= {*whole.erased} and whole.chosen == whole.calls == len(calls(world))
