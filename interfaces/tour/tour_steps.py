"""Steps of the tour as data: texts, commands, and strings that the output of each command holds.

Sequence numbers in the texts are exact: the tour's clock and ids are fixed, and the offline stand-in always gives the
same replies. `tests/interfaces/tour` holds every step to its output.

Used by `tour_runner`, `tour_shell` and `typed_line`.
"""

from typing import NamedTuple

KILL = "kill -9 %1"
"""The one command of the tour that belongs to the shell and not to everlog."""

FILES = {"osprey.txt": "First name: Chad\nThe user said: I sail\nThe user said: My boat is called Osprey\n"}
"""Files in the working folder of the tour, by name."""


class TourQuestion(NamedTuple):
    """A question after the output of a step."""

    text: str
    answer: str
    hint: str


class TourStep(NamedTuple):
    """One step: read, type, look."""

    name: str
    """Name for `--from`."""
    lesson: str
    text: str
    """Explanation before the command: 2 to 5 sentences. Backquotes mark code."""
    command: str
    look: str
    """Place in the output to look at, and its meaning."""
    shows: tuple[str, ...]
    """Strings that the output must hold; the tests check them."""
    writes: bool = False
    """True if later steps need the records of this step."""
    question: TourQuestion | None = None


TALK, MEMORY, CRASH, TRAVEL = "Talk", "Look into its memory", "Kill it and come back", "Travel in time"
FORK, RERUN, SQL, TRUST = "Fork", "Ask what if", "Ask SQL", "Check and erase"

STEPS = (
    TourStep(
        "hello",
        TALK,
        "An everlog agent is a log of events on your disk. `everlog send` says one thing to an agent and prints the "
        "answer; an agent that does not exist yet is created. This tour uses a rule-based stand-in as its model, so "
        "you need no key and no network.",
        'everlog send sam "Hi, my name is Chad and I sail"',
        "Sam greets Chad by name. Before sam answered, your message was already on the disk.",
        ("Nice to meet you, Chad. I noted that you sail.",),
        writes=True,
    ),
    TourStep(
        "boat",
        TALK,
        "In your shell each command is a process of its own: it reads the log, continues as the same agent, and ends. "
        "Nothing has to keep running between two messages. With `-v` you also see the thoughts of the agent and the "
        "functions that it calls.",
        'everlog send sam "My boat is called Heron" -v',
        "The line with ƒ is a function call. The agent edits its own memory by calling functions.",
        ("ƒ core_memory_append", "I noted that your boat is called Heron."),
        writes=True,
    ),
    TourStep(
        "memory",
        MEMORY,
        "An agent has core memory: short blocks of text that the model sees in every request. The block `persona` "
        "describes the agent, and the block `human` describes you. Every event in the log has a sequence number, "
        "written `seq`.",
        "everlog memory sam",
        "The heading of each block ends with the seq of the event that last wrote the block.",
        ("My boat is called Heron", "seq 18, 1 minute ago"),
        question=TourQuestion(
            "Which event wrote the line about the boat? Type its seq.",
            "18",
            "Look at the heading of the block `human`: the number after the word `seq`.",
        ),
    ),
    TourStep(
        "events",
        MEMORY,
        "The events are the truth, and everlog computes memory from the events. Look at the events of your second "
        "message. Events are only ever added at the end of the log.",
        "everlog events sam --from 16 --to 21",
        "Your words are event 16, the reply of the model is event 17, and event 18 is the edit of the memory. Each "
        "value leads back to the event that wrote it.",
        ("16  2026-01-05", "user_message", "18  2026-01-05", "memory_edited"),
    ),
    TourStep(
        "window",
        MEMORY,
        "A model reads a limited number of tokens, its context window. So the model sees core memory and the newest "
        "messages, and the agent searches its log for the rest. When the window is nearly full, the agent is warned, "
        "and old messages are replaced by a summary.",
        "everlog pressure sam",
        "The bars show how full the window was at the last call, and how full it will be at the next one. Later, try "
        "`everlog context sam`: it prints everything that the model sees.",
        ("last call", "of 8,192"),
    ),
    TourStep(
        "crash",
        CRASH,
        "Now break something. Send a message in the background, with `&` at the end as in a shell. For this one "
        "message the model is very slow, so that you have time to kill the process in the middle of its turn.",
        'everlog send sam "Remind me to buy a rope" &',
        "A real process is running now: it has written your message to the disk and is waiting for the model.",
        ("[1] running",),
        writes=True,
    ),
    TourStep(
        "kill",
        CRASH,
        "`kill -9` ends a process at once, like a power cut. The process gets no chance to save anything. `%1` is the "
        "job that you have just started.",
        KILL,
        "The process is dead, and its turn is unfinished.",
        ("[1] killed by signal 9",),
        writes=True,
    ),
    TourStep(
        "after",
        CRASH,
        "What is left after the crash? Ask the log for everything from event 22 on.",
        "everlog events sam --from 22",
        "Your message is there, because everlog wrote the message to the disk before it asked the model. A reply is "
        "not there: the model never answered.",
        ("22  2026-01-05", "Remind me to"),
    ),
    TourStep(
        "return",
        CRASH,
        "The next command that opens the agent finds the unfinished turn in the log. That turn is finished first, "
        "and then your new message is answered.",
        'everlog send sam "What is on my to-do list?"',
        "The first line answers the message that you sent before the crash. The second line answers the new message. "
        "Nothing was lost, and nothing happened twice.",
        ('I noted: "buy a rope" is on your to-do list.', "On your to-do list: buy a rope."),
        writes=True,
    ),
    TourStep(
        "past",
        TRAVEL,
        "Because state is computed from events, everlog can compute the state of any moment. `--as-of` takes a seq or "
        "a time. Look at the memory as of event 15, before you mentioned the boat.",
        "everlog memory sam --as-of 15",
        "The block `human` says nothing about a boat or a rope. The header says `as of seq 15`.",
        ("as of seq 15", "The user said: I sail"),
    ),
    TourStep(
        "diff",
        TRAVEL,
        "`everlog diff` compares two moments of one agent. Every change in memory and context is shown with the "
        "event that caused the change.",
        "everlog diff sam 21 31",
        "The green line with + is new. The line below it names the edit, the reply of the model that made the edit, "
        "and the message of the user that led to the reply.",
        ("+ To do: buy a rope", "seq 25 memory_edited"),
        question=TourQuestion(
            "Which event holds your words that led to the new line? Type its seq.",
            "22",
            "The words `user_message seq ...` stand right before what you said.",
        ),
    ),
    TourStep(
        "fork",
        FORK,
        "A fork is a second agent that shares the past of the first one up to a moment of your choice. Nothing is "
        "copied, so a fork costs the same for a short log and a long one. Fork sam at event 15, before the boat.",
        "everlog fork sam --as-of 15 --new-name sam-then",
        "The agent sam is unchanged. The agent sam-then has its own future from here on.",
        ("Created sam-then from sam as of seq 15.",),
        writes=True,
    ),
    TourStep(
        "osprey",
        FORK,
        "The fork knows Chad, and does not know the boat. Give the fork another boat.",
        'everlog send sam-then "My boat is called Osprey"',
        "The fork has written this to its own log.",
        ("I noted that your boat is called Osprey.",),
        writes=True,
    ),
    TourStep(
        "heron",
        FORK,
        "Does the first agent know about the Osprey? Ask sam.",
        'everlog send sam "What is my boat called?"',
        "The two agents share one past and do not influence each other.",
        ("Your boat is called Heron.",),
        writes=True,
    ),
    TourStep(
        "rerun",
        RERUN,
        "What would sam have said with another memory? `everlog rerun` forks the agent before an event, gives the fork "
        "the same inputs again, and compares. Change the block `human` to the text of the file osprey.txt, "
        "where the boat is called Osprey. With a model of your own you can also change the model or the system prompt.",
        "everlog rerun sam --from 32 --block human=osprey.txt --new-name what-if",
        "`recorded` is what sam answered and `rerun` is what the fork answered. The table below compares the cost.",
        ("Your boat is called Heron.", "Your boat is called Osprey.", "The first difference is in turn 5"),
        writes=True,
    ),
    TourStep(
        "tokens",
        SQL,
        "All logs of a store can be asked one SQL question. The views, such as `model_calls`, are the same for three "
        "agents and for three thousand.",
        'everlog sql "SELECT agent_id, sum(tokens) AS tokens FROM model_calls GROUP BY agent_id ORDER BY agent_id"',
        "Each agent has one row. A fork counts only what the fork itself has spent, so that sums are right.",
        ("sam-then", "what-if", "tokens"),
    ),
    TourStep(
        "boats",
        SQL,
        "Now ask which agents know of a boat, and since which event. The view `memory_history` has every value that a "
        "memory block ever had.",
        "everlog sql \"SELECT agent_id, min(seq) AS since FROM memory_history WHERE value LIKE '%boat%' GROUP BY ALL "
        'ORDER BY agent_id"',
        "Event 18 of sam is the edit that you looked at in the step `memory`.",
        ("sam            18", "sam-then       19"),
    ),
    TourStep(
        "verify",
        TRUST,
        "Is the log really complete? `everlog verify` renders every request that was ever sent to a model again, from "
        "the events alone. Each request is compared with the fingerprint in the log.",
        "everlog verify --all",
        "`no difference` means that everlog rebuilt the same bytes for every request.",
        ("3 agents: 12 model calls replayed, no difference",),
    ),
    TourStep(
        "erase",
        TRUST,
        "A log that keeps everything must also be able to forget. `everlog erase` removes the content of records from "
        "every file of the store. Erasing cannot be undone, so it normally asks first; `--yes` answers the question.",
        "everlog erase sam --from 22 --to 22 --yes",
        "The words of event 22 are gone from every file, and the place of the event in the log stays. Later events "
        "that repeat the words are listed; `--derived` would have erased them too.",
        ("Erased 1 record of sam (seq 22).",),
        writes=True,
    ),
    TourStep(
        "check",
        TRUST,
        "`everlog log check` reads every byte of the logs and compares them with their checksums. Does the log still "
        "hold together after the erasure?",
        "everlog log check --all",
        "No log has damage. That was the last step.",
        ("sam:", "no damage"),
    ),
)
"""Every step, in order."""

NAMES = tuple(step.name for step in STEPS)

NEXT = (
    ("everlog chat sam", "talk to an agent of your own; Ctrl-C cancels a turn"),
    ("everlog chat ann --model gpt-4o", "use a model (OPENAI_API_KEY), or --base-url for a local server"),
    ("everlog replay sam", "watch the life of an agent again, event by event"),
    ("everlog context sam", "see what the model sees"),
    ("everlog load sam FOLDER", "give an agent documents to search"),
    ("everlog explain", "read what each error means and how to fix it"),
)
"""Commands to try after the tour, each with a note."""
