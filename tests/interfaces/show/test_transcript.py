"""`everlog show`: the conversation as a transcript."""

import pytest

from everlog.interfaces.show.transcript import TranscriptEntry, markdown, plain
from tests.support.cli.command_line import Line, completion, says


@pytest.fixture
def talked(cli: Line) -> Line:
    """Return a store in which sam answered two messages, and edited memory for the first one."""

    def make(line: Line) -> None:
        edit = ("core_memory_append", {"name": "human", "content": "Sails", "request_heartbeat": True})
        line.script.answers = [completion(edit), says("Ahoy *Chad*."), says("Two.")]
        line.ok("send", "sam", "I am Chad,\nand I sail")
        line.ok("send", "sam", "Count", "--speaker", "Chad")

    cli.begin("transcripts", make)
    return cli


def entry(text: str | None, role: str = "user", who: str = "user") -> TranscriptEntry:
    return TranscriptEntry(seq=1, at=0, role=role, who=who, text=text)


def test_a_transcript_says_who_said_what_when(talked: Line) -> None:
    """Messages are in order, with speakers and times; calls, thoughts and memory are left out."""
    shape = talked.json("show", "sam")
    assert [(one["role"], one["name"], one["text"]) for one in shape["messages"]] == [
        ("user", "user", "I am Chad,\nand I sail"),
        ("assistant", "sam", "Ahoy *Chad*."),
        ("user", "Chad", "Count"),
        ("assistant", "sam", "Two."),
    ]
    text = talked.ok("show", "sam")
    assert "\nuser, 2023-11-14 " in text
    assert "\n  I am Chad,\n  and I sail\n" in text
    assert "core_memory_append" not in text and "I think." not in text
    assert "> Ahoy *Chad*." in talked.ok("show", "sam", "--markdown")


def test_calls_are_shown_if_asked_for(talked: Line) -> None:
    """With --calls each call stands where it was made; in Markdown it is folded."""
    roles = [one["role"] for one in talked.json("show", "sam", "--calls")["messages"]]
    assert roles == ["user", "function", "assistant", "user", "assistant"]
    assert 'ƒ core_memory_append(name="human", content="Sails")' in talked.ok("show", "sam", "--calls")
    page = talked.ok("show", "sam", "--calls", "--markdown")
    assert "<details><summary>1 function call</summary>\n\n```\ncore_memory_append(" in page


def test_a_span_and_a_moment_are_chosen(talked: Line) -> None:
    """--from, --to and --as-of leave the other messages out; an empty span says why."""
    seqs = [one["seq"] for one in talked.json("show", "sam")["messages"]]
    assert [
        one["seq"] for one in talked.json("show", "sam", "--from", str(seqs[1]), "--to", str(seqs[2]))["messages"]
    ] == (seqs[1:3])
    assert [one["seq"] for one in talked.json("show", "sam", "--as-of", str(seqs[1]))["messages"]] == seqs[:2]
    code, out, err = talked("show", "sam", "--from", "9999")
    assert (code, "no messages" in out, "beyond the last record" in err) == (0, True, True)
    assert "exclude each other" in talked("show", "sam", "--json", "--markdown")[2]


def test_undone_and_erased_messages_are_not_said(talked: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn that was undone is left out; an erased message leaves its place."""
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("/pop\n"))
    assert talked("chat", "sam")[0] == 0
    assert [one["text"] for one in talked.json("show", "sam")["messages"]] == ["I am Chad,\nand I sail", "Ahoy *Chad*."]
    seq = talked.json("show", "sam")["messages"][0]["seq"]
    talked.ok("erase", "sam", "--seq", str(seq), "--yes")
    assert talked.json("show", "sam")["messages"][0]["text"] is None
    assert "(erased)" in talked.ok("show", "sam") and "*(erased)*" in talked.ok("show", "sam", "--markdown")


def test_no_text_can_pretend_to_be_another_speaker_or_bring_html() -> None:
    """Every line of a text is quoted, tags are escaped outside of code, and control characters everywhere."""
    text = "a\n\n**sam**, now\n# Title <b> and `<i>`\n```\n<script>\n```\n<!-- x\x1b[31m"
    page = markdown("s*m", [entry(text, who="<b>#")], "UTC")
    head, *quoted = page.split("\n> ")
    assert head.startswith("# Conversation with s\\*m") and "**\\<b\\>\\#**" in head
    body = "\n".join(quoted)
    assert "# Title &lt;b> and `<i>`" in body
    assert "```\n<script>\n```" in body
    assert "&lt;!-- x\\x1b[31m" in body
    assert all(line.startswith(">") for line in page.split("\n\n", 3)[-1].split("\n"))


def test_line_breaks_are_kept_in_markdown() -> None:
    """A line ends in two spaces, which Markdown draws as a line break; the last one does not."""
    assert markdown("sam", [entry("one\ntwo")], "UTC").endswith("> one  \n> two")


def test_an_agent_without_messages_has_an_empty_transcript(cli: Line) -> None:
    """The page says so."""
    cli.ok("create", "sam")
    assert cli.ok("show", "sam") == "Conversation with sam: no messages.\n"
    assert plain("sam", [], "UTC") == "Conversation with sam: no messages."
