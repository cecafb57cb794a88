"""Provide the input of benchmarks: a model that answers at once, varied messages of realistic length, and a disk that
counts its syncs.

Used by the benchmarks that run agents in this process. Figures of two runs can be compared only if they had the same
input: a change here moves all of them.
"""

import json
import random
from collections.abc import Sequence
from pathlib import Path

from everlog.actors.ports.effects import ModelResponse
from everlog.store import DiskFile, RealDisk
from everlog.store.base.disk import Bytes

_TEXT = """
about after again always another around because before better between boat book bread bring brother call careful
city coffee cold could dinner does early evening every family feel find first friend garden good great green hand
happy harbour have heard here home house idea just kind know last later learn letter light like little long look
made make maybe mean month more morning mother mountain music need never next night nothing often only other paint
park people perhaps place plan rain read really river sail said school sister sleep small some soon still story
summer table talk tell than that their there thing think this time today together tomorrow trip under until very
wait walk want water week went what when where which while white wind winter with without work write year
"""
WORDS = tuple(_TEXT.split())
TOKEN_BYTES = 4


def words(chance: random.Random, about: int) -> str:
    """Return a message of about so many words."""
    count = max(3, round(chance.gauss(about, about / 4)))
    return " ".join(chance.choice(WORDS) for _ in range(count)).capitalize() + "."


class InstantModel:
    """Answers every request at once with one `send_message`, and counts a token for four bytes of request.

    A request without functions asks for a summary and gets a short text.
    """

    def __init__(self, seed: int = 1) -> None:
        self.name = "instant"
        self._chance = random.Random(seed)

    async def ask(self, request: bytes, **_: object) -> ModelResponse:
        return ModelResponse(json.dumps(self._body(request)), 0)

    async def close(self) -> None:
        pass

    def _body(self, request: bytes) -> dict[str, object]:
        if request.endswith(b'"tool_choice":"auto"}'):
            message = self._said()
        else:
            message = {"role": "assistant", "content": "We talked. " + words(self._chance, 60)}
        prompt, answered = len(request) // TOKEN_BYTES, len(json.dumps(message)) // TOKEN_BYTES
        return {
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": prompt, "completion_tokens": answered, "total_tokens": prompt + answered},
            "model": self.name,
        }

    def _said(self) -> dict[str, object]:
        arguments = json.dumps({"message": words(self._chance, 20)})
        number = f"call_{self._chance.getrandbits(64):016x}"
        call = {"id": number, "type": "function", "function": {"name": "send_message", "arguments": arguments}}
        return {"role": "assistant", "content": words(self._chance, 12), "tool_calls": [call]}


class CountedFile:
    """An open file that notes how many bytes each sync made durable."""

    def __init__(self, file: DiskFile, syncs: list[int]) -> None:
        self._file = file
        self._syncs = syncs
        self._unsynced = 0

    def write(self, parts: Sequence[Bytes], offset: int) -> None:
        self._unsynced += sum(len(part) for part in parts)
        self._file.write(parts, offset)

    def sync(self) -> None:
        self._syncs.append(self._unsynced)
        self._unsynced = 0
        self._file.sync()

    def truncate(self, length: int) -> None:
        self._file.truncate(length)

    def lock(self) -> bool:
        return self._file.lock()

    def unlock(self) -> None:
        self._file.unlock()

    @property
    def is_ended(self) -> bool:
        return self._file.is_ended

    def close(self) -> None:
        self._file.close()


class CountingDisk(RealDisk):
    """The real disk; `syncs` has one entry for each fdatasync and fsync: the bytes that it made durable."""

    def __init__(self) -> None:
        self.syncs: list[int] = []

    def create(self, path: Path) -> CountedFile:  # type: ignore[override]
        return CountedFile(super().create(path), self.syncs)

    def open(self, path: Path) -> CountedFile:  # type: ignore[override]
        return CountedFile(super().open(path), self.syncs)

    def sync_dir(self, path: Path) -> None:
        self.syncs.append(0)
        super().sync_dir(path)
