"""Decide which messages of a resent history are new, by comparing it with the conversations in the log. Pure.

The one place where this is decided, for every surface whose clients resend what they know. A conversation is one or
more branches: the first is on the agent itself, and each further one is a fork of the agent, made where a client sent
something else than before. The cases, with those of `tests/laws/test_resent_history.py`:

- A history that a branch has to its end, and a new question: append the question to that branch.
- The last question of a branch again: the client repeats its request, and gets the same run.
- A question where a branch has another one, or that the client sends afresh: fork the branch there.
- A history that no branch begins with: begin a conversation.
"""

from collections.abc import Sequence
from typing import NamedTuple


class ExchangeDigests(NamedTuple):
    """Digests of a question and its answer, as `client_history` makes them."""

    asked: bytes
    answered: bytes
    openings: frozenset[bytes] = frozenset()
    """Digests of the question without its last paragraphs, which a client may leave out when it resends the question.
    """

    def had_as(self, other: "ExchangeDigests") -> bool:
        """Return True if a client's earlier exchange has this question of the log."""
        return other.asked == self.asked or other.asked in self.openings


class Begin(NamedTuple):
    """The conversation is new: append the question to the agent itself, after all exchanges that the client has."""


class Continue(NamedTuple):
    """Append the question to a branch."""

    branch: int
    """Place of the branch in the given ones."""
    known: int
    """Number of the client's exchanges that the branch has: those after them are new to the log."""


class SameRun(NamedTuple):
    """The question is the last one of a branch: its run is the answer."""

    branch: int
    exchange: int
    """Place of the question in the branch."""


class ForkBefore(NamedTuple):
    """Fork a branch before one of its questions, and append the question to the fork."""

    branch: int
    exchange: int
    """Place, in the branch, of the first question that the fork does not have."""
    known: int
    """Number of the client's exchanges that the fork has: those after them are new to the log."""


Meaning = Begin | Continue | SameRun | ForkBefore


def meaning_of(
    prior: Sequence[ExchangeDigests],
    question: bytes,
    branches: Sequence[Sequence[ExchangeDigests]],
    *,
    keyed: bool,
    afresh: bool = False,
) -> Meaning:
    """Return the meaning of a history and its question.

    `branches`: of the conversations that it may belong to, oldest first, with an answer as far as it was given.
    `keyed`: the client named the conversation, so its branches are known to be meant; otherwise the history alone has
    to say so. `afresh`: the client says that it does not repeat a request.
    """
    found = [_in_branch(prior, question, branch, place, keyed=keyed) for place, branch in enumerate(branches)]
    ranked = [(rank, place, meaning) for place, (rank, meaning) in enumerate(found) if meaning is not None]
    if not ranked:
        return Begin()
    meaning = max(ranked, key=lambda one: one[:2])[2]
    if isinstance(meaning, SameRun) and afresh:
        return ForkBefore(*meaning, len(prior)) if keyed or prior else Begin()
    return meaning


_Rank = tuple[int, int, int]
"""Number of questions that agree, number of answers that agree, and how near the meaning is to a plain repeat."""


def _in_branch(
    prior: Sequence[ExchangeDigests], question: bytes, branch: Sequence[ExchangeDigests], place: int, *, keyed: bool
) -> tuple[_Rank, Meaning | None]:
    """Return the meaning of a history if it belongs to a branch, and its rank among the meanings for other branches."""
    start = _start(prior, branch)
    pairs = list(zip(prior, branch[start:], strict=False))
    agree = next((n for n, (had, has) in enumerate(pairs) if not has.had_as(had)), len(pairs))
    answers = sum(had.answered == has.answered for had, has in pairs[:agree])
    end = start + agree
    # A client without a name for its conversation may share a beginning with others: the last answer that both have
    # must agree too, if the histories part after it.
    related = keyed or (agree > 0 and prior[agree - 1].answered == branch[end - 1].answered)
    if agree < len(prior):
        meaning: Meaning = Continue(place, agree) if end == len(branch) else ForkBefore(place, end, agree)
        return (agree, answers, 0), meaning if related else None
    if end == len(branch):
        return (agree, answers, 1), Continue(place, agree) if keyed or agree else None
    if branch[end].asked == question and end == len(branch) - 1:
        return (agree, answers, 2), SameRun(place, end)
    return (agree, answers, 0), ForkBefore(place, end, agree) if keyed or agree else None


def _start(prior: Sequence[ExchangeDigests], branch: Sequence[ExchangeDigests]) -> int:
    """Return the place in a branch at which a history begins: 0, unless the client has cut off its oldest exchanges."""
    if not prior or not branch or branch[0].had_as(prior[0]):
        return 0
    starts = [n for n, one in enumerate(branch) if one.had_as(prior[0]) and one.answered == prior[0].answered]
    return max(starts, key=lambda start: (_agreeing(prior, branch, start), start), default=0)


def _agreeing(prior: Sequence[ExchangeDigests], branch: Sequence[ExchangeDigests], start: int) -> int:
    pairs = zip(prior, branch[start:], strict=False)
    return next((n for n, (had, has) in enumerate(pairs) if not has.had_as(had)), min(len(prior), len(branch)))
