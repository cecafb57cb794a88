"""The command `reparse`: what today's reader makes of recorded replies, for people and for programs."""

import asyncio

import msgspec

from everlog.actors.formats import parse
from everlog.actors.replay.reparse import reparse
from everlog.events import BadReply, ContextOverflow
from tests.support.cli.line import Line
from tests.support.world import World, completion, say, written

KEYS = {"seq", "type", "turn", "verdict", "was", "now", "repair", "lossy"}


def test_replies_that_are_read_as_they_were_are_counted_and_no_more(cli: Line) -> None:
    """A store of today has nothing to tell, of one agent and of all; nothing is written."""
    for text in ("Hi", "I sail"):
        cli.ok("send", "sam", text)
    before = cli.ok("events", "sam", "--json")
    found = cli.json("reparse", "sam")
    assert (found["agent"], found["found"], found["faults"]) == ("sam", [], []) and found["read"] >= 2
    assert cli.json("reparse", "--all") == [found]
    assert "all read as they were" in cli.ok("reparse", "sam")
    assert cli.ok("events", "sam", "--json") == before


def test_a_failure_that_could_be_read_today_is_told() -> None:
    """A reader of then refused what today's reads: its raw text was kept, and says what was meant."""
    world = World(say("I was here."))
    asyncio.run(world.tell("Hello"))
    (reply,) = [record for record in world.log() if record.type == "model_reply" and record.turn]
    payload = msgspec.json.encode({"failure": "garbage", "raw": say("I was here.")}).decode()
    failed = msgspec.structs.replace(reply, type="model_failed", text="Nobody reads it.", payload=payload)
    records = [failed if record.seq == reply.seq else record for record in world.log()]
    (found,) = reparse("sam", records).found
    assert (found.verdict, found.was, found.seq) == ("readable", "Nobody reads it.", reply.seq)
    assert 'send_message {"message":"I was here."}' in found.now


def test_garbage_is_told_as_such() -> None:
    """What no reader reads is not passed over."""
    world = World("<html>no</html>")
    try:
        asyncio.run(world.tell("Hello"))
    except BadReply:
        pass
    (found,) = reparse("sam", world.log()).found
    assert (found.verdict, found.type) == ("unreadable", "model_failed")


def test_what_the_first_reader_left_alone_is_read_otherwise_today() -> None:
    """A call in the text was monologue once; the log still says so, and reparse says what it is today."""
    text = '<tool_call>{"name": "send_message", "arguments": {"message": "Hi."}}</tool_call>'
    world = World(lambda request: written(request, text))
    asyncio.run(world.tell("Hello"))
    first = parse.reply(written(world.model.requests[0], text), 8192, "native", 1)
    assert first.text == text and first.calls == []
    records = []
    for record in world.log():
        if record.type == "model_reply" and record.turn:
            old = {**msgspec.json.decode(record.payload), "calls": [], "reader": 1, "repair": ""}
            record = msgspec.structs.replace(record, text=text, payload=msgspec.json.encode(old).decode())
        records.append(record)
    (found,) = reparse("sam", records).found
    assert (found.verdict, found.repair, found.lossy) == ("otherwise", "tags", False)
    assert found.now == 'send_message {"message":"Hi."}'


def test_a_reply_that_was_shown_to_the_model_is_readable_only_if_it_is_no_guess_today() -> None:
    """What was refused for a guess that is still a guess is as it was."""
    world = World(completion(calls=[("send_message", '{"message": "I was cut')]), say("Whole."))
    asyncio.run(world.tell("Hello"))
    report = reparse("sam", world.log())
    assert report.found == [] and report.read == 2


def test_a_window_that_is_full_is_not_read() -> None:
    """An answer that the window cut is an overflow to every reader."""
    raw = completion(finish="length", total=8192)
    for reader in (1, parse.READER):
        try:
            parse.reply(raw, 8192, "native", reader)
        except ContextOverflow:
            continue
        raise AssertionError(reader)
