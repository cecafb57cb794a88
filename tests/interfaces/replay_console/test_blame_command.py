"""`everlog blame`: the records that put the words of a memory block there."""

from tests.support.cli.command_line import Line, completion, says


def _append(text: str) -> str:
    return completion(("core_memory_append", {"label": "human", "content": text, "request_heartbeat": True}))


def test_words_are_told_with_their_record_and_the_input_of_its_turn(cli: Line) -> None:
    """Each part of the block names the record, its turn and the message that led to it; parts together are the block,
    and at an earlier moment the later words are not there.
    """
    cli.script.answers[:] = [
        says("Hello."),
        _append("Has a dog, Rex."),
        says("Noted."),
        _append("Rex died."),
        says("Oh."),
    ]
    cli.ok("create", "sam", "--model", "script")
    for text in ("Hi", "I have a dog, Rex", "Rex died"):
        cli.ok("send", "sam", text)
    found = cli.json("blame", "sam", "human")
    block = next(one for one in cli.json("memory", "sam")["blocks"] if one["label"] == "human")
    assert "".join(one["text"] for one in found["words"]) == block["value"]
    last = found["words"][-1]
    assert (last["text"].strip(), last["operation"]) == ("Rex died.", "appended")
    assert (last["input"]["type"], last["input"]["text"], last["seq"]) == ("user_message", "Rex died", block["seq"])
    before = cli.json("blame", "sam", "human", "--as-of", str(last["seq"] - 1))
    assert [one["text"] for one in before["words"]] == [one["text"] for one in found["words"][:-1]]
    assert "after: user_message I have a dog, Rex" in cli.ok("blame", "sam", "human")


def test_an_unknown_label_names_the_blocks(cli: Line) -> None:
    """A label that no block had is refused, with the labels that there are."""
    cli.ok("create", "sam", "--model", "script")
    assert "human, persona" in cli.fails("blame", "sam", "nobody")


def test_the_words_of_an_answer_lead_to_what_the_model_saw(cli: Line) -> None:
    """Each part of an answer names the message in sight that has the same words, or nothing; parts together are the
    answer, and the input of its turn is named.
    """
    cli.script.answers[:] = [
        says("What a fine trade."),
        says("Then the harpsichords of Lisbon suffer from the salt."),
    ]
    cli.ok("create", "sam", "--model", "script")
    cli.ok("send", "sam", "I repair harpsichords in Lisbon")
    cli.ok("send", "sam", "The sea is near")
    records = cli.lines("events", "sam")
    said = next(one["seq"] for one in records if one["type"] == "user_message")
    answer = [one["seq"] for one in records if one["type"] == "message_sent"][-1]
    found = cli.json("blame", "sam", str(answer))
    assert "".join(one["text"] for one in found["words"]) == "Then the harpsichords of Lisbon suffer from the salt."
    traced = {one["from"]["seq"] for one in found["words"] if one["from"]}
    assert said in traced
    assert (found["input"]["text"], found["type"]) == ("The sea is near", "message_sent")
    text = cli.ok("blame", "sam", str(answer))
    assert f"seq {said}, " in text and "no proof" in text


def test_an_event_without_words_of_the_model_is_refused(cli: Line) -> None:
    """The seq of a message of the user, and one that there is not, are refused in words."""
    cli.ok("create", "sam", "--model", "script")
    for seq in ("1", "999"):
        assert "is no answer and no summary" in cli.fails("blame", "sam", seq)


def test_words_of_a_shared_block_name_its_version(cli: Line) -> None:
    """The edit of the agent is a copy, so the version of the block is named, whose history has the author."""
    cli.ok("create", "sam")
    cli.ok("shared", "create", "team", "Ann likes tea.")
    cli.ok("shared", "attach", "sam", "team")
    assert "  version 1 of the shared block team: `everlog shared history team` names its author" in cli.ok(
        "blame", "sam", "team"
    )
