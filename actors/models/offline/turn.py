"""What the offline stand-in does about everything that waits for it: its triggers, in order, into one reply. Pure.

It never repeats a call: a search of the
conversation is followed by one of the archive, then by an answer; a failed call is followed by words.
So every turn ends.
"""

import re
from collections.abc import Sequence

from everlog.actors.models.offline import rules, talk
from everlog.actors.models.offline.plan import Event, Outcome, Plan, Turn
from everlog.actors.models.offline.search import DATED, Search, about, best, told
from everlog.actors.models.offline.words import Wording, content, days, plain, sentences, short
from everlog.actors.ports.constants import PAUSE_MINUTES_MAX

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
_PAUSE = Wording(r"\bpause\b[^.?!]{0,60}?\bfor\s+(?:about\s+)?(\d{1,6}|an?|half an)\s+(min|hour)", "pause")
_FORGET = re.compile(r"^(?:please )?forget (?:that |about |the fact that )?(.+)", re.IGNORECASE | re.DOTALL)
_ABOUT_ME = Wording(
    r"\b(?:know|remember|noted?|learned|told you|recall) (?:anything |all )?about (?:me|myself)\b|\bremember me\b"
    r"|\bwho am i\b|\btell me about (?:me|myself)\b",
    "about me", "about myself", "remember me", "who am i",
)  # fmt: skip
_NO_LONGER = re.compile(
    r"^(?:no,? )?(i (?:don't|do not|no longer) (?:live in|work at|work as|work for) .+"
    r"|i (?:don't|do not|no longer) .+ (?:any ?more|any longer)|i no longer .+)$",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"\b(?:don't|do not|no longer) |\s*\b(?:any ?more|any longer)\b", re.IGNORECASE)
_LATELY = re.compile(
    r"^what (?:did|have|had) (?:i|we) (?:just |been )?(?:say|said|tell you|told you|talk(?:ed|ing)? about"
    r"|discuss(?:ed)?)"
    r"(?: last| before| earlier| so far| just now| until now)?[\s?.]*$",
    re.IGNORECASE,
)
_TODO = Wording(r"\bto-?do\b|\bwhat (?:do|did|should) i (?:have|need|want) to do\b", "todo", "to-do", "to do")
_MY_NAME = Wording(r"^(?:\w+ )*?what'?s?(?: is)? my (?:first )?name\b|\bknow my name\b", "name")
_LIKE = re.compile(r"(^what(?:'?s| is| was| are| were)\b.*) like(?=\W*$)", re.IGNORECASE)
_OF_ARCHIVE = frozenset(["archive", "archives", "archival", "archived", "memory", "memories"])
_TIME = Wording(
    r"\bwhat (?:time|day) is it\b|\bwhat(?:'s| is) (?:the time|today's date|the date)\b", "is it", "the time", "date"
)
_SAID = Wording(
    r"\b(?:say|said|talk|talked|tell you|told|mention|mentioned|discuss|discussed)\b",
    "say", "said", "talk", "tell you", "told", "mention", "discuss",
)  # fmt: skip
_ARCHIVE = Wording(
    r"\barchiv|\bdid you (?:keep|store|save)\b|\bask(?:ed)? you to keep\b", "archiv", "did you", "you to keep"
)


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
    if turn.asked and _FORGET.match(plain(turn.asked[-1])):
        _delete(made, [hit.ref for search in searches for hit in about(search)])
        return
    for query in dict.fromkeys(search.query for search in searches):
        found = [search for search in searches if search.query == query]
        hits = next((hits for search in found if (hits := best(search, turn.asked, NOT_KNOWN))), None)
        if hits:
            made.say(told(hits))
        elif any(search.name != "conversation_search" for search in found) or turn.steps >= STEPS_MAX:
            what = f'"{query}"' if any(search.name != DATED for search in found) else query
            made.say(f"{NOT_KNOWN}: my memory holds nothing about {what}. You can tell me, and I will keep it.")
        else:
            made.call("archival_memory_search", heartbeat=True, query=query)


def _delete(made: Plan, memories: Sequence[str]) -> None:
    """Take memories out of the archive, and say so."""
    for memory_id in memories:
        made.call("archival_memory_delete", memory_id=memory_id)
    if memories:
        made.say("I have taken that out of my archival memory. The log of what was said keeps it.")
    else:
        made.say("That is in neither of my memories, so there is nothing to take out.")


def _login(turn: Turn, made: Plan, event: Event, *, alone: bool) -> None:
    """Greet whoever logged in; `alone`: they have not said anything yet."""
    if alone:
        made.think("Somebody logged in, so I greet them.")
    text = talk.greeting(rules.known_name(turn.human or []), first=turn.first, ask=alone)
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
        if not told_facts and _passing(text):
            continue
        if len(line) + 2 > left:
            break
        kept.append(line)
        left -= len(line) + 2
    return f"{rules.SAID}: {'; '.join(reversed(kept))}" if kept else ""


def _passing(text: str) -> bool:
    """Whether words without a fact are not worth keeping."""
    return rules.is_question(text) or talk.is_greeting(text) or talk.small_talk(text) is not None


def _user(turn: Turn, made: Plan, event: Event) -> None:
    """Serve one message: a command, else what it tells, what it asks, or small talk."""
    text = plain(event.message or "")
    if _command(turn, made, text, event.message or ""):
        return
    facts = rules.facts(text)
    questions = [sentence for sentence in sentences(text) if rules.is_question(sentence)]
    lines = list(turn.human or [])
    if facts:
        if feeling := talk.feeling(text):
            made.say(feeling)
        _learn(turn, made, facts, lines)
        if facts[0].key == "To do" and "remind" in text.lower():
            made.say("I cannot remind you by myself, but ask me what is on your to-do list.")
    for question in questions[:USERS_MAX]:
        made.think("The user asks something, so I look for the answer in what I know.")
        _answer(turn, made, question, lines, event.time)
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
    elif (match := _NO_LONGER.match(text.rstrip(".! "))) and (gone := _held(turn, _NEGATION.sub("", match[1]))):
        made.think("Something is no longer so, so I take it out.")
        _remove(made, gone)
        made.say("I have taken that out of my core memory. Tell me what is so now, if you like.")
    else:
        return False
    return True


def _held(turn: Turn, text: str) -> list[str]:
    """The lines of the block that say what `text` says."""
    told_lines = {fact.line for fact in rules.facts(f"Remember that {text}")}
    return [line for line in turn.human or [] if line in told_lines]


def _remove(made: Plan, lines: Sequence[str]) -> None:
    for line in lines:
        made.call("core_memory_remove", name="human", content=line)


def _forget(turn: Turn, made: Plan, text: str) -> None:
    made.think("The user wants something forgotten, so I look for it in core memory.")
    recalled = {fact.line for fact in rules.recalled(text, turn.human or [])}
    lines = turn.human or []
    gone = _held(turn, text) or [
        line for line in lines if {fact.line if fact.key else fact.value for fact in rules.read([line])} & recalled
    ]
    _remove(made, gone)
    words = " ".join(content(text))
    if gone:
        made.say("I have taken that out of my core memory. The log of what was said keeps it.")
    elif words:
        made.call("archival_memory_search", heartbeat=True, query=words)
    else:
        _delete(made, [])


def _learn(turn: Turn, made: Plan, facts: Sequence[rules.Fact], lines: list[str]) -> None:
    """Write what is new into core memory, and say so. `lines` becomes the block as it will be."""
    made.think("The user told me something about themselves, so I write it down.")
    fresh = [fact for fact in facts if not _knows(fact, lines)]
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
    made.say(_thanks(fresh, facts, introduce=turn.first and not any(talk.INTRODUCTION in said for said in made.says)))


def _keys(fact: rules.Fact) -> tuple[str, ...]:
    return ("Name", "First name") if fact.key == "Name" else (fact.key,)


def _knows(fact: rules.Fact, lines: Sequence[str]) -> bool:
    """Whether the block says so already, under any key for it; a single value is the last one that it has."""
    values = [old.value.casefold() for old in rules.read(lines) if old.key in _keys(fact)]
    return fact.value.casefold() in (values[-1:] if fact.single else values)


def _old_line(fact: rules.Fact, lines: Sequence[str]) -> str | None:
    """The line whose place a fact takes: the last of the same key, or where the value is still unknown."""
    if not fact.single:
        return None
    mine = [line for line in lines if line.partition(":")[0].strip() in _keys(fact)]
    known = [line for line in mine if rules.read([line])]
    return next(reversed(known or mine), None)


def _thanks(fresh: Sequence[rules.Fact], facts: Sequence[rules.Fact], *, introduce: bool) -> str:
    if not fresh:
        return f"I know that already: {_listed(facts)}."
    name = next((fact.value for fact in fresh if fact.key == "Name"), None)
    others = [fact for fact in fresh if fact.key != "Name"]
    parts = [f"Nice to meet you, {name}." if name else ""]
    if introduce:
        parts.append(talk.INTRODUCTION)
    if others:
        clauses = all(fact.key != rules.SAID or fact.told.startswith("you") for fact in others)
        clauses = clauses and not any(fact.key == rules.SAID and fact.told.startswith("your ") for fact in others)
        parts.append(f"I noted{' that' if clauses else ':'} {_listed(others)}.")
    return " ".join(part for part in parts if part)


def _listed(facts: Sequence[rules.Fact]) -> str:
    told_facts = [fact.told if fact.key else f'"{fact.value}"' for fact in facts]
    return ", and ".join([", ".join(told_facts[:-1]), told_facts[-1]] if told_facts[1:] else told_facts)


def _answer(turn: Turn, made: Plan, question: str, lines: Sequence[str], time: str) -> None:
    """Answer from what we are, from the block, or search for it."""
    if talk.identity(question):
        made.say(f"{talk.INTRODUCTION} I keep what you tell me in everlog's log, and look it up when you ask.")
    elif ready := talk.small_talk(question):
        made.say(ready)
    elif _TIME.search(question) and time:
        made.say(f"Your message came at {time}.")
    elif _ABOUT_ME.search(question):
        known = "; ".join(fact.told if fact.key else f'"{fact.value}"' for fact in rules.read(lines))
        made.say(f"This is what I know: {known}." if known else "I know nothing about you yet. Tell me!")
    elif _TODO.search(question) and (facts := [fact for fact in rules.read(lines) if fact.key == "To do"]):
        made.say(_sentence(_listed(facts)))
    elif _MY_NAME.search(question) and not rules.known_name(lines) and not rules.recalled(question, lines):
        made.say("I do not know your name yet. What is it?")
    elif ready := talk.beyond(question):
        made.say(ready)
    elif _LATELY.match(question):
        made.say(_lately(turn, 1 if " i " in question.lower() else 3))
    else:
        _look_up(made, question, lines, time)


def _look_up(made: Plan, question: str, lines: Sequence[str], time: str) -> None:
    """Answer from the block, or search: days by day, the archive where it is named, else the conversation."""
    words = " ".join(content(_LIKE.sub(r"\1", question)))
    kept = " ".join(word for word in words.split() if word not in _OF_ARCHIVE)
    if span := days(question, time):
        made.call("conversation_search_date", heartbeat=True, start_date=span[0], end_date=span[1])
    elif _ARCHIVE.search(question) and kept:
        made.call("archival_memory_search", heartbeat=True, query=kept)
    elif _ARCHIVE.search(question):
        made.say('Tell me what to look for, like "search your archive for wifi".')
    elif not _SAID.search(question) and rules.about_user(question) and (facts := rules.recalled(question, lines)):
        made.say(_sentence(_listed(facts)))
    elif words:
        made.call("conversation_search", heartbeat=True, query=words)
    else:
        made.say(talk.fallback(question))


def _lately(turn: Turn, count: int) -> str:
    """The last `count` things that the user told, before what they ask now."""
    before = [text for text in turn.statements()[:-1] if not _passing(plain(text))]
    if not before:
        return "You have not told me anything yet."
    return "You said: " + ", then ".join(f'"{short(text, 100)}"' for text in before[-count:]) + "."


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _talk(turn: Turn, made: Plan, text: str, lines: Sequence[str]) -> None:
    name = rules.known_name(lines)
    small = talk.small_talk(text)
    if talk.identity(text):
        made.say(talk.INTRODUCTION)
    elif small is None and talk.is_greeting(text):
        if not any(said.startswith("Hello") for said in made.says):
            made.say(talk.greeting(name, first=turn.first))
        elif not name:
            made.say("What is your name?")
    else:
        made.say(small or talk.beyond(text) or talk.feeling(text) or talk.fallback(text))
