"""Turns in which the agent says nothing to the user."""

from tests.support.cli.command_line import Line, completion


def test_a_turn_without_a_word_says_so(cli: Line):
    """If the agent says nothing in its turn, stderr says why and the exit code is 4; other inputs need no word."""
    cli.script.answers = [completion(thought="Hm.")]
    code, _, err = cli("send", "sam", "I am Chad")
    assert code == 4 and "ended without a message to you: it only thought" in err
    cli.script.answers = [completion(("core_memory_append", {"name": "human", "content": "Sails"}))]
    code, _, err = cli("send", "sam", "I sail")
    assert code == 4 and "it called no send_message" in err
    cli.script.answers = [completion(thought="Hm.")]
    assert cli("send", "sam", "--role", "login")[0] == 0


def test_an_unreadable_reply_is_named(cli: Line):
    """In the calling format `text` a reply that begins like a call and is none ends the turn, and stderr says so."""
    assert cli("create", "ann", "--model", "script", "--calling", "text")[0] == 0
    cli.script.answers = [completion(thought='{"weather": "fine"}')] * 2  # the first is refused
    code, _, err = cli("send", "ann", "Hello")
    assert code == 4 and "could not be read" in err
