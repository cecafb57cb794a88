"""Decide what the offline model does about all waiting inputs, in one reply. Pure, no state.

No call is repeated: a search of the conversation is followed by one of the archive, and that by words. A failed call is
not retried either. So every turn ends. Used by `offline_model.py`.
"""

from collections.abc import Sequence

import msgspec

from everlog.actors.models.offline import facts, other_agents, reminders
from everlog.actors.models.offline.completion import INTRODUCTION, Completion
from everlog.actors.models.offline.english import (
    any_case,
    asked_for,
    content,
    days,
    normalize,
    sentences,
    short,
    stems,
    without_days,
)  # fmt: skip
from everlog.actors.models.offline.hits import DATED, NOT_KNOWN, best, query_of
from everlog.actors.models.offline.request import SAID, CallResult, OfflineRequest, PendingInput
from everlog.actors.ports.agent_constants import PAUSE_MINUTES_MAX

USERS_MAX = 3
"""Maximum messages of users, and maximum questions in each, that one reply serves."""
KEPT_MAX = 5
"""Maximum statements that are stored in archival memory under memory pressure."""
HELP = (
    'I note what you tell me and look up what was said: try "My name is ...", "Remind me to ...", '
    '"Remind me in 10 minutes to ...", "What is on my to-do list?", "What did I say about ...?", "Keep this: ..." or '
    '"Forget that ...".'
)
NOT_UNDERSTOOD = "I do not understand that, for I am rule-based and not a language model. It is in my log all the same."

_SEARCHES = ("conversation_search", DATED, "archival_memory_search")
_PRESSURE = any_case(r"context window|memory pressure")
_KEEP = any_case(r"(?:please )?(?:(?:keep|save|store|archive) this|archive)(?:\s*[:,-]\s*|\s+)(\S.*)")
_PAUSE = any_case(r"\bpause\b[^.?!]{0,60}?\bfor (\d{1,6}|an?) (min|hour)")
_FORGET = any_case(r"(?:please )?(?:forget|cross off|remove|done(?: with|:))(?: that| about)? (.+)")
_OF_LIST = any_case(r"\b(?:from|off) (?:my|the) (?:to-?do )?list\b")
_THANKS = any_case(r"(?:thanks|thank you)\b")
_BYE = any_case(r"(?:bye|goodbye|good night|see you)\b")
_GREETING = any_case(r"(?:hi|hello|hey|good (?:morning|evening|afternoon))\b")
_WHO = any_case(r"\b(?:who|what) are you\b|\byour name\b|\bare you (?:an? )?(?:ai|bot|human|language model)\b")
_ABOUT_ME = any_case(r"\b(?:know|remember|tell me) (?:anything )?about (?:me|myself)\b|\bwho am i\b")
_TO_DO = any_case(r"\bto-?do\b|\bwhat (?:do|did|should) i (?:have|need|want) to do\b")
_SAID = any_case(r"\b(?:say|said|talk|talked|tell you|told|mention|mentioned|discuss|discussed)\b")
_ARCHIVE = any_case(r"\b(?:archiv\w+|documents?)\b|\byou (?:to )?keep\b")


def complete(request: OfflineRequest) -> Completion:
    """Return the reply to all waiting inputs."""
    made = Completion()
    users = [event for event in request.events if event.type in SAID and not other_agents.told_by(event)]
    reasons = " ".join(event.reason for event in request.events if event.type == "heartbeat")
    if "call failed" in reasons:
        _failed(made, [result for result in request.results if not result.ok])
    if "request_heartbeat" in reasons:
        _timers_listed(request, made)
        _searched(request, made, [result for result in request.results if result.ok and result.name in _SEARCHES])
    for event in request.events:
        if event.type == "approval" and event.message:
            made.say(event.message)
        elif event.type == "heartbeat" and (reminder := reminders.reminded(event.reason)):
            made.think("A timer of mine went off, so I remind the user.")
            made.say(reminder)
        elif told := other_agents.told_by(event):
            made.think("Another agent wrote to me, so I pass it on.")
            made.say(told)
        elif event.type == "login":
            made.say(greeting(request, ask=not users))
        elif event.type == "system_alert" and _PRESSURE.search(event.message or ""):
            made.think("My context is getting full, so I put away what the user told me.")
            facts_told = [text for text in request.statements() if not facts.has_no_statement(normalize(text))][
                -KEPT_MAX:
            ]
            if facts_told:
                kept = "; ".join(short(text, 200) for text in facts_told)
                made.call("archival_memory_insert", content=f"{facts.SAID}: {kept}")
    for event in users[-USERS_MAX:]:
        rest = _serve_timers(request, made, event)
        if rest is not None and not _serve_order(request, made, rest):
            _serve(request, made, rest)
    made.think("Nothing needs to be done right now, so I rest.")
    return made


def greeting(request: OfflineRequest, *, ask: bool) -> str:
    """Return a greeting. The first greeting introduces the stand-in, and asks for the user's name if it is unknown."""
    name = facts.name_in(request.human or [])
    hello = f"Hello, {name}!" if name else "Hello!"
    if not request.first:
        return f"{hello} It is good to hear from you."
    return f"{hello} {INTRODUCTION}" + (" What is your name?" if ask and not name else "")


def _failed(made: Completion, results: Sequence[CallResult]) -> None:
    """Store elsewhere what core memory has no room for, and report other failed calls.
    Failed messages are not reported.
    """
    made.think("Something that I tried did not work, so I deal with that first.")
    for result in results:
        text = result.arguments.get("content") or result.arguments.get("new_content")
        if text and result.name.startswith("core_memory_") and "limit" in result.text:
            made.call("archival_memory_insert", content=str(text))
            made.say("My core memory is full, so I keep that in my archival memory instead.")
        elif result.name != "send_message":
            made.say(f"Something failed: {result.name} said {short(result.text, 300)!r}.")


def _searched(request: OfflineRequest, made: Completion, searches: Sequence[CallResult]) -> None:
    """Answer from the results of searches. Search the archive if the conversation has no answer."""
    for search in searches:
        made.think("The search is back, so I read what it found and answer.")
        question = asked_for(without_days(" ".join(request.asked)))
        if quotes := best(search, request.asked):
            made.say(" ".join(quote.phrase for quote in quotes))
        elif search.name == DATED and content(question):
            made.call("conversation_search", heartbeat=True, query=question)
        elif search.name == "conversation_search":
            made.call("archival_memory_search", heartbeat=True, query=str(search.arguments.get("query") or ""))
        else:
            made.say(f"{NOT_KNOWN}: my memory holds nothing about {query_of(search)}. You can tell me, and I keep it.")


def _timers_listed(request: OfflineRequest, made: Completion) -> None:
    """Say which reminders there are, or cancel those that the user asked to cancel, once they were listed."""
    for result in request.results:
        if not (result.ok and result.name == "list_timers"):
            continue
        timers = reminders.listed(result.text)
        asked = " ".join(request.asked[-1:])
        if not timers:
            made.say("No reminders are set.")
        elif not reminders.cancels(asked):
            made.say("; ".join(f"{row['name']}: {row['due']}" for row in timers) + ".")
        elif names := reminders.to_cancel(asked, timers):
            for name in names:
                made.calls.append(("cancel_timer", {"name": name}))
            made.say(f"I cancel: {', '.join(names)}.")
        else:
            made.say(f"Which one? There are: {', '.join(row['name'] for row in timers)}.")


def _serve_timers(request: OfflineRequest, made: Completion, event: PendingInput) -> PendingInput | None:
    """Set the timers that a message asks for, or look at those there are. Return the message without these sentences;
    None if nothing is left.
    """
    parts = sentences(normalize(event.message or ""))
    served = [part for part in parts if _serve_timer(made, part, event.time)] if _can_set(request) else []
    if not served:
        return event
    rest = "\n".join(part for part in parts if part not in served)
    return msgspec.structs.replace(event, message=rest) if rest else None


def _can_set(request: OfflineRequest) -> bool:
    return "set_timer" in (request.functions or set())


def _serve_timer(made: Completion, sentence: str, now: str) -> bool:
    """Set the timer that a sentence asks for, or look at those there are. Return False if it asks for none."""
    if reminders.asks_for_list(sentence) or reminders.cancels(sentence):
        made.call("list_timers", heartbeat=True)
    elif reminder := reminders.reminder_in(sentence, now):
        made.calls.append(("set_timer", reminder.call))
        made.say(f"I remind you {reminder.spoken}: {reminder.what}.")
    else:
        return False
    made.think("The user wants to be reminded of something, and I have timers for it.")
    return True


def _serve_order(request: OfflineRequest, made: Completion, event: PendingInput) -> bool:
    """Serve a request to store, pause or forget something. Return False if the message is no such request."""
    text = normalize(event.message or "")
    if (orders := other_agents.orders_in(text)) and orders[0][0] in (request.functions or ()):
        made.calls += orders
        made.say(other_agents.said_of(orders))
    elif match := _KEEP.match((event.message or "").strip()):
        made.call("archival_memory_insert", content=match[1])
        made.say("I keep that in my archival memory.")
    elif match := _PAUSE.search(text):
        minutes = (int(match[1]) if match[1].isdecimal() else 1) * (60 if match[2].lower() == "hour" else 1)
        minutes = min(minutes, PAUSE_MINUTES_MAX)
        made.calls.append(("pause_heartbeats", {"minutes": minutes}))
        made.say(f"I pause my timed heartbeats for {minutes} minutes. You can still write to me.")
    elif match := _FORGET.match(text):
        wanted = stems(_OF_LIST.sub("", match[1]))
        gone = [line for line in request.human or [] if wanted and wanted <= stems(line)]
        for line in gone:
            made.call("core_memory_remove", name="human", content=line)
        taken = "I have taken that out of my core memory. The log of what was said keeps it."
        made.say(taken if gone else "That is not in my core memory, so there is nothing to take out.")
    else:
        return False
    made.think("The user wants something done, and I have a function for it.")
    return True


def _serve(request: OfflineRequest, made: Completion, event: PendingInput) -> None:
    """Serve one message: store its facts, answer its questions, or say that it was not understood."""
    text = normalize(event.message or "")
    lines = list(request.human or [])
    facts_told = facts.facts_in(text)
    questions = [sentence for sentence in sentences(text) if facts.is_question(sentence)]
    if facts_told:
        made.think("The user told me something about themselves, so I write it down.")
        _keep_facts(request, made, facts_told, lines)
    for question in questions[:USERS_MAX]:
        made.think("The user asks something, so I look for the answer in what I know.")
        _answer(made, question, lines, event.time)
    if facts_told or questions:
        return
    made.think("No rule of mine finds a fact or a question here.")
    if _THANKS.match(text):
        made.say("You are welcome.")
    elif _BYE.match(text):
        made.say("Goodbye. I keep what you told me.")
    elif not _GREETING.match(text):
        made.say(NOT_UNDERSTOOD)
    elif not made.says:
        made.say(greeting(request, ask=True))


def _keep_facts(
    request: OfflineRequest, made: Completion, facts_told: Sequence[facts.UserFact], lines: list[str]
) -> None:
    """Store new facts in core memory, and say so. `lines` is changed into the block as it will be."""
    known = {fact.phrase.casefold() for fact in facts.facts_of_lines(lines)}
    fresh = [fact for fact in facts_told if fact.phrase.casefold() not in known]
    added: list[str] = []
    for fact in fresh:
        old = facts.replaced(fact, lines + added)
        new = f"{old.partition(':')[0].strip()}: {fact.value}" if old else fact.line
        if old in added:
            added[added.index(old)] = new
        elif old:
            made.call("core_memory_replace", name="human", old_content=old, new_content=new)
            lines[lines.index(old)] = new
        else:
            added.append(new)
    if added and request.human is not None:
        made.call("core_memory_append", name="human", content="\n".join(added))
    elif added:
        made.call("archival_memory_insert", content="\n".join(added))
    lines += added
    for fact in fresh:
        if fact.key == facts.NAME:
            made.say(f"Nice to meet you, {fact.value}.")
    if request.first and INTRODUCTION not in " ".join(made.says):
        made.say(INTRODUCTION)
    if others := [fact for fact in fresh if fact.key != facts.NAME]:
        that = all(fact.phrase.startswith("you") for fact in others)
        made.say(f"I noted{' that' if that else ':'} {facts.join_facts(others)}.")
    elif not fresh:
        made.say(f"I know that already: {facts.join_facts(facts_told)}.")


def _answer(made: Completion, question: str, lines: Sequence[str], time: str) -> None:
    """Answer by introduction or from the block; else search: by day if days are named, the archive if it is named."""
    known = facts.facts_of_lines(lines)
    words = " ".join(content(question))
    in_archive = " ".join(content(_ARCHIVE.sub(" ", question))) if _ARCHIVE.search(question) else ""
    said = _SAID.search(question)
    found = facts.recalled(question, known) if not said and facts.about_user(question) else []
    if _WHO.search(question):
        made.say(f"{INTRODUCTION} I keep what you tell me in everlog's log, and look it up when you ask.")
    elif _ABOUT_ME.search(question):
        made.say(
            f"This is what I know: {facts.join_facts(known)}." if known else "I know nothing about you yet. Tell me!"
        )
    elif _TO_DO.search(question):
        to_do = "; ".join(fact.value for fact in known if fact.key == facts.TO_DO)
        made.say(f"On your to-do list: {to_do}." if to_do else "Your to-do list is empty.")
    elif span := days(question if words or not said else f"{question} today", time):
        made.call(DATED, heartbeat=True, start_date=span[0], end_date=span[1])
    elif in_archive:
        made.call("archival_memory_search", heartbeat=True, query=in_archive)
    elif found:
        facts_told = facts.join_facts(found)
        made.say(f"{facts_told[:1].upper()}{facts_told[1:].rstrip('.')}.")
    elif stems(question) == {"nam"}:
        made.say("I do not know your name yet. What is it?")
    elif words:
        made.call("conversation_search", heartbeat=True, query=asked_for(question))
    else:
        made.say(f"{INTRODUCTION} {HELP}")
