"""`ask` returns the answer with what it took; `send` and `stream_text` bring the same while it happens."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import everlog
from everlog.actors.answer_text import AnswerText
from everlog.actors.api import ServiceOptions
from everlog.actors.formats.reply_preview import Preview
from everlog.events import BadInput, ModelError, ModelReply, Usage, draft, place, uuid7
from tests.support.agent_world import START, CountingIds, ManualClock, ScriptedModel, completion, say


@everlog.tool(effect="read_only")
def tide(where: str) -> str:
    """Tell when the tide is high.

    Args:
        where: Name of a place.
    """
    return f"High tide in {where} is at noon."


def with_system(
    folder: Path, model: ScriptedModel, main: Callable[[everlog.AgentSystem], Coroutine[Any, Any, None]]
) -> None:
    """Run `main` with a system whose agents use the model."""

    async def run() -> None:
        ports = everlog.Ports(clock=ManualClock(tick_us=1000), ids=CountingIds())
        services = ServiceOptions(models=lambda *_: model)
        async with everlog.open_system(folder, tools=[tide], services=services, ports=ports) as system:
            await main(system)

    asyncio.run(run())


class SilentModel(ScriptedModel):
    """A model that never answers."""

    async def ask(self, request: bytes, **_: object) -> Any:
        await asyncio.Event().wait()


SCRIPTED = everlog.Settings(model="scripted", window=8192, verify_first=False)


def test_a_reply_says_what_the_answer_took(tmp_path: Path) -> None:
    """The text, the turn, each function with its result, and the tokens of all calls are in the reply."""
    asked = completion(calls=[("tide", {"where": "Bergen", "request_heartbeat": True})])

    async def main(system: everlog.AgentSystem) -> None:
        agent = await system.agent("sam", SCRIPTED)
        reply = await agent.ask("When is high tide?", speaker="Ann")
        assert (reply.text, str(reply), reply.turn, reply.stopped) == ("At noon.", "At noon.", 1, "")
        assert [(call.name, call.ok, call.result) for call in reply.calls] == [
            ("tide", True, "High tide in Bergen is at noon.")
        ]
        assert '"where"' in reply.calls[0].arguments
        used = [everlog.event_of(record).usage for record in reply.records if record.type == "model_reply"]
        assert reply.tokens.total == sum(usage.total for usage in used) > 0
        assert reply.cost is None, "no price of the model is known"
        assert repr(reply).startswith("<Reply of 'sam', turn 1, calls 1, tokens ")
        assert "<b>sam</b> At noon." in reply._repr_html_()
        assert everlog.event_of(reply.records[0]) == everlog.UserMessage(text="When is high tide?", name="Ann")

    with_system(tmp_path, ScriptedModel([asked, say("At noon.")]), main)


def test_the_price_of_a_reply_is_that_of_models_toml(tmp_path: Path) -> None:
    """Tokens cost what the prices say, and a model without a price makes the cost unknown."""
    (tmp_path / "models.toml").write_text('[models."known"]\nprice_in = 2.0\nprice_out = 4.0\n')

    async def main(system: everlog.AgentSystem) -> None:
        prices = (await (await system.agent("sam", SCRIPTED)).ask("Hi"))._prices
        for model, cost in (("known", 100 * 2e-6 + 10 * 4e-6), ("unknown", None)):
            event = ModelReply(model=model, usage=Usage(prompt=100, completion=10, total=110))
            written = draft(event, event_id=uuid7(START, 1), recorded_at=START, turn=1, step=1)
            reply = everlog.Reply("sam", "", [place(written, "sam", 1, 1)], prices=prices)
            assert reply.cost == (None if cost is None else pytest.approx(cost))

    with_system(tmp_path, ScriptedModel([say("Ho.")]), main)


def test_the_same_id_is_asked_once_and_answered_twice(tmp_path: Path) -> None:
    """A second `ask` with an id sends nothing, calls no model, and returns the recorded reply."""
    model = ScriptedModel([say("One."), say("Two.")])

    async def main(system: everlog.AgentSystem) -> None:
        agent = await system.agent("sam", SCRIPTED)
        known = uuid7(START, 7)
        first, second = [await agent.ask("Hi", event_id=known) for _ in range(2)]
        assert (first.text, second.text, len(model.requests)) == ("One.", "One.", 1)
        assert first.records == second.records and first.event_id == known

    with_system(tmp_path, model, main)


def test_a_cancelled_turn_says_so(tmp_path: Path) -> None:
    """The reply of a turn that was cancelled is not empty without a reason."""

    async def main(system: everlog.AgentSystem) -> None:
        agent = await system.agent("sam", SCRIPTED)
        seen: list[str] = []
        run = agent.send("Hi")
        async for record in run:
            seen.append(record.type)
            if record.type == "user_message":
                await agent.cancel()
        reply = await run.reply()
        assert (reply.text, bool(reply.stopped), seen[-1]) == ("", True, "turn_cancelled")

    with_system(tmp_path, SilentModel(), main)


def test_text_comes_in_parts_that_make_the_reply(tmp_path: Path) -> None:
    """Joined, the parts of `stream_text` are the text of the reply, here of two messages."""
    both = completion(calls=[("send_message", {"message": "One."}), ("send_message", {"message": "Two."})])

    async def main(system: everlog.AgentSystem) -> None:
        agent = await system.agent("sam", SCRIPTED)
        assert [part async for part in agent.stream_text("Hi")] == ["One.", "\nTwo."]

    with_system(tmp_path, ScriptedModel([both]), main)


def test_previews_and_records_are_joined_without_a_gap() -> None:
    """A previewed message is completed by its record, and one that was withdrawn begins again on a new line."""
    answer = AnswerText()

    def record(text: str) -> everlog.Record:
        written = draft(everlog.MessageSent(text=text), event_id=uuid7(START, 1), recorded_at=START, turn=1, step=1)
        return place(written, "sam", 1, 1)

    steps = [
        ("message", "Hel"), ("message", "lo"), ("end", ""), ("message", "Bo"), ("restart", ""), ("message", "Good"),
    ]  # fmt: skip
    parts = [answer.preview(Preview(1, 1, kind, text)) for kind, text in steps]
    assert parts == ["Hel", "lo", "", "\nBo", "", "\nGood"]
    assert answer.record(record("Good day.")) == " day."
    assert answer.record(record("And more.")) == "\nAnd more."


def test_a_run_gives_its_reply_after_an_iteration(tmp_path: Path) -> None:
    """Records are iterated over once; after the end the reply is still there, and its repr shows how far it is."""

    async def main(system: everlog.AgentSystem) -> None:
        agent = await system.agent("sam", SCRIPTED)
        run = agent.send("Hi")
        assert repr(run) == "<Run of 'sam', 0 records so far>"
        seen = [record async for record in run]
        assert (await run.reply()).records == seen
        with pytest.raises(everlog.UsageError, match="once"):
            await run

    with_system(tmp_path, ScriptedModel([say("Ho.")]), main)


def test_outcomes_of_many_can_be_raised(tmp_path: Path) -> None:
    """An outcome is ok with its reply, or raises its error when asked to; a message without words is refused."""
    model = ScriptedModel([say("Ho."), ModelError("The endpoint is down.", kind="rejected")])

    async def main(system: everlog.AgentSystem) -> None:
        made = [each.raise_for_error() async for each in system.create_many(["ann"], SCRIPTED)]
        assert [each.ok for each in made] == [True]
        good, bad = [outcome async for outcome in system.send_many([("ann", "Hi"), ("ann", "Hi again")])]
        assert (good.ok, good.raise_for_error().text, bad.ok) == (True, "Ho.", False)
        assert "ModelError: The endpoint is down." in repr(bad)
        with pytest.raises(ModelError, match="down"):
            bad.raise_for_error()
        with pytest.raises(BadInput, match="no words"):
            _ = [each async for each in system.send_many([("ann", " ")])]

    with_system(tmp_path, model, main)


def test_times_are_datetimes_with_a_zone(tmp_path: Path) -> None:
    """Records say when they were recorded, or said if they were imported; every time without a zone is refused."""

    async def main(system: everlog.AgentSystem) -> None:
        agent = await system.agent("sam", SCRIPTED)
        said = datetime(2024, 1, 31, 12, tzinfo=UTC)
        imported = await agent.import_messages(
            [everlog.ImportedMessage(everlog.UserMessage(text="I sail", imported=True), said)]
        )
        assert [record.time for record in imported.records] == [said]
        reply = await agent.ask("Hi")
        assert reply.records[0].time == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
            microseconds=reply.records[0].recorded_at
        )
        naive = reply.records[0].time.replace(tzinfo=None)
        for refused in (
            system.sql("SELECT 1", as_of=naive), system.view("sam", as_of=naive), system.fork("sam", "tom", at=naive),
            system.sources.documents("sea", as_of=naive), system.sources.attached(as_of=naive),
            system.rerun(everlog.RerunOptions(agent_id="sam", from_seq=naive, fork="tim")),
            agent.set_timer("tea", due_at=naive),
        ):  # fmt: skip
            with pytest.raises(BadInput, match="no time zone"):
                await refused
        async with await system.view("sam", as_of=reply.records[0].time) as state:
            assert state.seq == reply.records[0].seq

    with_system(tmp_path, ScriptedModel([say("Ho.")]), main)


def test_objects_say_what_they_are(tmp_path: Path) -> None:
    """The repr of each public object has the agent's name or the store, and of an agent its model and seq."""

    async def main(system: everlog.AgentSystem) -> None:
        agent = await system.agent("sam", SCRIPTED)
        reply = await agent.ask("Hi")
        assert repr(system) == f"<AgentSystem {tmp_path}, LocalRuntime>"
        assert repr(agent) == f"<AgentRef 'sam' in {tmp_path}, model scripted, seq {reply.records[-1].seq}>"
        assert "'sam'" in repr(agent.archive)
        async with await system.view("sam", as_of=3) as state:
            assert repr(state) == f"<AgentState 'sam' as of seq 3 of {reply.records[-1].seq}>"
        for service in (system.sources, system.shared):
            assert " at 0x" not in repr(service)

    with_system(tmp_path, ScriptedModel([say("Ho.")]), main)


def test_settings_that_are_a_dict_are_refused_by_the_system(tmp_path: Path) -> None:
    """`system.agent("x", {...})` raises BadInput, and no agent is created."""

    async def main(system: everlog.AgentSystem) -> None:
        wrong: Any = {"model": "gpt-4o"}
        with pytest.raises(BadInput, match=r"everlog\.Settings"):
            await system.agent("sam", wrong)
        with pytest.raises(BadInput, match=r"everlog\.Settings"):
            _ = [each async for each in system.create_many(["sam"], wrong)]
        assert await system.agents() == []

    with_system(tmp_path, ScriptedModel(), main)
