"""`everlog blame`: the records that put the words of a memory block there."""

from pathlib import Path

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


def test_words_of_a_shared_block_that_is_elsewhere_name_its_version(cli: Line, tmp_path: Path) -> None:
    """In a store without the shared block, such as one into which the agent was restored, the version is named."""
    cli.ok("create", "sam")
    cli.ok("shared", "create", "team", "Ann likes tea.")
    cli.ok("shared", "attach", "sam", "team")
    cli.ok("export", "sam", str(tmp_path / "sam.everlog"))
    elsewhere = Line(tmp_path / "elsewhere", cli._capsys)
    elsewhere.ok("restore", str(tmp_path / "sam.everlog"))
    shown = elsewhere.ok("blame", "sam", "team")
    assert "  version 1 of the shared block team: `everlog shared history team` names its author" in shown


def test_the_words_of_a_shared_block_lead_to_the_record_of_the_agent_that_wrote_them(cli: Line) -> None:
    """Each part names the version of the shared block, its author, and the record and the input in the author's log;
    words that a person wrote name no record.
    """
    appended = completion(("core_memory_append", {"label": "team", "content": "Ann cooks.", "request_heartbeat": True}))
    cli.script.answers[:] = [says("Hello."), says("Hello."), appended, says("Noted."), says("Ann.")]
    for name in ("sam", "kim"):
        cli.ok("create", name, "--model", "script")
        cli.ok("send", name, "Hi")
    cli.ok("shared", "create", "team", "Bob sails.")
    for name in ("sam", "kim"):
        cli.ok("shared", "attach", name, "team")
    cli.ok("send", "kim", "Ann cooks from now on")
    cli.ok("send", "sam", "Who cooks?")
    edit = [one for one in cli.lines("events", "kim") if one["type"] == "memory_edited"][-1]
    by_hand, written = cli.json("blame", "sam", "team")["words"]
    assert (by_hand["text"], by_hand["shared"]["author"], by_hand["input"]) == ("Bob sails.", None, None)
    assert (written["text"].strip(), written["operation"]) == ("Ann cooks.", "appended")
    assert written["shared"] == {"block": "team", "version": 2, "author": "kim", "author_seq": edit["seq"]}
    assert written["input"]["text"] == "Ann cooks from now on"
    assert written["seq"] == [one for one in cli.lines("events", "sam") if one["type"] == "memory_edited"][-1]["seq"]
    text = cli.ok("blame", "sam", "team")
    assert f"version 2 of the shared block team, by kim\n  seq {edit['seq']} of kim, turn {edit['turn']}\n" in text
    cli.ok("shared", "delete", "team")
    assert "Ann cooks." in cli.ok("blame", "sam", "team", "--as-of", str(written["seq"]))
