"""Eight known pitfalls of replaying an agent, each as a test."""

import asyncio
import json
from hashlib import sha256

import msgspec
import pytest

from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.formats import parse_reply, render_request
from everlog.actors.replay.rebuild_check import verify
from everlog.events import tombstone
from tests.support.agent_world import World, completion, say
from tests.support.agents.tampered_log import Change, calls, conversed, first, lived, payload_of, replaced, verified


def test_a_request_holds_no_clock_of_today_and_no_id_of_ours() -> None:
    """Two agents with the same inputs at the same times send the same bytes, whatever their record ids; rendering again
    on another day gives the same bytes.
    """
    one, other = World(), World()
    other.ids.count = 10_000
    for world in (one, other):
        world.model.lines = [say("Hello."), completion("Hm.", [("archival_memory_insert", {"content": "x"})])]
        world.clock.at = one.clock.at if world is one else other.clock.at
    for world in (one, other):
        asyncio.run(world.tell("Hi", "And now?"))
    assert one.log()[0].event_id != other.log()[0].event_id
    assert one.model.requests == other.model.requests
    later = LocalSystem(one.store)
    assert verify(later.view("sam"), later.tools).faults == []


def test_an_unsent_request_is_a_mismatch_and_no_other_call_replaces_it() -> None:
    """The hash of another recorded call does not count: each call is compared with its own."""
    world = conversed()
    earlier, call = calls(world)[1:3]
    wrong = replaced(call.seq, payload_of(call)["context_sha256"], payload_of(earlier)["context_sha256"])
    report = verified(world, wrong)
    assert [m.seq for m in report.mismatches if m.what == "request"] == [call.seq]


def test_the_same_request_twice_is_two_calls_with_an_answer_each() -> None:
    """A rejected reply is requested again with the same bytes: both calls are checked, each against its own reply."""
    world = World(completion("No call."), say("Hello."))
    world.settings = msgspec.structs.replace(world.settings, verify_first=True)
    asyncio.run(world.tell("Hi"))
    refused, accepted = calls(world)
    assert payload_of(refused)["context_sha256"] == payload_of(accepted)["context_sha256"]
    assert verified(world).calls.equal == [refused.seq, accepted.seq]
    report = verified(world, replaced(accepted.seq, "Hello.", "Hullo."))
    assert [m.seq for m in report.mismatches] == [accepted.seq]


def test_erased_records_are_reported_as_erased_and_not_as_a_mismatch() -> None:
    """A call whose request contained erased text cannot be checked; earlier calls can, and the chain still holds."""
    world = conversed()
    gone = first(world, "user_message", "I sail")
    report = verified(world, lambda record: tombstone(record) if record.seq == gone.seq else record)
    before = [call.seq for call in calls(world) if call.seq < gone.seq]
    assert report.faults == []
    assert before == [seq for seq in report.calls.equal if seq < gone.seq]
    assert report.calls.erased
    assert set(report.calls.erased) | set(report.calls.equal) == {call.seq for call in calls(world)}


def test_the_hash_is_of_the_very_bytes_that_are_sent() -> None:
    """The recorded hash and length are those of the sent body, and the order of the schemas does not change it."""
    world = conversed()
    sent = [(sha256(body).hexdigest(), len(body)) for body in world.model.requests]
    assert [(p["context_sha256"], p["context_bytes"]) for p in map(payload_of, calls(world))] == sent
    view = world.system.view("sam")
    schemas = view.schemas()
    backwards = dict(reversed(schemas.items()))
    assert render_request.request(view.context(), schemas) == render_request.request(view.context(), backwards)


def test_a_reply_is_recorded_byte_for_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    """White space, order and unknown fields of a reply are recorded byte for byte; a different reading of the reply is
    a mismatch.
    """
    body = say("Hello.").replace("{", '{\n  "unheard_of": [1.50, null],', 1)
    world = World(body)
    asyncio.run(world.tell("Hi"))
    (call,) = calls(world)
    assert payload_of(call)["raw"] == body
    read = parse_reply.reply

    def repaired(raw: str, window: int, calling: str) -> object:
        return msgspec.structs.replace(read(raw, window, calling), text="I thought.")

    monkeypatch.setattr(parse_reply, "reply", repaired)
    assert [(m.seq, m.what) for m in verified(world).mismatches] == [(call.seq, "reply")]


@pytest.mark.parametrize("seed", range(3))
def test_a_request_depends_on_no_state_of_a_provider(seed: int) -> None:
    """Requests have exactly these keys: none refers to an earlier response, a stored conversation or a cache."""
    for body in map(json.loads, lived(seed).model.requests):
        assert set(body) in ({"model", "messages", "tools", "tool_choice"}, {"model", "messages"})
        assert body["messages"][0]["role"] == "system"
        for message in body["messages"]:
            assert set(message) <= {"role", "content", "tool_calls", "tool_call_id"}
        for tool in body.get("tools", []):
            assert set(tool) == {"type", "function"}


def test_the_first_difference_does_not_hide_the_next() -> None:
    """Every record after a mismatch is still checked, and nothing in the log is touched."""
    world = conversed()
    before = world.log()
    some = calls(world)
    changes: list[Change] = [
        replaced(call.seq, payload_of(call)["context_sha256"], f"{number}" * 64)
        for number, call in ((1, some[1]), (2, some[4]))
    ]
    report = verified(world, *changes)
    assert [m.seq for m in report.mismatches if m.what == "request"] == [some[1].seq, some[4].seq]
    assert len(report.calls.equal) == len(some) - 2
    assert world.log() == before
