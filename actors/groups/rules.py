"""Decide what a group does in a turn: what it says, and whom it asks with which words. Pure.

A rule is asked where other agents ask a model, and its reply is recorded as one: so functions, rules about them, forks
and replays are those of any agent. Used by `group_reply.py`.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from everlog.actors.groups.talk import SAID, GroupQuestion, GroupTalk, Part, TalkLine, ended_call
from everlog.actors.mail.mail_functions import TEXT_CHARS_MAX

DONE = "done"
"""Answer of a manager that picks no further speaker."""
NOT_DELIVERED = "Your message was not delivered: "
"""Beginning of the text of a question that did not arrive, as `actors/mail/letters.py` writes it."""


class GroupRule(msgspec.Struct, frozen=True):
    """Rule of a group, with its parameters."""

    rule: str
    members: Sequence[str]
    manager: str = ""
    rounds: int = 1

    @property
    def speeches_max(self) -> int:
        """Largest number of speeches in one round of the rule."""
        return len(self.members) * self.rounds


class Asking(msgspec.Struct, frozen=True):
    """Question that is to be asked."""

    round: int
    part: Part
    number: int
    to: str
    text: str

    @property
    def call_id(self) -> str:
        """Id of the call that asks."""
        return GroupQuestion(self.round, self.part, self.number, 0, 0).call_id


class GroupMoves(msgspec.Struct):
    """Actions of a group in a step."""

    says: list[tuple[str, str]] = []
    """Texts for people, or for the agent that asked the group, by call id."""
    asks: list[Asking] = []
    thought: str = ""


class _Next(msgspec.Struct):
    """Continuation of a round: questions, or its end with a reason that is said."""

    asks: Sequence[tuple[Part, int, str]] = ()
    """Part, number and agent of each question."""
    why: str = ""


def moves(group: GroupRule, talk: GroupTalk) -> GroupMoves:
    """Return what the group does in the turn of `talk`."""
    found = GroupMoves()
    for asked in talk.asked:
        if text := _report(asked):
            found.says.append((SAID + asked.call_id, text))
    number = max((asked.round for asked in talk.asked), default=0)
    current = [asked for asked in talk.asked if asked.round == number]
    if waiting := [asked.to for asked in current if not asked.outcome]:
        found.thought = f"The round continues: {', '.join(waiting)} will answer."
        return found
    following = _Next()
    if current and not any(asked.outcome == "cut" for asked in current):
        following = _RULES[group.rule](group, current)
        if following.why and number not in talk.ended:
            found.says.append((ended_call(number), following.why))
    if not following.asks and talk.wanted > max((asked.turn for asked in talk.asked), default=0):
        number, current, following = talk.turn, [], _RULES[group.rule](group, [])
    found.asks = [
        Asking(number, part, place, to, _question(group, talk, current, part, to)) for part, place, to in following.asks
    ]
    found.thought = f"Asking {', '.join(one.to for one in found.asks)}." if found.asks else "The round is over."
    return found


def _round_robin(group: GroupRule, current: Sequence[GroupQuestion]) -> _Next:
    """Return the next member in order; one that could not be asked is passed over for the rest of the round."""
    refused = {group.members[one.number % len(group.members)] for one in current if one.outcome == "refused"}
    begun = max((one.number for one in current if one.part == "speaks"), default=-1) + 1
    for number in range(begun, group.speeches_max):
        member = group.members[number % len(group.members)]
        if member not in refused:
            return _Next([("speaks", number, member)])
    return _Next()


def _supervisor(group: GroupRule, current: Sequence[GroupQuestion]) -> _Next:
    """Return all members at once, and then the supervisor, whose answer ends the round."""
    if not current:
        return _Next([("works", number, member) for number, member in enumerate(group.members)])
    if any(one.part != "works" for one in current):
        return _Next()
    return _Next([("decides", 0, group.manager)])


def _dynamic(group: GroupRule, current: Sequence[GroupQuestion]) -> _Next:
    """Return the manager, which picks a speaker, and the member that it named, in turn."""
    if not current:
        return _Next([("picks", 0, group.manager)])
    last = current[-1]
    if last.part not in ("picks", "repicks"):
        number = last.number + 1
        return _Next([("picks", number, group.manager)]) if number < group.speeches_max else _Next()
    answer = last.text.strip()
    if last.outcome != "answered" or answer == DONE:
        return _Next()
    if answer in group.members:
        return _Next([("speaks", last.number, answer)])
    if last.part == "picks":
        return _Next([("repicks", last.number, group.manager)])
    return _Next(why=f"The round has ended: {last.to} was to name a member or say {DONE}, and answered: {answer[:200]}")


_RULES: Mapping[str, Callable[[GroupRule, Sequence[GroupQuestion]], _Next]] = {
    "round-robin": _round_robin,
    "supervisor": _supervisor,
    "dynamic": _dynamic,
}
RULES = tuple(_RULES)
"""Names of the rules."""


def _report(asked: GroupQuestion) -> str:
    """Return what is to be said of a question: the answer of a speaker, or that there is none; empty: nothing."""
    if asked.said or asked.outcome in ("", "cut"):
        return ""
    if asked.outcome == "answered":
        return f"{asked.to}: {asked.text}" if asked.part in ("speaks", "decides") else ""
    return _failure(asked)


def _failure(asked: GroupQuestion) -> str:
    if asked.outcome == "refused":
        return f"A question could not be asked: {asked.text}"
    if asked.outcome == "undeliverable":
        return f"{asked.to} could not be asked: {asked.text.removeprefix(NOT_DELIVERED)}"
    return asked.text


def _question(group: GroupRule, talk: GroupTalk, current: Sequence[GroupQuestion], part: Part, to: str) -> str:
    """Return the words of a question: what was said since the agent was asked last, and what it is to do."""
    task = ""
    if part == "decides":
        given = [f"{one.to}: {one.text}" if one.outcome == "answered" else _failure(one) for one in current]
        task = "\n".join(["The members of your group answered you:", *given, "Now say what you answer to all this."])
    elif part in ("picks", "repicks"):
        wrong = f"{current[-1].text.strip()[:200]!r} is none of the names. " if part == "repicks" else ""
        task = (
            f"{wrong}Who is to speak next? Answer with one of these names and nothing else, or with {DONE} if nobody "
            f"is to: {', '.join(group.members)}"
        )
    since = max((asked.turn for asked in talk.asked if asked.to == to and asked.arrived), default=0)
    heard = "\n".join(_line(line) for line in talk.lines if line.turn > since and line.name != to)
    if not heard and not task:
        heard = "Nothing was said since you spoke. Say what you want to add."
    return _shortened(heard, task)


def _line(line: TalkLine) -> str:
    return f"{line.name}: {line.text}" if line.name else line.text


def _shortened(heard: str, task: str) -> str:
    """Return both texts within the limit of a message: the beginning of what was said is left out."""
    room = TEXT_CHARS_MAX - len(task) - 2
    if len(task) > TEXT_CHARS_MAX // 2:
        task = task[-TEXT_CHARS_MAX // 2 :]
        room = TEXT_CHARS_MAX - len(task) - 2
    if len(heard) > room:
        note = f"[The first {len(heard) - room + 60} characters are left out.]\n"
        heard = note + heard[len(heard) - room + 60 :]
    return "\n\n".join(filter(None, [heard, task]))
