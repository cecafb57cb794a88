"""A server that is killed, and connections that are cut at any byte: every message once, every stream whole."""

import asyncio
import random
from pathlib import Path

import pytest

from tests.soak.served_chaos import Chaos

ROUNDS = 500


@pytest.mark.parametrize("rounds", [6, pytest.param(ROUNDS, marks=[pytest.mark.long, pytest.mark.soak])])
def test_chaos_loses_and_doubles_nothing(tmp_path: Path, rounds: int) -> None:
    """Each message is in its log once, and each stream that was resumed until its end has every record once."""
    chaos = Chaos(tmp_path / "store", random.Random(rounds))
    try:
        asyncio.run(chaos.run(rounds))
    finally:
        if chaos.server.process is not None:
            chaos.server.kill()
    print(dict(chaos.counts))
    assert chaos.counts["messages in the logs, each once"] == rounds
    assert chaos.counts["complete streams"] == rounds
