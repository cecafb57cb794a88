"""A resent history means what its client did: said more, repeated, edited, asked afresh, or began. It is compared with
a model of a front end that keeps a tree of messages and shows one path of it.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everlog.events import BadInput
from everlog.interfaces.http.conversations.client_history import (
    answer_digest,
    client_history,
    opening_digests,
    question_digest,
)
from everlog.interfaces.http.conversations.resent_history import (
    Begin,
    Continue,
    ExchangeDigests,
    ForkBefore,
    Meaning,
    SameRun,
    meaning_of,
)

Exchange = tuple[str, str]
"""Question and answer."""
Path = list[Exchange]


class FrontEnd:
    """Front end of one user with one conversation, and the log of its agent: both plain lists."""

    def __init__(self, *, keyed: bool) -> None:
        self.keyed = keyed
        self.branches: list[Path] = []
        self.view: Path = []
        """Path that the front end shows."""
        self.said = 0

    def send(self, prior: Path, question: str, noise: int, *, afresh: bool = False, cut: int = 0) -> Meaning:
        """Send a request, check its meaning, and carry it out in the log. `cut`: oldest exchanges left out."""
        read = client_history(messages(prior[cut:], question, noise))
        digests = [ExchangeDigests(question_digest(one.asked), answer_digest(one.answered)) for one in read.prior]
        branches = [[ExchangeDigests(question_digest(q), answer_digest(a)) for q, a in one] for one in self.branches]
        meaning = meaning_of(digests, question_digest(read.question), branches, keyed=self.keyed, afresh=afresh)
        self.said += 1
        answer = f"answer {self.said}"
        if isinstance(meaning, SameRun):
            branch = self.branches[meaning.branch]
            assert meaning.exchange == len(branch) - 1
            self.view = list(branch)
        elif isinstance(meaning, Continue):
            assert meaning.known == len(prior) - cut
            self.branches[meaning.branch].append((question, answer))
            self.view = list(self.branches[meaning.branch])
        elif isinstance(meaning, ForkBefore):
            assert meaning.known == len(prior) - cut
            self.branches.append([*self.branches[meaning.branch][: meaning.exchange], (question, answer)])
            self.view = list(self.branches[-1])
        else:
            self.branches.append([*prior, (question, answer)])
            self.view = list(self.branches[-1])
        return meaning

    def is_last(self, prior: Path, question: str) -> bool:
        """Return True if a branch ends with this question after this path."""
        return any(branch[:-1] == prior and branch[-1][0] == question for branch in self.branches)


def messages(prior: Path, question: str, noise: int) -> list[dict[str, Any]]:
    """Return a request's messages, with what front ends add to them. `noise`: bits that choose the additions."""
    sent: list[dict[str, Any]] = [{"role": "system", "content": f"prompt {noise}"}] if noise & 1 else []
    for asked, answered in prior:
        sent.append({"role": "user", "content": [{"type": "text", "text": f" {asked}\n"}] if noise & 2 else asked})
        if noise & 4:
            sent += [{"role": "assistant", "content": None, "tool_calls": [{}]}, {"role": "tool", "content": "42"}]
        thought = '<details type="reasoning">\nHm.\n</details>\n' if noise & 8 else ""
        sent.append({"role": "assistant", "content": f"{thought}{answered.replace(' ', '  ')}"})
    if noise & 16:
        sent.insert(0, {"role": "assistant", "content": "How can I help?"})
    parts = question.split("\n\n")
    return sent + [{"role": "user", "content": part} for part in parts]


Step = tuple[str, int, int]
STEPS = st.lists(
    st.tuples(st.sampled_from(["extend", "repeat", "edit", "again", "afresh", "switch", "cut"]), st.integers(0, 9),
              st.integers(0, 31)),
    max_size=14,
)  # fmt: skip


@given(st.booleans(), STEPS)
def test_a_history_means_what_its_client_did(keyed: bool, steps: Sequence[Step]) -> None:
    """After anything that a front end did before, more is appended, a repeat is the same run, an edit is a fork at its
    place, a question asked afresh is a fork before it, and a history that the log does not have begins a conversation.
    """
    front = FrontEnd(keyed=keyed)
    assert front.send([], "first question", 0) == Begin()
    for number, (step, place, noise) in enumerate(steps):
        new = f"question {number}\n\nand more" if noise & 1 else f"question {number}"
        before = [list(branch) for branch in front.branches]
        view, at = list(front.view), place % len(front.view)
        parted = keyed or at > 0
        if step == "switch":
            front.view = list(front.branches[place % len(front.branches)])
            continue
        if step == "extend":
            assert isinstance(front.send(view, new, noise), Continue)
        elif step == "repeat":
            assert isinstance(front.send(view[:-1], view[-1][0], noise), SameRun)
            assert front.branches == before
        elif step == "edit":
            assert isinstance(front.send(view[:at], new, noise), ForkBefore if parted else Begin)
        elif step == "again":
            repeated = front.is_last(view[:at], view[at][0])
            meant = SameRun if repeated else ForkBefore if parted else Begin
            assert isinstance(front.send(view[:at], view[at][0], noise), meant)
        elif step == "afresh":
            last = len(view) - 1
            meant = ForkBefore if keyed or last > 0 else Begin
            assert isinstance(front.send(view[:last], view[last][0], noise, afresh=True), meant)
        elif step == "cut" and len(view) > 1:
            assert isinstance(front.send(view, new, noise, cut=at), Continue)
        for had, has in zip(before, front.branches, strict=False):
            assert has[: len(had)] == had
        assert front.view in front.branches


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ([], "last message must be the user's"),
        ([{"role": "user", "content": "  "}], "last message must be the user's"),
        (
            [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}],
            "last message must be the user's",
        ),
        ([{"role": "user", "content": "Hi"}, {"role": "tool", "content": "42"}], "last message must be the user's"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}], "read text only"),
        ([{"role": "robot", "content": "Hi"}], "has the role 'robot'"),
    ],
)
def test_what_no_agent_can_answer_is_refused_in_words(sent: Sequence[dict[str, Any]], said: str) -> None:
    """A request that asks nothing, or shows a picture, is refused with a sentence that says so."""
    with pytest.raises(BadInput, match=said):
        client_history(sent)


def test_an_earlier_picture_does_not_refuse_a_conversation() -> None:
    """A picture that was refused stays in the front end's history: later questions are answered all the same."""
    sent = [
        {"role": "user", "content": [{"type": "text", "text": "See"}, {"type": "image_url", "image_url": {}}]},
        {"role": "assistant", "content": "I read text only."},
        {"role": "user", "content": "Then listen."},
    ]
    read = client_history(sent)
    assert [one.asked for one in read.prior] == ["See"]
    assert read.question == "Then listen."


def test_a_client_that_has_more_than_the_log_brings_it_along() -> None:
    """Exchanges that the log does not have are told apart from those that it has."""
    one, two, new = (ExchangeDigests(name, name) for name in (b"1", b"2", b"3"))
    assert meaning_of([one, two], new.asked, [[one]], keyed=False) == Continue(0, 1)
    assert meaning_of([one, two], new.asked, [[one, new, two]], keyed=False) == ForkBefore(0, 1, 1)


def test_strangers_with_the_same_beginning_are_kept_apart() -> None:
    """Without a name for the conversation, an equal question with another answer belongs to another conversation."""
    mine, theirs = ExchangeDigests(b"hello", b"mine"), ExchangeDigests(b"hello", b"theirs")
    later = ExchangeDigests(b"later", b"x")
    assert meaning_of([mine, later], b"new", [[theirs]], keyed=False) == Begin()
    assert meaning_of([mine, later], b"new", [[theirs], [mine, later]], keyed=False) == Continue(1, 2)
    assert meaning_of([mine], b"new", [[mine], [theirs]], keyed=False) == Continue(0, 1)


def test_a_reminder_behind_a_question_is_no_edit_when_it_is_gone() -> None:
    """A program that puts a paragraph behind the newest question, and resends the question without it, stays in the
    same branch; the question itself, without its paragraph, is another question.
    """
    text = "What do I do?\n\nReply in English."
    logged = ExchangeDigests(question_digest(text), b"answer", opening_digests(text))
    resent = ExchangeDigests(question_digest("What do I do?"), b"answer")
    assert meaning_of([resent], question_digest("And?"), [[logged]], keyed=False) == Continue(0, 1)
    assert meaning_of([], question_digest("What do I do?"), [[logged]], keyed=True) == ForkBefore(0, 0, 0)
    assert meaning_of([], question_digest(text), [[logged]], keyed=False) == SameRun(0, 0)
