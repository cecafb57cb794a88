"""What a newcomer says to the offline stand-in, first or after an import: it answers what was asked, and reads well."""

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

import pytest

from everlog.actors.agent.setup import Settings
from everlog.actors.agent.system import System
from everlog.actors.models.offline import reply
from everlog.events import MessageSent, Record, UserMessage
from everlog.store import MemoryStore
from tests.support.models.offline_chat import SPOKEN, Chat, calls, found, names, request, result, said, user

HOUR = 3_600_000_000
PAST = 1_690_000_000_000_000


def at(text: str, time: str, name: str | None = None) -> Chat:
    event = {"type": "user_message", "message": text, "time": time} | ({"name": name} if name else {})
    return {"role": "user", "content": json.dumps(event)}


def edit(text: str, human: str = "Note: none") -> str:
    """The line that core memory gets."""
    return next((str(a.get("content") or a.get("new_content")) for n, a in calls(request(user(text), human=human))
                 if n.startswith("core_")), "")  # fmt: skip


def answer(text: str, human: str = "Note: none") -> str:
    return said(request(user(text), human=human))


def talk(lines: Sequence[str], before: Sequence[UserMessage | MessageSent] = ()) -> list[list[tuple[str, Any]]]:
    """The calls that each line leads to, in an agent of its own."""
    records: list[Record] = []

    async def run() -> None:
        system = System(MemoryStore())
        async with system.agent("sam", Settings(), listen=records.extend) as agent:
            if before:
                times = [PAST + number * HOUR // 60 for number in range(len(before))]
                await agent.commit(before, turn=agent.turn, step=0, said_at=times)
            for line in lines:
                await agent.receive(UserMessage(text=line))
                await agent.run()

    asyncio.run(run())
    turns: list[list[tuple[str, Any]]] = []
    for record in records:
        if record.type == "user_message" and "imported" not in record.payload:
            turns.append([])
        elif record.type == "model_reply" and turns:
            made = json.loads(record.payload)
            turns[-1] += [(call["name"], json.loads(call["arguments"])) for call in made.get("calls", [])]
    return turns


def spoken(turn: Sequence[tuple[str, Any]]) -> str:
    return " ".join(arguments["message"] for name, arguments in turn if name == "send_message")


IMPORTED = (
    UserMessage(text="Hi Mel, I love pottery", name="Caroline", imported=True),
    MessageSent(text="Hello Caroline", name="Melanie", imported=True),
    UserMessage(text="My cat is called Tom. What is your dog called?", name="Caroline", imported=True),
    UserMessage(text="We can really accept who we are", name="Caroline", imported=True),
)


def test_the_tail_of_an_import_is_no_input() -> None:
    """After an import that ends with a user's lines, only what is asked now is answered."""
    hello, cat = talk(["hello", "What is my cat called?"], IMPORTED)
    assert [name for name, _ in hello] == ["send_message"]
    assert "accept" not in spoken(hello)
    assert "cat" not in spoken(hello)
    assert "Tom" in spoken(cat)


@pytest.mark.parametrize(("earlier", "served"), [
    (at("I sail", "2023-05-20 09:58:00 AM UTC+0000"), True),
    (at("I sail", "2023-05-20 11:58:00 AM CEST+0200"), True),
    (at("I sail", "2023-05-20 09:49:00 AM UTC+0000"), False),
    (at("I sail", "2023-05-20 10:30:00 AM UTC+0000"), False),
    (at("I sail", "2022-05-20 10:00:00 AM UTC+0000"), False),
    (at("I sail", "2023-05-20 09:59:00 AM UTC+0000", "Caroline"), False),
])  # fmt: skip
def test_what_waits_is_near_the_newest_in_time(earlier: Chat, served: bool) -> None:
    """An earlier message is served too where it came in the ten minutes before, from the same speaker."""
    body = request(earlier, at("I live in Oslo", "2023-05-20 10:00:00 AM UTC+0000"))
    assert ("sail" in said(body)) is served
    assert "Oslo" in said(body)


def test_an_import_before_a_timer_is_left_alone() -> None:
    """A heartbeat after imported lines is not taken for a question of theirs."""
    beat = {"type": "heartbeat", "reason": "A timer went off", "time": "2023-05-20 10:00:00 AM UTC+0000"}
    body = request(at("I sail", "2022-05-20 10:00:00 AM UTC+0000"), {"role": "user", "content": json.dumps(beat)})
    assert calls(body) == []


@pytest.mark.parametrize(("text", "line"), [
    ("My wife's birthday is 3 May", "Wife's birthday: 3 May"),
    ("my wife's a doctor", "Wife: a doctor"),
    ("my sister's wedding was lovely", "The user said: my sister's wedding was lovely"),
    ("I moved to Oslo last year", "Lives in: Oslo"),
    ("I've lived a lot. I live in Oslo now", "The user said: I've lived a lot\nLives in: Oslo"),
    ("I work at Acme since 2019", "Works at: Acme"),
    ("my favourite colour is blue, no wait, green", "Favourite colour: green"),
    ("my favourite colour is blue. No wait, green!", "Favourite colour: green"),
    ("I live in Oslo, I mean Bergen", "Lives in: Bergen"),
    ("My name is Chad, no sorry, Charles", "Name: Charles"),
    ("my phone number is 555 1234", "Phone number: 555 1234"),
    ("my kids are called Ann and Bob", "Kids' names: Ann and Bob"),
    ("im Chad", "Name: Chad"),
    ("remind me to call mum tomorrow", "To do: call mum tomorrow"),
    ("remember to buy milk", "To do: buy milk"),
    ("I love you", ""),
    ("I feel sad today", ""),
])  # fmt: skip
def test_what_was_told_is_noted_as_it_was_meant(text: str, line: str) -> None:
    """Possessives, corrections, times and plurals end in one sensible line."""
    assert edit(text) == line


@pytest.mark.parametrize(("text", "line", "answered"), [
    ("when is my wife's birthday?", "Wife's birthday: 3 May", "Your wife's birthday is 3 May."),
    ("what is my phone number?", "Phone number: 555 1234", "Your phone number is 555 1234."),
    ("whats my phone number", "Phone number: 555 1234", "Your phone number is 555 1234."),
    ("what are my kids called?", "Kids' names: Ann and Bob\nThe user said: I have two kids",
     "Your kids' names are Ann and Bob."),
    ("How old am I?", "Likes: old maps\nAge: 41", "You are 41 years old."),
    ("where do I live?", "Lives in: Oslo with my wife", "You live in Oslo with your wife."),
    ("do you remember my dog's name?", "Dog's name: Rex", "Your dog's name is Rex."),
    ("list everything you know about me", "Name: Chad\nLikes: tea",
     "This is what I know: your name is Chad; you like tea."),
    ("what is on my to-do list?", "To do: buy milk", "You want to buy milk."),
    ("what is my name?", "First name: unknown", "I do not know your name yet. What is it?"),
])  # fmt: skip
def test_the_block_answers_in_good_english(text: str, line: str, answered: str) -> None:
    """What the block holds is told in one pleasant sentence."""
    assert answer(text, line) == answered


@pytest.mark.parametrize("human", ["First name: Chad", "Name: Chad", "First name: unknown\nName: Chad"])
def test_a_name_that_is_known_is_not_written_again(human: str) -> None:
    """Under either key, and in any case of letters, the name is known already."""
    for text in ("my name is Chad", "my name is chad"):
        body = request(user(text), human=human)
        assert names(body) == ["send_message"]
        assert said(body) == "I know that already: your name is Chad."


def test_a_new_name_takes_the_place_of_the_known_one() -> None:
    """Where one line is unknown and another holds the name, the name is what changes."""
    body = request(user("call me Al"), human="First name: unknown\nName: Chad")
    assert calls(body)[0][1]["old_content"] == "Name: Chad"


def test_a_favourite_that_changes_is_replaced() -> None:
    """There is one favourite colour at a time."""
    body = request(user("my favourite colour is green"), human="Favourite colour: blue")
    assert names(body) == ["core_memory_replace", "send_message"]


def test_what_is_no_longer_so_is_taken_out() -> None:
    """A home that was left is removed."""
    body = request(user("I don't live in Oslo any more"), human="Lives in: Oslo")
    assert calls(body)[0][1]["content"] == "Lives in: Oslo"
    assert names(body) == ["core_memory_remove", "send_message"]


def test_a_search_of_the_archive_is_for_what_was_named() -> None:
    """The word archive is no part of the query."""
    body = request(user("search your archive for wifi"))
    assert calls(body) == [("archival_memory_search", {"query": "wifi", "request_heartbeat": True})]


def test_what_has_too_little_to_do_with_the_question_is_no_answer() -> None:
    """One word of four, or a question that shares one word, is not quoted."""
    question = user("When is the grand opening of the harbour museum?")
    search = {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "type": "function", "function": {
        "name": "archival_memory_search", "arguments": '{"query":"grand opening harbour museum"}'}}]}  # fmt: skip
    hits = found("timestamp: 2023-05-08 01:56:00 PM UTC+0000, user - That was a grand dinner")
    beat = {"type": "heartbeat", "reason": "request_heartbeat=true", "time": ""}
    body = request(question, search, result(hits, "c"), {"role": "user", "content": json.dumps(beat)})
    assert said(body).startswith("I do not know")


UNKNOWN = ["What is the capital of France?", "what is zorb? what is zorb? what is quux?", "when did I see the comet?",
           "who is my dentist?", "search your archive for comets", "where are my keys and who has them?"]  # fmt: skip


def test_unknown_questions_end_in_honesty_without_a_search_twice() -> None:
    """Three steps at most, no call twice, and the last word is that it does not know."""
    for question, turn in zip(UNKNOWN, talk(UNKNOWN), strict=True):
        searches = [(name, arguments["query"]) for name, arguments in turn if name.endswith("_search")]
        assert len(set(searches)) == len(searches), question
        assert spoken(turn).count("I do not know") >= 1, question
        assert "send_message" in [name for name, _ in turn][: len(searches) + 1], question


CHAT = [
    ("hello", "What is your name?"),
    ("how are you?", "How are you?"),
    ("I'm good, thanks", "Good to hear"),
    ("tell me about yourself", "rule-based"),
    ("what can you do?", "keep this:"),
    ("can you help me?", "keep this:"),
    ("what is my name?", "I do not know your name yet"),
    ("I prefer tea over coffee", "you prefer tea"),
    ("do I prefer tea or coffee?", "You prefer tea over coffee."),
    ("What's the weather like?", "I do not know"),
    ("can you write me a poem?", "not a language model"),
    ("2+2", "not a language model"),
    ("do you like jazz?", "of my own"),
    ("how old are you?", "of my own"),
    ("tell me a joke", "walks into a bar"),
    ("tell me another joke", "only one"),
    ("haha that was funny", "glad"),
    ("I love you", "kind"),
    ("you are great", "kind"),
    ("you are stupid", "sorry"),
    ("that's wrong", "what is right"),
    ("I feel sad today", "sorry to hear"),
    ("my mother died last week", "sorry to hear"),
    ("what did I just say?", "my mother died last week"),
    ("what have we talked about?", "my mother died last week"),
    ("don't forget my dentist appointment on Friday", "I noted: your dentist appointment on Friday."),
    ("when is my dentist appointment?", "Your dentist appointment on Friday."),
    ("what is everlog?", "log"),
    ("do you remember me?", "This is what I know"),
    ("ok", "All right."),
    ("thanks a lot!", "You are welcome."),
    ("nice to meet you", "too"),
    ("bye!", "Goodbye"),
]


def test_a_first_chat_reads_well() -> None:
    """Thirty lines of somebody who is new here: each answer is to the point, short, and there once."""
    for (line, expected), turn in zip(CHAT, talk([line for line, _ in CHAT]), strict=True):
        assert expected.lower() in spoken(turn).lower(), (line, spoken(turn))
        assert len(spoken(turn)) < 400, line
        assert spoken(turn).count("I am everlog's") <= 1, line


def test_forty_kilobytes_take_well_under_a_millisecond() -> None:
    """The best of many tries; the bound leaves room for a slow machine."""
    body = request(*[user("I sailed far away " * 12)] * 130, *SPOKEN, user("what is my phone number?"),
                   human="Phone number: 555 1234")  # fmt: skip
    assert len(body) > 38_000
    taken = []
    for _ in range(50):
        started = time.perf_counter()
        reply(body)
        taken.append(time.perf_counter() - started)
    assert min(taken) < 0.001
