"""What the offline stand-in does about everything that waits for it: its triggers, in order, into one reply. Pure.

`Turn` is what it sees of a request, `Plan` is what it wants to do. It never repeats a call: a search of the
conversation is followed by one of the archive, then by an answer; a failed call is followed by words.
So every turn ends.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from . import offline_rules as rules
from .constants import PAUSE_MINUTES_MAX
from .offline_search import Search, best, told
from .offline_words import content, days, plain, sentences, short

STEPS_MAX = 3
"""Replies to one input, inclusive; the last one calls nothing that asks for another."""

USERS_MAX = 3
"""Messages of users served in one reply; older ones have waited since a failure."""

KEPT_CHARS_MAX = 600
"""Longest text kept when memory is under pressure."""

NOT_KNOWN = "I do not know"
_SEARCHES = ("conversation_search", "conversation_search_date", "archival_memory_search")
_EDITS = ("core_memory_append", "core_memory_replace")
_PRESSURE = re.compile(r"context window|memory pressure", re.IGNORECASE)
_USER_EVENT = re.compile(r"\buser\b|\bthey\b|\bliked\b|\breact", re.IGNORECASE)
_KEEP = re.compile(
    r"^(?:(?:please|can you|could you)\s+)?(?:keep this|keep in your archive|save this|store this"
    r"|archive(?: this| that)?)(?:\s*[:,-]\s*|\s+)(\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_PAUSE = re.compile(r"\bpause\b[^.?!]{0,60}?\bfor\s+(?:about\s+)?(\d{1,6}|an?|half an)\s+(min|hour)", re.IGNORECASE)
_FORGET = re.compile(r"^(?:please )?forget (?:that |about |the fact that )?(.+)", re.IGNORECASE | re.DOTALL)
_ABOUT_ME = re.compile(r"\bknow about me\b|\bremember about me\b|\bwho am i\b|\btell me about me\b", re.IGNORECASE)
_TIME = re.compile(r"\bwhat (?:time|day) is it\b|\bwhat(?:'s| is) (?:the time|today's date|the date)\b", re.IGNORECASE)
_SAID = re.compile(r"\b(?:say|said|talk|talked|tell you|told|mention|mentioned|discuss|discussed)\b", re.IGNORECASE)
_ARCHIVE = re.compile(r"\barchiv|\bdid you (?:keep|store|save)\b|\bask(?:ed)? you to keep\b", re.IGNORECASE)


class Event(msgspec.Struct):
    """One of the small JSON objects that wait at the end of a request."""

    type: str = ""
    message: str | None = None
    name: str | None = None
    time: str = ""
    reason: str = ""
    last_login: str = ""


class Outcome(msgspec.Struct):
    """A call of the last reply, and what came of it."""

    name: str
    arguments: dict[str, Any]
    ok: bool
    message: str


class Turn(msgspec.Struct):
    """Everything that the rules look at."""

    human: list[str] | None
    """The lines of the block `human`; None where there is no such block."""
    first: bool
    """Whether we have never replied, as far as we see."""
    steps: int
    """Replies since the last input of a user."""
    events: list[Event]
    """What waits, in order."""
    outcomes: list[Outcome]
    """The calls of the last reply."""
    asked: list[str]
    """What users asked last: a search finds the question too, which is no answer."""
    statements: Callable[[], list[str]]
    """What users said that is in view, in order."""


class Plan(msgspec.Struct):
    """One reply in the making."""

    thought: str = ""
    calls: list[tuple[str, dict[str, Any]]] = []
    says: list[str] = []

    def call(self, function: str, /, *, heartbeat: bool = False, **arguments: Any) -> None:
        """Call a function, once."""
        call = (function, {**arguments, "request_heartbeat": heartbeat})
        if call not in self.calls:
            self.calls.append(call)

    def say(self, text: str) -> None:
        """Say a sentence to the user, once."""
        if text not in self.says:
            self.says.append(text)

    def think(self, text: str) -> None:
        """The monologue, unless there is one already."""
        self.thought = self.thought or text


def plan(turn: Turn) -> Plan:
    """Serve everything that waits."""
    made = Plan()
    users = [event for event in turn.events if event.type == "user_message"]
    _heartbeats(turn, made)
    for event in turn.events:
        if event.type == "login":
            _login(turn, made, event, alone=not users)
        elif event.type == "system_alert":
            _alert(turn, made, event.message or "")
    for event in users[-USERS_MAX:]:
        _user(turn, made, event)
    made.think("Nothing needs to be done right now, so I rest.")
    return made


def _heartbeats(turn: Turn, made: Plan) -> None:
    reasons = [event.reason for event in turn.events if event.type == "heartbeat"]
    if any("call failed" in reason for reason in reasons):
        _failed(made, [outcome for outcome in turn.outcomes if not outcome.ok], kept=turn.steps < STEPS_MAX)
    if any("request_heartbeat" in reason for reason in reasons):
        _searched(turn, made, [o for o in turn.outcomes if o.ok and o.name in _SEARCHES])
    if reasons and not made.thought:
        made.think("A heartbeat with nothing urgent in it: I look over my memory and stay quiet.")


def _failed(made: Plan, outcomes: Sequence[Outcome], *, kept: bool) -> None:
    """Put a failure right where we can, else say it. A failed word to the user is not tried again."""
    made.think("Something that I tried did not work, so I deal with that first.")
    for outcome in outcomes:
        text = str(outcome.arguments.get("content") or outcome.arguments.get("new_content") or "")
        if kept and text and outcome.name in _EDITS and "limit" in outcome.message:
            made.call("archival_memory_insert", content=text)
            made.say("My core memory is full, so I keep that in my archival memory instead.")
        elif outcome.name != "send_message":
            made.say(f"Something failed: {outcome.name} said {short(outcome.message, 300)!r}.")


def _searched(turn: Turn, made: Plan, outcomes: Sequence[Outcome]) -> None:
    """Answer from what searches found; look into the archive where the conversation holds nothing."""
    if outcomes:
        made.think("The search is back, so I read what it found and answer.")
    searches = [Search.of(outcome.name, outcome.arguments, outcome.message) for outcome in outcomes]
    for query in dict.fromkeys(search.query for search in searches):
        found = [search for search in searches if search.query == query]
        hits = next((hits for search in found if (hits := best(search, turn.asked, NOT_KNOWN))), None)
        if hits:
            made.say(told(hits))
        elif any(search.name != "conversation_search" for search in found) or turn.steps >= STEPS_MAX:
            made.say(f"{NOT_KNOWN}: my memory holds nothing about {query}. You can tell me, and I will keep it.")
        else:
            made.call("archival_memory_search", heartbeat=True, query=query)


def _login(turn: Turn, made: Plan, event: Event, *, alone: bool) -> None:
    """Greet whoever logged in; `alone`: they have not said anything yet."""
    if alone:
        made.think("Somebody logged in, so I greet them.")
    text = rules.greeting(rules.known_name(turn.human or []), first=turn.first, ask=alone)
    if event.last_login and not event.last_login.startswith("Never"):
        text += f" You were last here on {event.last_login}."
    made.say(text)


def _alert(turn: Turn, made: Plan, text: str) -> None:
    if _PRESSURE.search(text):
        made.think("My context is getting full, so I put away what the user told me.")
        kept = _compact(turn.statements())
        if kept:
            made.call("archival_memory_insert", content=kept)
    elif _USER_EVENT.search(text):
        made.think("The system tells me of something that the user did.")
        made.say("I noticed that. Thank you!")
    else:
        made.think("The system told me something; I take note of it.")


def _compact(statements: Sequence[str]) -> str:
    """The last of the users' statements that fit, in order, once each."""
    kept: list[str] = []
    left = KEPT_CHARS_MAX - len(rules.SAID) - 2
    for text in dict.fromkeys(reversed(statements)):
        told_facts = [fact.value if fact.key == rules.SAID else fact.line for fact in rules.facts(text)]
        line = short("; ".join(told_facts) or text, 200)
        if rules.is_question(text) and not told_facts:
            continue
        if len(line) + 2 > left:
            break
        kept.append(line)
        left -= len(line) + 2
    return f"{rules.SAID}: {'; '.join(reversed(kept))}" if kept else ""


def _user(turn: Turn, made: Plan, event: Event) -> None:
    """Serve one message: a command, else what it tells, what it asks, or small talk."""
    text = plain(event.message or "")
    if _command(turn, made, text, event.message or ""):
        return
    facts = rules.facts(text)
    questions = [sentence for sentence in sentences(text) if rules.is_question(sentence)]
    lines = list(turn.human or [])
    if facts:
        _learn(turn, made, facts, lines)
    for question in questions[:USERS_MAX]:
        made.think("The user asks something, so I look for the answer in what I know.")
        _answer(made, question, lines, event.time)
    if not facts and not questions:
        made.think("No rule of mine finds a fact or a question here, so I keep the talk going.")
        _talk(turn, made, text, lines)


def _command(turn: Turn, made: Plan, text: str, whole: str) -> bool:
    """Whether `text` was an order to keep, pause or forget something, and was served."""
    if _KEEP.match(text):
        made.think("The user wants something kept, and my archival memory has room for it.")
        match = _KEEP.match(whole.strip()) or _KEEP.match(text)
        made.call("archival_memory_insert", content=match[1].strip() if match else text)
        made.say("I keep that in my archival memory.")
    elif match := _PAUSE.search(text):
        amount = {"half an": 0.5}.get(match[1].lower()) or (int(match[1]) if match[1].isdecimal() else 1)
        minutes = min(int(amount * (60 if match[2].lower() == "hour" else 1)), PAUSE_MINUTES_MAX)
        made.think("The user wants quiet for a while, so my timed heartbeats pause.")
        made.calls.append(("pause_heartbeats", {"minutes": minutes}))
        made.say(f"I pause my timed heartbeats for {minutes} minutes. You can still write to me.")
    elif match := _FORGET.match(text):
        _forget(turn, made, match[1])
    else:
        return False
    return True


def _forget(turn: Turn, made: Plan, text: str) -> None:
    made.think("The user wants something forgotten, so I look for it in core memory.")
    told_lines = {fact.line for fact in rules.facts(f"Remember that {text}")}
    recalled = {fact.line for fact in rules.recalled(text, turn.human or [])}
    lines = turn.human or []
    gone = [line for line in lines if line in told_lines] or [
        line for line in lines if {fact.line if fact.key else fact.value for fact in rules.read([line])} & recalled
    ]
    for line in gone:
        made.call("core_memory_remove", name="human", content=line)
    if gone:
        made.say("I have taken that out of my core memory. The log of what was said keeps it.")
    else:
        made.say("That is not in my core memory, so there is nothing to take out.")


def _learn(turn: Turn, made: Plan, facts: Sequence[rules.Fact], lines: list[str]) -> None:
    """Write what is new into core memory, and say so. `lines` becomes the block as it will be."""
    made.think("The user told me something about themselves, so I write it down.")
    fresh = [fact for fact in facts if fact.line not in lines]
    added: list[str] = []
    for fact in fresh:
        old = _old_line(fact, lines)
        if old is None:
            added.append(fact.line)
            lines.append(fact.line)
        else:
            new = f"{old.partition(':')[0]}: {fact.value}"
            made.call("core_memory_replace", name="human", old_content=old, new_content=new)
            lines[lines.index(old)] = new
    if added and turn.human is not None:
        made.call("core_memory_append", name="human", content="\n".join(added))
    elif added:
        made.call("archival_memory_insert", content="\n".join(added))
    made.say(_thanks(fresh, facts, introduce=turn.first and not any(rules.INTRODUCTION in said for said in made.says)))


def _old_line(fact: rules.Fact, lines: Sequence[str]) -> str | None:
    """The line whose place a fact takes: of the same key, or where a name is still unknown."""
    if not fact.single:
        return None
    keys = ("Name", "First name") if fact.key == "Name" else (fact.key,)
    return next((line for line in lines if line.partition(":")[0].strip() in keys), None)


def _thanks(fresh: Sequence[rules.Fact], facts: Sequence[rules.Fact], *, introduce: bool) -> str:
    if not fresh:
        return f"I know that already: {_listed(facts)}."
    name = next((fact.value for fact in fresh if fact.key == "Name"), None)
    others = [fact for fact in fresh if fact.key != "Name"]
    parts = [f"Nice to meet you, {name}." if name else ""]
    if introduce:
        parts.append(rules.INTRODUCTION)
    if others:
        parts.append(f"I noted that {_listed(others)}.")
    return " ".join(part for part in parts if part)


def _listed(facts: Sequence[rules.Fact]) -> str:
    told_facts = [fact.told if fact.key else f'"{fact.value}"' for fact in facts]
    return ", and ".join([", ".join(told_facts[:-1]), told_facts[-1]] if told_facts[1:] else told_facts)


def _answer(made: Plan, question: str, lines: Sequence[str], time: str) -> None:
    """Answer from what we are, from the block, or search for it."""
    span = days(question, time)
    words = " ".join(content(question))
    if rules.identity(question):
        made.say(f"{rules.INTRODUCTION} I keep what you tell me and look it up when you ask.")
    elif ready := rules.small_talk(question):
        made.say(ready)
    elif _TIME.search(question) and time:
        made.say(f"Your message came at {time}.")
    elif _ABOUT_ME.search(question):
        facts = rules.read(lines)
        made.say(f"This is what I know: {_listed(facts)}." if facts else "I know nothing about you yet. Tell me!")
    elif span:
        made.call("conversation_search_date", heartbeat=True, start_date=span[0], end_date=span[1])
    elif _ARCHIVE.search(question) and words:
        made.call("archival_memory_search", heartbeat=True, query=words)
    elif not _SAID.search(question) and rules.about_user(question) and (facts := rules.recalled(question, lines)):
        made.say(_sentence(_listed(facts)))
    elif words:
        made.call("conversation_search", heartbeat=True, query=words)
    else:
        made.say(rules.fallback(question))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _talk(turn: Turn, made: Plan, text: str, lines: Sequence[str]) -> None:
    if rules.identity(text):
        made.say(rules.INTRODUCTION)
    elif rules.is_greeting(text):
        made.say(rules.greeting(rules.known_name(lines), first=turn.first))
    else:
        made.say(rules.small_talk(text) or rules.fallback(text))
