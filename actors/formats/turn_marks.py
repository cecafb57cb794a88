"""Marks around the turns of one prompt, as families of local models were trained with them. Pure.

No text can end its turn or begin another one: a mark inside of a text is broken by a space. Used by `text_format.py`.
Raise `agent_constants.RENDERER` if a prompt changes.
"""

from collections.abc import Iterable, Mapping

import msgspec


class TurnMarks(msgspec.Struct, frozen=True):
    """Marks of one family of models."""

    begins: Mapping[str, str]
    """Beginning of a turn, by its role: system, user and assistant."""
    end: str
    """End of a turn."""
    stop: tuple[str, ...]
    """Texts at which the server stops: the end of the model's turn, or the beginning of another."""
    broken: Mapping[str, str]
    """Texts that would be marks, and how they are written inside of a turn."""

    def prompt(self, turns: Iterable[tuple[str, str]]) -> str:
        """Return turns of (role, text) as a prompt that ends where the model's own turn begins."""
        written = "".join([f"{self.begins[role]}{self.escaped(text)}{self.end}" for role, text in turns])
        return written + self.begins["assistant"]

    def escaped(self, text: str) -> str:
        """Return a text without marks."""
        for mark, harmless in self.broken.items():
            text = text.replace(mark, harmless)
        return text

    def own_turn(self, text: str) -> str:
        """Return the text of the model's own turn: not every server stops at the marks."""
        own = text.removeprefix(self.begins["assistant"])
        return own[: min((place for mark in self.stop if (place := own.find(mark)) >= 0), default=len(own))]


_ROLES = ("system", "user", "assistant")


def _each(begin: str) -> dict[str, str]:
    return {role: begin.format(role) for role in _ROLES}


CHATML = TurnMarks(_each("<|im_start|>{}\n"), "<|im_end|>\n", ("<|im_end|>", "<|im_start|>"), {"<|": "< |"})
LLAMA3 = TurnMarks(
    _each("<|start_header_id|>{}<|end_header_id|>\n\n"), "<|eot_id|>", ("<|eot_id|>", "<|start_header_id|>"),
    {"<|": "< |"},
)  # fmt: skip
ZEPHYR = TurnMarks(_each("<|{}|>\n"), "</s>\n", ("</s>", "<|user|>", "<|system|>"), {"<|": "< |", "</s>": "< /s>"})
AIROBOROS = TurnMarks(
    {"system": "", "user": "USER: ", "assistant": "ASSISTANT:"}, "\n", ("\nUSER:", "\nASSISTANT:"),
    {"USER:": "USER :", "ASSISTANT:": "ASSISTANT :"},
)  # fmt: skip
NEURAL_CHAT = TurnMarks(
    {role: f"### {role.capitalize()}:\n" for role in _ROLES}, "\n", ("\n### User:", "\n### Assistant:"),
    {f"### {role.capitalize()}:": f"### {role.capitalize()} :" for role in _ROLES},
)  # fmt: skip

MARKS: Mapping[str, TurnMarks] = {
    "text": CHATML, "llama3": LLAMA3, "zephyr": ZEPHYR, "airoboros": AIROBOROS, "neural-chat": NEURAL_CHAT,
}  # fmt: skip
"""Marks by the value of `AgentConfigured.calling`."""
