"""Pages about errors of model endpoints: the message that was sent is kept, and the turn ends without a reply.

Used by `explain_command`. Run `python -m docs.make_errors` after a change: a test runs the examples, and compares the
pages in `docs`.
"""

from everlog.interfaces.explain.error_page import ErrorPage

_AGAIN = "The message is kept: the agent answers it together with your next message, and `/retry` in a chat repeats it."

PAGES = (
    ErrorPage(
        "ModelError",
        "The model could not be asked, or its endpoint refused the request. The message that you sent is in the log. "
        "In Python `error.kind` is a short word for the cause, and `error.retry_after_s` the time to wait in seconds.",
        (
            "The key is missing or wrong.",
            "The endpoint does not run, or `--base-url` names another address.",
            "The endpoint does not know the model, is overloaded, or limits the number of requests.",
            "The endpoint did not answer in time.",
        ),
        (
            "Set OPENAI_API_KEY, or name your own server with `--base-url URL` or OPENAI_BASE_URL.",
            "Test the endpoint: `everlog models test MODEL`.",
            "Name a second model that is asked when the first one fails: `--fallback MODEL`.",
            _AGAIN,
        ),
        """\
$ everlog send sam "Hello" --model gpt-4o
""",
        "EverlogError",
    ),
    ErrorPage(
        "ContextOverflow",
        "The request is longer than the context window of the model. The message that you sent is in the log. everlog "
        "summarizes old messages before the window is full, so that this happens only where the window is described "
        "wrongly or one part alone is too large.",
        (
            "`--window` is larger than the real window of the model.",
            "The system prompt, the memory blocks and the functions leave no room for messages.",
            "One message or one function result is larger than the window.",
        ),
        (
            "Set the real size: `everlog configure NAME --window TOKENS`.",
            "See what fills the window: `everlog pressure NAME` and `everlog context NAME`.",
            "Shorten the system prompt or the memory blocks, or use a model with a larger window.",
        ),
        """\
from everlog.actors.models.classify_failure import refusal

body = '{"error": {"code": "context_length_exceeded", "message": "The maximum context length is 8192 tokens."}}'
raise refusal(400, {}, body, name="qwen3", url="http://127.0.0.1:8000/v1")
""",
        "ModelError",
    ),
    ErrorPage(
        "OverBudget",
        "A budget of tokens or money is used up, so that nothing was sent to the model. The message that you sent is "
        "in the log. In Python `error.budget`, `error.spent` and `error.limit` say which budget it is.",
        (
            "The agent has reached its daily limit (`--day-tokens`, `--day-cost`).",
            "All agents together have reached a limit of the gateway.",
            "A budget is in money, and the price of the model is not known.",
        ),
        (
            "Wait until 0:00 UTC for a daily limit, or raise it: `everlog configure NAME --day-tokens N`.",
            "See what was spent: `everlog cost`.",
            "Give the price of the model (`price_in` and `price_out`) in models.toml.",
            _AGAIN,
        ),
        """\
$ everlog send sam "Hello" --model qwen3 --base-url http://127.0.0.1:8000/v1 --no-probe --day-tokens 100
""",
        "ModelError",
    ),
    ErrorPage(
        "BadReply",
        "The endpoint answered, and the answer cannot be read as a chat completion. The log keeps the answer as it "
        "came; in Python it is `error.raw`.",
        (
            "`--base-url` names a web server that is not an OpenAI-compatible endpoint; often `/v1` is missing.",
            "The connection was cut in the middle of the reply.",
            "The model refused to answer, or its reply was cut off by a filter.",
        ),
        (
            "Check `--base-url` and `--model`: `everlog models test MODEL` asks the endpoint.",
            "Look at the recorded answer: `everlog events NAME --type model_failed --json`.",
            "Try another calling format (`--calling text`) for a small model.",
            _AGAIN,
        ),
        """\
from everlog.actors.formats.parse_reply import reply

reply("<html>Welcome to the web server</html>", window=8192)
""",
        "ModelError",
    ),
    ErrorPage(
        "RerunDiverged",
        "A rerun with `--recorded` rendered a request that differs from the recorded request, so that no recorded "
        "reply belongs to it. The agent is unchanged, and the fork keeps the turns before the difference.",
        (
            "The rerun changes memory, the system prompt or the model, so that requests differ.",
            "A record that the request needs was erased.",
            "A newer everlog renders requests in another way.",
        ),
        (
            "Leave `--recorded` away: the model is then asked again.",
            "Read the difference: in Python it is `error.difference`, in JSON `diverged`.",
            "If nothing was changed, check the agent: `everlog verify NAME`.",
        ),
        """\
import everlog

with everlog.open("store") as system:
    system.agent("sam").send("Hello")
    memory = everlog.Settings(blocks=[everlog.InitialBlock("human", "The user has a boat called Heron.")])
    what = everlog.RerunOptions(agent_id="sam", from_seq=8, fork="sam-2", settings=memory, recorded=True)
    done = system.rerun(what)
raise done.diverged
""",
        "ModelError",
    ),
)
"""In the order of the tree of errors."""
