"""The benchmark of the offline stand-in counts an answer only if it quotes the evidence."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.support.experiments import share
from bench.talk.assistant_talk import assistant_talk
from bench.talk.stand_in_answers import HELD, TUNED, chosen, measure, quotes, quotes_one_of
from bench.talk.talk_kinds import LOCOMO, public
from everlog.actors.models.offline import answers
from everlog.actors.models.offline.hits import Quote, SearchHit

ANSWER = 'Hi! On 2023-05-08 Ann said: "I sail to Bergen." (yesterday: 7 May 2023) On 2023-05-09 you said: "... fog and'


def test_quotes_are_read_from_an_answer() -> None:
    """Each quote is read without marks of omission, its date or the sentence around it."""
    assert quotes(f'{ANSWER} wind ..."') == ["I sail to Bergen.", "fog and wind"]
    assert quotes('On 2023-05-08 Ann said: "… I sail to Bergen. …"') == ["I sail to Bergen."]


def test_only_a_quote_of_the_evidence_counts() -> None:
    """A quote of another message, a short one, and the evidence told in other words do not count."""
    assert quotes_one_of(f'{ANSWER} wind ..."', ["Well, I sail\nto Bergen. Bye"])
    assert not quotes_one_of(f'{ANSWER} wind ..."', ["I go to Bergen by boat"])
    assert not quotes_one_of('On 2023-05-08 Ann said: "Yes."', ["Yes. I sail"])


def test_the_two_parts_share_no_question() -> None:
    """Questions on which the rules were tuned, and those that are held, are at equal distances and differ."""
    talk = assistant_talk("en", 1)
    tuned, held = chosen(talk, 10, TUNED), chosen(talk, 10, HELD)
    assert len(tuned) == len(held) == 10 and not set(map(id, tuned)) & set(map(id, held))


def test_the_stand_in_quotes_evidence_and_a_broken_one_does_not(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of ten questions about one conversation half are answered with the evidence; with another hit none of three."""
    talks = public(data_dir, LOCOMO)[:1]
    right = [one.right for one in asyncio.run(measure(tmp_path / "store", talks, 10, HELD))]
    assert len(right) == 10 and share(right) >= 0.5

    def wrong(*_: object) -> Sequence[Quote]:
        return [Quote(SearchHit("2023-05-08", "Ann", ""), "that was never said by anybody")]

    monkeypatch.setattr(answers, "best", wrong)
    assert not any(one.right for one in asyncio.run(measure(tmp_path / "broken", talks, 3, HELD)))
