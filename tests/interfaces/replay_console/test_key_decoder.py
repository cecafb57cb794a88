"""Decode the bytes of a terminal into keys."""

import pytest

from everlog.interfaces.replay_console.key_decoder import keys_of


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ("q", ["q"]),
        ("nn ", ["n", "n", " "]),
        ("\x1b[C\x1b[D", ["right", "left"]),
        ("\x1bOC", ["right"]),
        ("\x1b[1;2C\x1b[1;2D", ["shift-right", "shift-left"]),
        ("\x1b[H\x1b[4~", ["home", "end"]),
        ("bob\n", ["b", "o", "b", "enter"]),
        ("é漢\r\x7f", ["é", "漢", "enter", "backspace"]),
        ("\x1b[15~x", ["x"]),
        ("\x04", ["end of input"]),
    ],
)
def test_keys(sent: str, keys: list[str]) -> None:
    """Characters stand for themselves, special keys have names, and unknown keys are ignored."""
    assert keys_of(sent, over=False) == (keys, "")


def test_a_key_that_comes_in_pieces() -> None:
    """The decoder keeps the first bytes of a key until the rest arrives."""
    for cut in (1, 2, 3):
        keys, left = keys_of("\x1b[1;2C"[:cut], over=False)
        assert (keys, left) == ([], "\x1b[1;2C"[:cut])
    assert keys_of("\x1b[" + "C", over=False) == (["right"], "")


def test_a_lone_escape_is_a_key() -> None:
    """An escape without a following character is a key."""
    assert keys_of("\x1b", over=True) == (["escape"], "")
    assert keys_of("", over=True) == ([], "")
    assert keys_of("\x1bx", over=False) == (["escape", "x"], "")
