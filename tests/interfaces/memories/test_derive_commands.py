"""`everlog reflect`, `derive` and `withdraw`: by rules and by a model that answers well, badly and with lies."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli.command_line import Line, completion

TALK = (
    ("2024-02-10", "Lea lives in Paris."),
    ("2024-03-02", "I have been sailing every weekend, the boat is called Ada."),
    ("2024-03-16", "I took the boat to the lake again."),
    ("2024-04-20", "I repaired the boat with Lea."),
    ("2024-05-06", "Lea moved to Rome on 1 March."),
)
PARIS, ROME = "Lea lives in Paris.", "Lea lives in Rome."
MOVED = "Lea moved from Paris to Rome on 1 March 2024."


@pytest.fixture
def sam(cli: Line, tmp_path: Path) -> dict[str, int]:
    """Return the seqs of the messages of the agent sam, by their text."""
    lines = [
        json.dumps({"role": "user", "name": "Sam", "content": text, "time": f"{day}T10:00:00Z"}) for day, text in TALK
    ]
    (tmp_path / "talk.jsonl").write_text("\n".join(lines), encoding="utf-8")
    cli.begin("derived", lambda line: line.ok("import", "sam", str(tmp_path / "talk.jsonl")))
    cli.script.answers, cli.script.asked = [], []
    return {row["text"]: row["seq"] for row in cli.lines("events", "sam") if row["type"] == "user_message"}


def texts(cli: Line, *words: str) -> list[str]:
    """Return the texts of what sam concluded."""
    return sorted(row["text"] for row in cli.json("memories", "sam", *words))


def kinds(cli: Line) -> list[str]:
    return [row["type"] for row in cli.lines("events", "sam")]


def facts_reply(*facts: tuple[str, str, str, int], **more: Any) -> str:
    """Return a model's answer with facts: subject, predicate, object, number of the message from 1."""
    found = [
        {"subject": subject, "predicate": predicate, "object": what, "messages": [number],
         "sentence": f"{subject} {predicate} {what}."}
        for subject, predicate, what, number in facts
    ]  # fmt: skip
    return completion(words=json.dumps({"facts": found, "ended": [], **more}))


def insights_reply(*insights: tuple[str, list[int]]) -> str:
    """Return a model's answer with insights, each with the numbers of its statements."""
    return completion(words=json.dumps({"insights": [{"text": text, "because_of": of} for text, of in insights]}))


def test_reflect_concludes_by_rules_and_asks_no_model(cli: Line, sam: dict[str, int]) -> None:
    """Facts and insights are noted with their sources, the page says that rules did it, and nothing is done twice."""
    page = cli.ok("reflect", "sam")
    assert page.splitlines()[0] == "sam: read 5 memories, noted 3 fact records (by rules: rules-1)."
    assert {PARIS, ROME, MOVED} <= set(texts(cli))
    assert cli.script.asked == []
    (rome,) = cli.json("facts", "sam")
    assert rome["object"] == "Rome" and rome["sources"] == [sam["Lea moved to Rome on 1 March."]]
    before = kinds(cli)
    again = cli.json("reflect", "sam")
    assert [(one["derivation"], one["read"], one["noted"]) for one in again["derivations"]] == [
        ("facts", 0, 0),
        ("reflection", 0, 0),
    ]
    assert kinds(cli) == before
    assert "sam: nothing new for facts since seq" in cli.ok("reflect", "sam")


def test_one_kind_alone_is_derived(cli: Line, sam: dict[str, int]) -> None:
    """--kind derives the named kinds only."""
    done = cli.json("derive", "sam", "--kind", "facts")
    assert [one["derivation"] for one in done["derivations"]] == ["facts"]
    assert "insight_noted" not in kinds(cli) and "fact_noted" in kinds(cli)


def test_a_second_generation_by_the_same_rules_has_the_same_memories(cli: Line, sam: dict[str, int]) -> None:
    """--compare says that nothing differs; what is in use stays what it was until --use."""
    cli.ok("reflect", "sam")
    first = texts(cli)
    done = cli.json("derive", "sam", "--generation", "2", "--compare")
    compared = done["compared"]
    assert compared["generations"] == [1, 2] and compared["withdrawn"] == [0, 0]
    for kind in ("facts", "insights"):
        assert compared[kind]["both"] and not compared[kind]["only_first"] and not compared[kind]["only_second"], kind
    assert texts(cli) == first and {row["generation"] for row in cli.json("facts", "sam", "--all")} == {1}
    cli.ok("derive", "sam", "--generation", "2", "--use")
    assert texts(cli) == first and {row["generation"] for row in cli.json("facts", "sam", "--all")} == {2}
    assert kinds(cli).count("generation_chosen") == 1


def test_a_model_derives_another_generation_beside_the_rules(cli: Line, sam: dict[str, int]) -> None:
    """--compare shows the facts that only the model found; --use puts either generation in use."""
    cli.ok("derive", "sam", "--kind", "facts")
    cli.script.answers = [facts_reply(("Lea", "lives_in", "Paris", 1), ("Ada", "is_a", "boat", 2))]
    derive = ("derive", "sam", "--kind", "facts", "--generation", "2")
    page = cli.ok(*derive, "--model", "wise", "--compare")
    assert "noted 2 fact records (by wise: wise)" in page
    assert "  + Ada is_a boat." in page and f"  - {ROME}" in page
    assert len(cli.script.asked) == 1 and b"I took the boat to the lake again." in cli.script.asked[0]
    assert texts(cli) == [PARIS, ROME]
    cli.ok(*derive, "--use")
    assert {row["deriver"] for row in cli.json("facts", "sam")} == {"wise"}
    assert texts(cli) == ["Ada is_a boat.", "Lea lives_in Paris."]
    cli.ok("derive", "sam", "--kind", "facts", "--use")
    assert texts(cli) == [PARIS, ROME]


def test_a_model_reflects(cli: Line, sam: dict[str, int]) -> None:
    """Facts, questions and insights are three answers on record, and the insight rests on the messages it names."""
    cli.script.answers = [
        facts_reply(),
        completion(words=json.dumps({"questions": ["What does Sam like?"]})),
        insights_reply(("Sam cares a lot for the boat.", [1, 2])),
    ]
    page = cli.ok("reflect", "sam", "--model", "wise")
    assert "noted 1 insight (by wise: wise)" in page
    (insight,) = cli.json("memories", "sam", "--kind", "insight")
    assert insight["text"] == "Sam cares a lot for the boat." and insight["deriver"] == "wise"
    assert len(insight["sources"]) == 2 and set(insight["sources"]) <= set(sam.values())
    assert kinds(cli).count("derivation_replied") == len(cli.script.asked) == 3


UNPARSABLE = completion(words="I would rather not.")


def test_an_answer_without_json_is_kept_and_becomes_no_memory(cli: Line, sam: dict[str, int]) -> None:
    """It is asked for once more; both answers are in the log with their fault, and no fact is."""
    cli.script.answers = [UNPARSABLE, UNPARSABLE]
    done = cli.json("derive", "sam", "--kind", "facts", "--model", "vague")["derivations"][0]
    assert (done["noted"], done["deriver"], len(cli.script.asked)) == (0, "vague", 2)
    found = [row for row in cli.lines("events", "sam") if row["type"] == "derivation_replied"]
    assert len(found) == 2 and all(row["payload"]["fault"] for row in found)
    assert "fact_noted" not in kinds(cli) and cli.json("facts", "sam", "--all") == []


def test_a_lie_is_refused_with_its_reason_and_the_truth_is_kept(cli: Line, sam: dict[str, int]) -> None:
    """A name, an object and a message that were never there are refused, shown on the page and counted in the log."""
    cli.script.answers = [
        facts_reply(
            ("John Doe", "lives_in", "Paris", 1),
            ("Lea", "lives_in", "Berlin", 1),
            ("Lea", "lives_in", "Paris", 99),
            ("Ada", "is_a", "boat", 2),
        )
    ]
    page = cli.ok("derive", "sam", "--kind", "facts", "--model", "liar")
    assert page.count("refused 1: ") == 3 and "message 99" in page
    assert texts(cli) == ["Ada is_a boat."]
    (cursor,) = [row for row in cli.lines("events", "sam") if row["type"] == "memories_derived"]
    assert (cursor["payload"]["noted"], cursor["payload"]["refused"]) == (1, 3)


LIES = (("Sam is rich.", [77]), ("Sam is tall.", []), (TALK[2][1], [1, 2]))
"""Insights with an unknown number, with none, and in the words of the talk itself."""


def test_an_insight_without_valid_sources_is_refused(cli: Line, sam: dict[str, int]) -> None:
    """Insights of the same answer that are borne out are kept; the refused ones are named and counted."""
    questions = completion(words=json.dumps({"questions": ["What does Sam like?"]}))
    cli.script.answers = [questions, insights_reply(*LIES, ("Sam cares a lot for the boat.", [1, 2]))]
    (done,) = cli.json("derive", "sam", "--kind", "reflection", "--model", "liar")["derivations"]
    assert done["noted"] == 1 and len(done["refused"]) == len(LIES)
    assert texts(cli, "--kind", "insight") == ["Sam cares a lot for the boat."]


def test_an_answer_of_lies_alone_is_on_record_with_its_fault(cli: Line, sam: dict[str, int]) -> None:
    """The model is asked once more, and then no insight is noted."""
    questions = completion(words=json.dumps({"questions": ["What does Sam like?"]}))
    cli.script.answers = [questions, insights_reply(*LIES), insights_reply(*LIES)]
    (done,) = cli.json("derive", "sam", "--kind", "reflection", "--model", "liar")["derivations"]
    assert done["noted"] == 0 and len(done["refused"]) == 1 and len(cli.script.asked) == 3
    faults = [
        row["payload"].get("fault", "") for row in cli.lines("events", "sam") if row["type"] == "derivation_replied"
    ]
    assert [bool(fault) for fault in faults] == [False, True, True]
    assert "insight_noted" not in kinds(cli)


def test_a_memory_is_withdrawn_and_restored(cli: Line, sam: dict[str, int]) -> None:
    """It leaves all lists and comes back; repeating either changes nothing, and the reason is in the log."""
    cli.ok("reflect", "sam")
    seq = next(row["seq"] for row in cli.json("memories", "sam") if row["text"] == MOVED)
    assert cli.ok("withdraw", "sam", str(seq), "--reason", "hearsay") == f"{seq} no longer counts.\n"
    assert MOVED not in texts(cli)
    assert cli.ok("withdraw", "sam", str(seq)) == f"Nothing changed: {seq} no longer counts already.\n"
    assert cli.json("withdraw", "sam", str(seq), "--restore") == {"agent": "sam", "seqs": [seq], "changed": True}
    assert MOVED in texts(cli)
    changes = [row for row in cli.lines("events", "sam") if row["type"] == "memories_withdrawn"]
    assert [row["text"] for row in changes] == ["hearsay", None]


def test_withdrawing_the_end_of_a_fact_lets_it_hold_again(cli: Line, sam: dict[str, int]) -> None:
    """An undone end leaves both facts believed."""
    cli.ok("reflect", "sam")
    (end,) = [row["seq"] for row in cli.lines("events", "sam") if row["type"] == "fact_ended"]
    cli.ok("withdraw", "sam", str(end))
    assert [row["object"] for row in cli.json("facts", "sam")] == ["Paris", "Rome"]


def test_names_and_numbers_that_do_not_exist_are_errors(cli: Line, sam: dict[str, int]) -> None:
    """Each error says what is missing, nothing is written, and no agent is created."""
    before = kinds(cli)
    for command in (("reflect", "ann"), ("derive", "ann"), ("withdraw", "ann", "9"), ("memories", "ann")):
        assert "'ann'" in cli.fails(*command)
    said = str(sam[TALK[0][1]])
    assert f"Seq {said} is no derived memory" in cli.fails("withdraw", "sam", said)
    assert "Seq 999 is no derived memory" in cli.fails("withdraw", "sam", "999")
    assert kinds(cli) == before and [row["name"] for row in cli.json("agents")] == ["sam"]
