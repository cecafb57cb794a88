"""The public test kit: what it promises to tests of agents."""

import asyncio
import os
import threading
from datetime import UTC, datetime, timedelta

import pytest

import everlog
from everlog.testing import GatewayLimits, ManualClock, RawReply, ScriptedModel, call, reply, system


def test_a_request_beyond_the_script_fails_and_says_so() -> None:
    """The model never invents an answer: without a line left, the turn fails with the end of the request."""
    with system(ScriptedModel()) as agents:
        with pytest.raises(everlog.ModelError, match=r"script of the model is over.*Ahoy there"):
            agents.agent("sam").ask("Ahoy there")
        assert agents.log("sam")[-1].type == "model_failed"


def test_nothing_is_synced_and_no_folder_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system in memory syncs no file, and its folder does not exist on the machine."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    monkeypatch.setattr(os, "fdatasync", synced.append)
    with system(ScriptedModel(["Hello!"])) as agents:
        agents.agent("sam").ask("Hi")
        root = agents.unwrapped.store.root
    assert synced == []
    assert not root.exists()


def test_the_same_test_writes_the_same_log() -> None:
    """Ids and times come from the clock and a counter, so two runs write equal records."""

    def once() -> list[everlog.Record]:
        with system(ScriptedModel(after="Yes.")) as agents:
            agents.agent("sam").ask("Hi")
            agents.advance(timedelta(hours=1))
            agents.agent("sam").ask("And now?")
            return agents.log("sam")

    assert once() == once()


def test_a_timer_fires_at_its_time_although_the_agent_was_unloaded() -> None:
    """An idle agent is unloaded on the way, and its timer still fires at the due time, once for each period."""
    with system(ScriptedModel(after="Tick."), idle_s=60) as agents:
        agents.agent("sam").set_timer("clock", every=timedelta(seconds=1000))
        agents.advance(3000)
        beats = [record for record in agents.log("sam") if record.type == "heartbeat"]
    start = ManualClock().now()
    assert [(beat.recorded_at - start) // 1_000_000 for beat in beats] == [1000, 2000, 3000]


def test_a_rate_limit_takes_no_real_time() -> None:
    """The gateway pauses for as long as the endpoint asks, on the clock of the test."""
    slow = everlog.ModelError("Too fast.", kind="rate_limited", retry_after_s=30)
    with system(ScriptedModel([slow, "Here."]), limits=GatewayLimits(attempts_max=2)) as agents:
        before = agents.clock.time
        assert agents.agent("sam").ask("Hi").text == "Here."
        assert agents.clock.time - before >= timedelta(seconds=30)


def test_sql_reads_sealed_records_of_a_disk_in_memory() -> None:
    """An erasure seals the log; a query over all agents then reads the sealed file, which is in memory too."""
    with system(ScriptedModel(["Hello!"])) as agents:
        sent = agents.agent("sam").ask("My number is 4711")
        agents.erase("sam", everlog.Selection(seqs=[(sent.records[0].seq, sent.records[0].seq)]))
        assert any(path.suffix == ".parquet" for path in agents.unwrapped.disk.files)
        found = agents.sql("SELECT count(*) AS n FROM records WHERE text LIKE '%4711%'").to_pylist()
        assert found == [{"n": 0}]
        assert agents.sql("SELECT count(*) AS n FROM records").to_pylist()[0]["n"] > 8


def test_a_damaged_reply_is_asked_for_again() -> None:
    """A body that is no chat completion fails the turn, and the log has it verbatim."""
    with system(ScriptedModel([RawReply("<html>busy</html>")])) as agents, pytest.raises(everlog.ModelError):
        agents.agent("sam").ask("Hi")


def test_a_call_asks_for_a_heartbeat_where_it_can() -> None:
    """`call` requests a heartbeat unless the function has none, or the script says otherwise."""
    model = ScriptedModel(
        [
            call("core_memory_append", name="human", content="a"),
            call("core_memory_append", name="human", content="b", request_heartbeat=False),
        ]
    )
    with system(model) as agents:
        agents.agent("sam").ask("Hi")
        asked = [one.arguments.get("request_heartbeat") for one in agents.calls("sam")]
    assert asked == [True, False]


def test_a_plain_function_runs_in_the_event_loop() -> None:
    """A plain function runs in the thread of the agent, unless the test wants the threads of a real system."""
    ran: list[threading.Thread] = []

    @everlog.tool(effect="read_only")
    def here() -> None:
        """Note the thread."""
        ran.append(threading.current_thread())

    async def thread_of(**options: bool) -> threading.Thread:
        async with system(ScriptedModel([call("here"), "Done."]), tools=[here], **options) as agents:
            await (await agents.agent("sam")).ask("Go")
        return ran.pop()

    assert asyncio.run(thread_of()) is threading.current_thread()
    assert asyncio.run(thread_of(function_threads=True)) is not threading.current_thread()


@pytest.mark.parametrize(("seconds", "result", "late"), [(60, "back again", 0), (61, "still running after 60", 1)])
def test_a_time_limit_counts_on_the_clock_of_the_test(seconds: float, result: str, late: int) -> None:
    """A function that moves the clock on by more than its limit has failed; its late result is dropped with a note."""
    clock = ManualClock()

    @everlog.tool(effect="read_only", timeout_s=60)
    def wait() -> str:
        """Take a while."""
        clock.skip(seconds)
        return "back again"

    with system(ScriptedModel([call("wait"), "Done."]), tools=[wait], clock=clock) as agents:
        (made,) = agents.agent("sam").ask("Go").calls
        assert result in made.result
        assert made.ok is (late == 0)
        assert sum("Its result was dropped" in note for note in agents.notes) == late
        agents.assert_verified("sam")


def test_an_exception_of_a_function_in_the_event_loop_reaches_the_agent() -> None:
    """An exception of a plain function is the result of its call, as it is in a thread; the turn continues."""

    @everlog.tool(effect="read_only")
    def stop() -> None:
        """Raise what would end a loop."""
        raise StopIteration("no more")

    with system(ScriptedModel([call("stop"), "Done."]), tools=[stop]) as agents:
        answer = agents.agent("sam").ask("Go")
    assert answer.text == "Done."
    assert "no more" in answer.calls[0].result


def test_the_blocking_form_has_the_scripted_model_too() -> None:
    """Agents that `agent` and `create_many` make in the blocking form have the scripted model."""
    model = ScriptedModel(after="Hello!")
    with system(model) as agents:
        assert [created.ok for created in agents.create_many(["ann", "bob"])] == [True, True]
        for name in ("sam", "ann", "bob"):
            agents.agent(name).ask("Hi")
    assert [request.body["model"] for request in model.seen] == ["scripted"] * 3


def test_a_closed_system_is_not_read() -> None:
    """The additions of a test's system are refused after its end, as all other calls are."""
    with system(ScriptedModel(["Hello!"])) as agents:
        agents.agent("sam").ask("Hi")
    for addition in (agents.log, agents.calls, agents.assert_verified):
        with pytest.raises(everlog.UsageError, match="after its system was closed"):
            addition("sam")
    with pytest.raises(everlog.UsageError, match="after its system was closed"):
        agents.advance(1)


def test_a_fault_of_the_log_is_shown() -> None:
    """`assert_verified` names the difference: here a rendering that was changed under the agent's feet."""
    with system(ScriptedModel(["Hello!"])) as agents:
        agents.agent("sam").ask("Hi")
        agents.assert_verified("sam")
        log = agents.unwrapped.store
        agents.unload("sam")
        head = log.reader("sam").head("sam").seq
        agents.erase("sam", everlog.Selection(seqs=[(head, head)]))
        agents.assert_verified("sam")  # an erasure is no fault


def test_a_stream_shows_the_scripted_text() -> None:
    """An agent that streams gives previews of scripted replies."""
    seen: list[str] = []
    with system(ScriptedModel([reply("Hello!", thought="A guest.")])) as agents:
        sam = agents.agent("sam", everlog.Settings(stream=True))
        sam.ask("Hi", preview=lambda preview: seen.append(preview.text))
    assert "A guest." in "".join(seen)


def test_time_is_never_moved_back_and_a_clock_has_a_zone() -> None:
    """A negative step and a start without a zone are refused."""
    with system(ScriptedModel()) as agents, pytest.raises(everlog.BadInput, match="not back"):
        agents.advance(-1)
    with pytest.raises(everlog.BadInput, match="zone"):
        ManualClock(datetime(2026, 1, 1))  # noqa: DTZ001
    assert ManualClock(datetime(2026, 1, 1, 5, tzinfo=UTC)).time.hour == 5


def test_a_context_is_opened_once() -> None:
    """The same context cannot be entered twice."""
    agents = system(ScriptedModel())
    with agents:
        pass
    with pytest.raises(everlog.UsageError, match="opened already"), agents:
        pass
