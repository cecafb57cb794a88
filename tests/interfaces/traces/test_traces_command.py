"""`everlog traces`: the past of agents goes to a file or to a receiver of OpenTelemetry, whole and again."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from everlog.events import BadInput, ModelError
from everlog.interfaces.show.trace_receiver import TraceReceiver, headers_in
from tests.support.cli.command_line import START, Line, completion, says
from tests.support.models.loopback_server import serving

SPAN = dict[str, Any]
LATENCY_US = 5
"""Latency of each reply of the scripted model."""


def talk(cli: Line, name: str = "sam") -> None:
    """Have two turns: one with a search and an answer, and one in which the model fails."""

    def make(line: Line) -> None:
        line.script.answers = [
            completion(("conversation_search", {"query": "Ann", "request_heartbeat": True})),
            says("Hello Ann!"),
            ModelError("the key is wrong", kind="auth"),
        ]
        line.ok("create", name, "--model", "script", "--sampling", "temperature=0.5")
        line.ok("send", name, "I am Ann.")
        line("send", name, "And now?")

    cli.begin(f"traced {name}", make)


def spans_in(bodies: list[bytes]) -> list[SPAN]:
    return [
        span
        for body in bodies
        for resource in json.loads(body)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def spans_of(file: Path) -> list[SPAN]:
    return spans_in(file.read_bytes().splitlines())


def attributes(span: SPAN) -> dict[str, Any]:
    return {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}


def exported(cli: Line, file: Path, *argv: str) -> list[SPAN]:
    cli.ok("traces", *argv, "--out", str(file), "--force")
    return spans_of(file)


def test_a_turn_is_a_tree_of_spans(cli: Line, tmp_path: Path) -> None:
    """A turn has a span for itself, for each step, request and function, named as the conventions say."""
    talk(cli)
    out = cli.ok("traces", "sam", "--out", str(tmp_path / "t.jsonl"))
    assert out == f"Exported 10 spans of 2 traces of 1 agent to {tmp_path / 't.jsonl'}.\n"
    found = spans_of(tmp_path / "t.jsonl")
    assert Counter(span["name"] for span in found) == {
        "invoke_agent sam": 2, "step 1": 2, "step 2": 1, "chat script": 3, "execute_tool conversation_search": 1,
        "execute_tool send_message": 1,
    }  # fmt: skip
    turn, step, chat, tool = found[:4]
    assert [span["kind"] for span in (turn, step, chat, tool)] == [1, 1, 3, 1]
    assert [span.get("parentSpanId") for span in (turn, step, chat, tool)] == [
        None, turn["spanId"], step["spanId"], step["spanId"],
    ]  # fmt: skip
    assert int(chat["endTimeUnixNano"]) - int(chat["startTimeUnixNano"]) == LATENCY_US * 1000
    assert attributes(turn).items() >= {
        "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "sam", "gen_ai.conversation.id": "sam",
        "gen_ai.usage.input_tokens": "2000", "gen_ai.usage.output_tokens": "40", "everlog.outcome": "done",
    }.items()  # fmt: skip
    assert attributes(chat).items() >= {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "script",
        "gen_ai.response.model": "script", "gen_ai.request.temperature": 0.5, "gen_ai.usage.input_tokens": "1000",
    }.items()  # fmt: skip
    assert attributes(tool).items() >= {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "conversation_search",
        "gen_ai.tool.call.id": "call_0", "gen_ai.tool.type": "function",
    }.items()  # fmt: skip


def test_a_failed_turn_has_the_status_of_an_error(cli: Line, tmp_path: Path) -> None:
    """The failed request and its turn have the status of an error, and the class of the failure."""
    talk(cli)
    failed = [span for span in exported(cli, tmp_path / "t", "sam") if span["status"]]
    assert [span["name"] for span in failed] == ["invoke_agent sam", "chat script"]
    assert {attributes(span)["error.type"] for span in failed} == {"auth"}
    assert [span["status"] for span in failed] == [{"code": 2}] * 2
    loud = [span for span in exported(cli, tmp_path / "t", "sam", "--content") if span["status"]]
    assert "the key is wrong" in loud[0]["status"]["message"]


def test_a_trace_has_the_id_of_the_event_that_opened_the_turn(cli: Line, tmp_path: Path) -> None:
    """So a log and a trace find each other, and the times of the spans are those of the records."""
    talk(cli)
    opened = [event for event in cli.lines("events", "sam") if event["type"] == "user_message"]
    found = exported(cli, tmp_path / "t", "sam")
    roots = [span for span in found if "parentSpanId" not in span]
    assert [span["traceId"] for span in roots] == [event["event_id"].replace("-", "") for event in opened]
    assert all(int(span["startTimeUnixNano"]) > START * 1000 for span in found)


def test_words_need_content(cli: Line, tmp_path: Path) -> None:
    """Without --content no word of user, agent or function is in the file; with it they are."""
    talk(cli)
    exported(cli, tmp_path / "t", "sam")
    text = (tmp_path / "t").read_text()
    assert not any(word in text for word in ("Ann", "Hello", "I think"))
    loud = exported(cli, tmp_path / "t", "sam", "--content")
    turn, _, chat, tool = map(attributes, loud[:4])
    assert json.loads(turn["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "I am Ann."}]}
    ]
    assert json.loads(turn["gen_ai.output.messages"])[0]["parts"][0]["content"] == "Hello Ann!"
    assert json.loads(chat["gen_ai.output.messages"])[0]["parts"][1]["name"] == "conversation_search"
    assert json.loads(tool["gen_ai.tool.call.arguments"])["query"] == "Ann"


def test_times_choose_turns(cli: Line, tmp_path: Path) -> None:
    """--since and --until choose turns by their beginning, and together they have every turn once."""
    talk(cli)
    opened = [event["recorded_at"] for event in cli.lines("events", "sam") if event["type"] == "user_message"]
    whole = exported(cli, tmp_path / "t", "sam")
    late = exported(cli, tmp_path / "t", "sam", "--since", opened[1])
    early = exported(cli, tmp_path / "t", "sam", "--until", opened[0])
    assert early + late == whole
    assert early
    assert late


def test_a_fork_does_not_repeat_its_parent(cli: Line, tmp_path: Path) -> None:
    """A pattern exports each turn once: the shared past is the parent's."""
    talk(cli)
    cli.ok("fork", "sam", "--new-name", "sam-2")
    cli.script.answers = [says("Yes.")]
    cli.ok("send", "sam-2", "Are you there?")
    found = exported(cli, tmp_path / "t", "sam*")
    ids = [span["spanId"] for span in found]
    assert len(set(ids)) == len(ids)
    assert [span["name"] for span in found if "parentSpanId" not in span] == ["invoke_agent sam"] * 2 + [
        "invoke_agent sam-2"
    ]


def test_all_agents_are_exported_if_none_is_named(cli: Line, tmp_path: Path) -> None:
    """Without a pattern every agent is read; --json counts."""
    for name in ("sam", "bo"):
        talk(cli, name)
    shape = cli.json("traces", "--out", str(tmp_path / "t"))
    assert {key: shape[key] for key in ("agents", "traces", "rejected")} == {"agents": 2, "traces": 4, "rejected": 0}


def test_a_receiver_gets_the_same_spans_each_time(cli: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The body is OTLP/JSON at /v1/traces, with the headers of the environment, and a repeated export is the same."""
    talk(cli)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b, Authorization=Bearer%20z")
    with serving((200, "{}")) as server:
        url = server.url.removesuffix("/v1")
        for _ in range(2):
            assert cli.ok("traces", "sam", "--otlp", url).endswith(f"to {url}/v1/traces.\n")
    assert server.bodies[0] == server.bodies[1]
    assert spans_in(server.bodies[:1]) == exported(cli, tmp_path / "t", "sam")
    headers = server.headers[0]
    assert (headers["content-type"], headers["x-key"], headers["authorization"]) == (
        "application/json", "a b", "Bearer z",
    )  # fmt: skip


def test_a_busy_receiver_is_asked_again(cli: Line) -> None:
    """A request that may be repeated is repeated, after a wait; at last the command says what came."""
    talk(cli)
    with serving((503, "busy"), (429, "busy"), (200, "")) as server:
        cli.ok("traces", "sam", "--otlp", server.url)
    assert len(server.bodies) == 3
    assert cli.sleeps[-2:] == [1.0, 2.0]
    with serving((503, "full")) as server:
        assert "HTTP 503 full" in cli.fails("traces", "sam", "--otlp", server.url)
    assert len(server.bodies) == 5


@pytest.mark.parametrize(("status", "fault"), [(401, "HTTP 401"), (415, "protobuf only"), (302, "HTTP 302")])
def test_a_refusal_is_not_repeated(cli: Line, status: int, fault: str) -> None:
    """A refusal is told at once, with its reason."""
    talk(cli)
    with serving((status, "no")) as server:
        assert fault in cli.fails("traces", "sam", "--otlp", server.url)
    assert len(server.bodies) == 1


def test_rejected_spans_make_the_command_fail(cli: Line) -> None:
    """A receiver that takes only a part says so in its answer, and the exit code is 1."""
    talk(cli)
    with serving((200, '{"partialSuccess": {"rejectedSpans": "2", "errorMessage": "too old"}}')) as server:
        code, out, err = cli("traces", "sam", "--otlp", server.url)
    assert (code, out.startswith("Exported ")) == (1, True)
    assert "rejected 2 spans: too old" in err


def test_a_receiver_that_is_not_there_is_named(cli: Line) -> None:
    """Without a server the error names the address, after the tries."""
    talk(cli)
    with serving((200, "{}")) as server:
        pass
    assert f"{server.url} did not take the spans" in cli.fails("traces", "sam", "--otlp", server.url)


@pytest.mark.parametrize(
    ("argv", "code", "fault"),
    [
        (["sam"], 2, "give either --otlp URL or --out FILE"),
        (["sam", "--otlp", "http://x", "--out", "f"], 2, "give either --otlp URL or --out FILE"),
        (["sam", "--otlp", "x:4318"], 1, "--otlp takes an address"),
        (["s*x", "--out", "f"], 2, "no agent matches 's*x'"),
        (["bo", "--out", "f"], 1, "There is no agent 'bo'"),
        (["sam", "--out", "f", "--since", "12"], 1, "--since 12 is a seq"),
    ],
)
def test_a_wrong_use_is_told(cli: Line, argv: list[str], code: int, fault: str, tmp_path: Path) -> None:
    """Nothing is written or sent before the arguments are checked."""
    cli.ok("create", "sam")
    found, _, err = cli("traces", *[str(tmp_path / "f") if word == "f" else word for word in argv])
    assert (found, fault in err, (tmp_path / "f").exists()) == (code, True, False)


def test_a_file_is_not_overwritten_by_accident(cli: Line, tmp_path: Path) -> None:
    """An existing file is kept unless --force is given, and an export leaves nothing else behind."""
    cli.ok("create", "sam")
    (tmp_path / "f").write_text("mine")
    assert "exists already" in cli.fails("traces", "--out", str(tmp_path / "f"))
    assert (tmp_path / "f").read_text() == "mine"


def test_headers_of_the_environment_are_checked() -> None:
    """A list of headers that is none is an error, and the variable of traces goes before the general one."""
    assert headers_in({}) == {}
    both = {"OTEL_EXPORTER_OTLP_HEADERS": "a=1,b=2", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "b=3"}
    assert headers_in(both) == {"a": "1", "b": "3"}
    with pytest.raises(BadInput, match="name=value"):
        headers_in({"OTEL_EXPORTER_OTLP_HEADERS": "secret"})


def test_an_address_with_a_path_is_used_as_it_is() -> None:
    """The path of traces is added only where there is none."""
    assert TraceReceiver("http://h:1/otel/v1/traces", {}).url == "http://h:1/otel/v1/traces"
    assert TraceReceiver("https://h", {}).url == "https://h/v1/traces"
