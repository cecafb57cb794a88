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
