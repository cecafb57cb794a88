"""A call of a model ends at the limits of its endpoint, however the endpoint holds it up."""

import asyncio
from pathlib import Path

import pytest

from everlog.actors.gateway.gateway import Gateway
from everlog.actors.gateway.gateway_limits import GatewayLimits
from everlog.actors.gateway.model_factory import real_models
from everlog.actors.models.model_types import CallLimits
from everlog.actors.models.models_toml import parse_models
from everlog.actors.ports.effects import ModelResponse
from everlog.events import BadInput, ModelError
from tests.support.models.endpoint_server import serving, streaming
from tests.support.models.virtual_time_models import outcome, run, seconds

URL = "http://127.0.0.1:1/v1"


class Silent:
    """A model that fails with `timeout` after the seconds of its limits, like an endpoint that says nothing."""

    name = "silent"

    def __init__(self, limits: CallLimits) -> None:
        self.limits = limits
        self.tries = 0

    async def ask(self, request: bytes, **_: object) -> ModelResponse:
        self.tries += 1
        await asyncio.sleep(self.limits.silence_s)
        raise ModelError("nothing came", kind="timeout")

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(("silence_s", "call_s", "tries", "ends"), [
    (10**9, 900, 1, 900),  # a piece now and then, so that no silence is long enough
    (120, 300, 3, 300),
    (120, 900, 4, 4 * 120 + 3.5),
])  # fmt: skip
def test_a_call_ends_at_its_limit_over_all_tries(silence_s: int, call_s: int, tries: int, ends: float) -> None:
    """A request ends with `timeout` at `call_s` at the latest, counted from its first try over all tries and pauses."""

    async def main() -> None:
        model = Silent(CallLimits(silence_s, call_s))
        error = await outcome(Gateway(lambda *_: model, chance=lambda: 0.0).ask("silent", URL, b"?"))
        assert isinstance(error, ModelError) and error.kind == "timeout" and error.attempts == tries
        assert model.tries == tries and seconds() == pytest.approx(ends)
        if ends == call_s:
            assert f"did not come to an end in {call_s} s" in str(error) and "`call_s`" in str(error)

    run(main)


def test_an_endpoint_that_only_comments_ends_at_the_limits_of_models_toml(tmp_path: Path) -> None:
    """`silence_s` of the endpoint in models.toml is the limit of a try, and comments are no content."""

    async def main() -> None:
        async with asyncio.timeout(30), serving(streaming(*[b": ping\n\n"] * 10**6)) as wire:
            (tmp_path / "models.toml").write_text(
                f'[endpoints.slow]\nurl = "{wire.url}"\nsilence_s = 0.2\ncall_s = 20\nmodels = ["m"]\n'
            )
            limits = GatewayLimits(attempts_max=1)
            one = Gateway(real_models(limits, tmp_path), limits=limits, root=tmp_path)
            error = await outcome(one.ask("m", wire.url, b"{}"))
            await one.close()
        assert isinstance(error, ModelError) and error.kind == "timeout", error

    asyncio.run(main())


def test_a_silent_endpoint_names_its_limit(tmp_path: Path) -> None:
    """An endpoint that accepts a request and sends nothing ends at `silence_s`, and the error names that setting."""

    async def main() -> None:
        async with asyncio.timeout(30), serving(streaming(then="hang")) as wire:
            (tmp_path / "models.toml").write_text(
                f'[endpoints.slow]\nurl = "{wire.url}"\nsilence_s = 0.2\ncall_s = 20\n'
            )
            limits = GatewayLimits(attempts_max=1)
            one = Gateway(real_models(limits, tmp_path), limits=limits, root=tmp_path)
            error = await outcome(one.ask("m", wire.url, b"{}"))
            await one.close()
        assert isinstance(error, ModelError) and error.kind == "timeout"
        assert "(0.2 s, `silence_s` in models.toml)" in str(error) or "did not come to its end in time" in str(error)

    asyncio.run(main())


@pytest.mark.parametrize("value", ["0", "-1", "inf", "nan"])
@pytest.mark.parametrize("field", ["silence_s", "call_s"])
def test_a_limit_that_is_none_is_refused(field: str, value: str) -> None:
    """0, a negative number and infinity are errors with the line: such a limit would refuse everything, or nothing."""
    text = f'[endpoints.slow]\nurl = "{URL}"\n{field} = {value}\n'
    with pytest.raises(BadInput, match=rf"line 3: endpoints\.slow\.{field}: a number of seconds above 0"):
        parse_models(text, "models.toml")
