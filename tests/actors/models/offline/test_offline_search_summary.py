"""The offline model searches, handles system events, and writes summaries."""

import json

import pytest

from everlog.actors.models.offline.extractive_summary import summary
from everlog.actors.prompt import presets
from everlog.actors.prompt.message_format import PRESSURE_WARNING
from everlog.events import BadInput, MessageSent, UserMessage
from tests.support.models.offline_requests import (
    AT,
    BLOCK,
    FAILED,
    REQUESTED,
    alert,
    beat,
    called,
    calls,
    found,
    names,
    request,
    result,
    said,
    spoken,
    talk,
    typed,
    user,
)


def test_other_questions_are_searched_in_the_conversation() -> None:
    """The query is the question, without words about asking and saying, and a heartbeat is requested."""
    asked = request(user("When did Caroline go to the support group?"))
    expected = {"query": "When did Caroline go to the support group", "request_heartbeat": True}
    assert calls(asked) == [("conversation_search", expected)]
    ((name, arguments),) = calls(request(user("What did I say about sailing?"), human=BLOCK))
    assert (name, arguments["query"]) == ("conversation_search", "What sailing")


QUESTION = user("What is the name of my boat?")
SEARCH = called("conversation_search", query="boat", request_heartbeat=True)


def test_the_best_hit_is_quoted_with_day_and_speaker() -> None:
    """Questions are not quoted as answers; the quote has day, speaker and text."""
    hits = found(
        "timestamp: 2023-05-20 10:00:00 AM UTC+0000, user - What is the name of my boat?",
        "timestamp: 2023-05-09 10:00:00 AM UTC+0000, user - Should I paint the boat?",
        'timestamp: 2023-05-08 01:56:00 PM UTC+0000, user - The boat is called "Ida", she is blue',
    )
    body = request(QUESTION, SEARCH, result(hits), beat(REQUESTED))
    assert names(body) == ["send_message"]
    assert said(body) == 'On 2023-05-08 you said: "The boat is called "Ida", she is blue"'


def test_a_result_that_is_shown_cut_is_still_read() -> None:
    """Complete entries of a truncated list of results are used."""
    first = "timestamp: 2023-05-08 01:56:00 PM UTC+0000, Ann - The boat is Ida"
    hits = found(first, "timestamp: 2023-05-09 ...")
    body = request(QUESTION, SEARCH, result(hits[:-8] + " [... 8 more characters"), beat(REQUESTED))
    assert "On 2023-05-08 Ann said" in said(body)


def test_no_hit_leads_to_the_archive_and_then_to_honesty() -> None:
    """Two searches, of conversation and archive, ask for a heartbeat; then the reply is "I do not know"."""
    one = (QUESTION, SEARCH, result("No results found."), beat(REQUESTED))
    assert calls(request(*one)) == [("archival_memory_search", {"query": "boat", "request_heartbeat": True})]
    two = (*one, called("archival_memory_search", query="boat"), result("No results found."), beat(REQUESTED))
    assert names(request(*two)) == ["send_message"]
    assert "I do not know" in said(request(*two))
    kept = found("timestamp: 2023-05-01 01:00:00 PM UTC+0000, memory: boat papers are in the blue box")
    three = (*one, called("archival_memory_search", query="boat"), result(kept), beat(REQUESTED))
    assert 'On 2023-05-01 I kept: "boat papers' in said(request(*three))


def test_a_memory_is_read_with_any_description() -> None:
    """Id, tags, source and part before the text of a memory are not quoted."""
    told = (
        "id: 4711, part 2 of 3, tags: a, memory: b, source: blue, document: box.txt, memory: boat papers, all of them"
    )
    kept = found(f"timestamp: 2023-05-01 01:00:00 PM UTC+0000, {told.replace('memory: b, ', 'b, ')}")
    one = (QUESTION, SEARCH, result("No results found."), beat(REQUESTED))
    body = request(*one, called("archival_memory_search", query="boat"), result(kept), beat(REQUESTED))
    assert 'On 2023-05-01 I kept: "boat papers, all of them"' in said(body)


@pytest.mark.parametrize(("question", "first", "last"), [
    ("what did we say on 2023-05-08?", "2023-05-08", "2023-05-08"),
    ("What did we talk about between 2023-05-08 and 2023-05-01?", "2023-05-01", "2023-05-08"),
    ("What did we talk about yesterday?", "2023-05-19", "2023-05-19"),
    ("What did we talk about last week?", "2023-05-13", "2023-05-20"),
    ("What did we talk about?", "2023-05-20", "2023-05-20"),
])  # fmt: skip
def test_questions_with_days_are_searched_by_day(question: str, first: str, last: str) -> None:
    """Days in a question become the range of the search, in order."""
    assert calls(request(user(question))) == [
        ("conversation_search_date", {"start_date": first, "end_date": last, "request_heartbeat": True})
    ]


def test_a_day_that_is_none_is_not_searched_by_day() -> None:
    """A text such as 2023-13-45 is not a day and is searched as words."""
    assert names(request(user("What happened on 2023-13-45?"))) == ["conversation_search"]


def test_a_search_by_day_is_answered() -> None:
    """The first results are quoted; an empty result is reported."""
    asked = user("what did we say on 2023-05-08?")
    search = called("conversation_search_date", start_date="2023-05-08", end_date="2023-05-08")
    stamp = "timestamp: 2023-05-08 01:00:00 PM UTC+0000"
    hits = found(f"{stamp}, user - Hello", f"{stamp}, user - I sail", f"{stamp}, assistant - Nice")
    assert said(request(asked, search, result(hits), beat(REQUESTED))) == 'On 2023-05-08 you said: "I sail"'
    assert "nothing about 2023-05-08" in said(request(asked, search, result("No results found."), beat(REQUESTED)))


def test_keep_and_pause() -> None:
    """Texts are stored unchanged in archival memory, and pauses are limited to the maximum."""
    kept = calls(request(user("Keep this: the tide turns at six.\nAnd at noon.")))
    assert kept[0][1]["content"] == "the tide turns at six.\nAnd at noon."
    assert calls(request(user("pause for 30 minutes")))[0] == ("pause_heartbeats", {"minutes": 30})
    assert calls(request(user("Please pause your heartbeats for 9 hours")))[0][1] == {"minutes": 360}
    assert calls(request(user("pause for an hour")))[0][1] == {"minutes": 60}


def test_a_login_is_greeted() -> None:
    """A user who logs in is greeted by name."""
    login = {"type": "login", "last_login": "2023-05-01 01:00:00 PM UTC+0000", "time": AT}
    assert "Hello, Chad!" in said(request({"role": "user", "content": json.dumps(login)}, human="Name: Chad"))


def test_quiet_events_are_only_thought_about() -> None:
    """Timers, manual heartbeats and system messages give a monologue and no call."""
    for event in (beat("A timer went off (daily)"), beat("Someone asked for this heartbeat by hand"), alert("disk ok")):
        answer = typed(request(event))
        assert answer.text
        assert answer.calls == []


def test_memory_pressure_keeps_what_the_user_said() -> None:
    """The last five statements are stored in archival memory, each cut to 200 characters, without a message."""
    statements = [user(f"I sailed to island number {n} in the year {1900 + n}") for n in range(40)]
    body = request(*statements, called("send_message", "c9"), result("None", "c9"), alert(PRESSURE_WARNING))
    ((name, arguments),) = calls(body)
    assert name == "archival_memory_insert"
    assert len(arguments["content"]) <= 1100
    assert "island number 39" in arguments["content"]


def test_several_triggers_are_served_in_one_reply() -> None:
    """Memory pressure, a search result and a new message are handled in one reply."""
    hits = found("timestamp: 2023-05-08 01:56:00 PM UTC+0000, user - The boat is Ida")
    new = user("I live in Oslo")
    body = request(QUESTION, SEARCH, result(hits), alert(PRESSURE_WARNING), beat(REQUESTED), new)
    assert names(body) == ["archival_memory_insert", "core_memory_append", "send_message"]
    assert "The boat is Ida" in said(body)
    assert "you live in Oslo" in said(body)


def test_a_full_block_moves_the_fact_to_the_archive() -> None:
    """A fact that does not fit in core memory is stored in archival memory, and the reply says so."""
    failed = result("Error calling function core_memory_append: Edit failed: Exceeds 10 character limit", ok=False)
    append = called("core_memory_append", name="human", content="Lives in: Oslo")
    body = request(user("I live in Oslo"), append, failed, beat(FAILED))
    assert calls(body)[0] == ("archival_memory_insert", {"content": "Lives in: Oslo", "request_heartbeat": False})
    assert names(body)[1:] == ["send_message"]


def test_other_failures_are_reported_and_not_repeated() -> None:
    """The reply names a failed function; a failed message is not sent again."""
    body = request(user("q?"), called("weather"), result("No function named weather", ok=False), beat(FAILED))
    assert names(body) == ["send_message"]
    assert "weather" in said(body)
    body = request(user("q?"), called("send_message"), result("wrong arguments", ok=False), beat(FAILED))
    assert names(body) == []


@pytest.mark.parametrize("text", ["", " ", "?", "\n\n", "((((", "你叫什么名字？", "\x00\u2028", "I " * 5000,
                                  " " * 9000, '"}]', "é" * 10_000, "forget ", "keep this:",
                                  "pause for 999999 hours", "my is is"])  # fmt: skip
def test_any_text_gets_an_answer(text: str) -> None:
    """Every text gets an answer, as a first or a later message, and none raises an error."""
    for fresh in (True, False):
        assert names(request(user(text), fresh=fresh))


def test_messages_of_other_programs_are_answered() -> None:
    """A request of another program, or an empty one, is answered too."""
    assert names(request({"role": "user", "content": "hi"})) == ["send_message"]
    assert typed(b'{"messages":[]}').text
    assert typed(b'{"messages":[{"role":"user","content":null}]}').text


TRANSCRIPT = """Summary so far: My name is Sam. On 2023-05-01 the user said: I live in Oslo.
2023-05-08 01:56:00 PM UTC+0000 | user: My dog Rex was born in 2019. The rain fell.
It is 12 degrees.
2023-05-08 01:56:01 PM UTC+0000 | assistant (thinking): He has a dog.
2023-05-08 01:56:01 PM UTC+0000 | assistant called send_message {"message":"Nice"}
2023-05-08 01:56:02 PM UTC+0000 | assistant: Nice."""


@pytest.mark.parametrize("words", [1, 5, 12, 40, 100])
def test_a_summary_has_at_most_the_requested_words(words: int) -> None:
    """A request for a summary gets text of at most the requested number of words, and no call."""
    system = f"Write at most {words} words of plain text, and nothing else."
    messages = [{"role": "system", "content": system}, {"role": "user", "content": TRANSCRIPT}]
    answer = typed(json.dumps({"model": "offline", "messages": messages}).encode())
    assert answer.calls == []
    assert 1 <= len(answer.text.split()) <= words


def test_a_summary_keeps_the_earlier_one_first_and_then_facts() -> None:
    """The earlier summary comes first, then the messages; thoughts and calls are left out."""
    text = summary(TRANSCRIPT, 60)
    assert text.startswith("My name is Sam.")
    assert "On 2023-05-08 the user said: My dog Rex was born in 2019." in text
    assert "He has a dog" not in text
    assert "send_message" not in text
    assert "born in 2019" in summary(f"Summary so far: {text}", 60)


IMPORTED = (
    UserMessage(text="Hi Mel, I love pottery", name="Caroline", imported=True),
    MessageSent(text="Hello Caroline", name="Melanie", imported=True),
    UserMessage(text="My cat is called Tom. What is your dog called?", name="Caroline", imported=True),
    UserMessage(text="We can really accept who we are", name="Caroline", imported=True),
)


def test_the_tail_of_an_import_is_no_input() -> None:
    """After an import that ends with a user's lines, only the new message is answered."""
    hello, cat = talk(["hello", "What is my cat called?"], IMPORTED)
    assert [name for name, _ in hello] == ["send_message"]
    assert "accept" not in spoken(hello)
    assert "cat" not in spoken(hello)
    assert "Tom" in spoken(cat)


@pytest.mark.parametrize(("day", "name", "served"), [
    ("2023-05-20", None, True), ("2022-05-20", None, False), ("2023-05-20", "Caroline", False),
])  # fmt: skip
def test_an_earlier_message_is_answered_if_day_and_speaker_match(day: str, name: str | None, served: bool) -> None:
    """An earlier unanswered message is answered too if it has the newest message's day and speaker."""
    event = {"type": "user_message", "message": "I sail", "time": f"{day} 09:00:00 AM UTC+0000", "name": name}
    body = request({"role": "user", "content": json.dumps(event)}, user("I live in Oslo"))
    assert ("sail" in said(body)) is served
    assert "Oslo" in said(body)
    daily = beat("A timer went off (daily)")
    assert bool(calls(request({"role": "user", "content": json.dumps(event)}, daily))) is (day == AT[:10])


def test_presets_are_package_data() -> None:
    """Every preset can be read, and an unknown name is refused with the list of names."""
    assert presets.names("persona") == ["everlog", "plain", "sam"]
    assert presets.names("human") == ["basic", "guest"]
    assert len(presets.system("chat")) <= 2600
    assert presets.persona("sam", "sam").startswith("My name is Sam.")
    assert presets.human("basic") == "First name: unknown"
    with pytest.raises(BadInput, match="everlog, plain, sam"):
        presets.persona("nobody", "sam")
    with pytest.raises(BadInput, match="chat"):
        presets.system("../personas/sam")
