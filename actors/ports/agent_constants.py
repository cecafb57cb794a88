"""Limits of the agents, with their unit last in the name, and where each comes from."""

from everlog.events.times import MICROSECONDS

OFFLINE = "offline"
"""The name of the embedded, rule-based stand-in for a model."""

SEND_MESSAGE = "send_message"
"""The function by which an agent speaks to people."""

RENDERER = 1
"""Version of `render.py` and `fit.py`: raised when the same context gives other bytes, or is made to fit otherwise."""

BLOCK_CHARS = 2000
"""Limit of a memory block where none is given (MemGPT)."""

WINDOW_TOKENS = 8192
"""Context window where none is given and the model is not known."""

WINDOW_TOKENS_MIN = 4096
"""Smallest window that holds the prompt, the functions and a few messages."""

WINDOW_TOKENS_MAX = 100_000_000
"""Largest window that is believed."""

WINDOWS_TOKENS = {"gpt-4o": 128_000, "gpt-4.1": 1_000_000, "gpt-5": 400_000, "gpt-4-turbo": 128_000}
"""Context windows of models known by the beginning of their name."""

REPLY_FRACTION = 1 / 16
"""Part of the window left free for the reply."""

GGUF_REPLY_FRACTION = 1 / 8
"""Part of the window that a reply of a model in a file may take where no sampling says so: a base model never ends."""

TOKENS_PER_BYTE = 0.3
"""Estimate before the first usage figure: a little more than English text costs."""

TOKENS_PER_BYTE_OF = {
    "gpt-": 0.27, "o1": 0.27, "o3": 0.27, "o4": 0.27, "gemini": 0.29, "gemma": 0.29, "llama-3": 0.27, "qwen": 0.28,
    "deepseek": 0.28, "claude": 0.33, "mistral": 0.32, "llama-2": 0.34,
}  # fmt: skip
"""The same of families of models, by the beginning of the name, or of its last part: a tenth above what requests in
English cost with a vocabulary of that size. Gemma's was measured (0.268); one reply puts any of them right."""

SCHEMA_SHARE = 0.55
"""Part of a request held to a schema that the model reads: the schema, about half of it, goes to the grammar."""

TOKENS_MAX = 2**53
"""Largest count of tokens that is believed of a provider."""

TOKENS_PER_BYTE_MIN, TOKENS_PER_BYTE_MAX = 0.02, 1.0
"""A token is a byte or more, and hardly ever above fifty."""

PAGES_MAX = 1_000_000
"""Last page of a search that can be asked for."""

PAGE_RESULTS = 5
"""Results on one page of a search (MemGPT)."""

ARCHIVAL_CHARS_MAX = 1_000_000
"""Longest text of one memory: what a person pastes. The index keeps it in parts."""

TAGS_MAX = 32
"""Tags of one memory."""

TAG_CHARS_MAX = 100
"""Longest tag."""

RESULT_CHARS_MAX = 3000
"""Longest function result that the model is shown, searches excepted (MemGPT)."""

PAUSE_MINUTES_MAX = 360
"""Longest pause of timed heartbeats, inclusive (MemGPT)."""

FIRST_ATTEMPTS_MAX = 10
"""Replies asked for when the first message is verified (MemGPT)."""

SUMMARY_WORDS = 100
"""Words asked of a summary (MemGPT)."""

SUMMARY_WORDS_SHORTER = 40
"""Words asked for when the first summary was too long."""

SUMMARY_FRACTION_MAX = 0.15
"""Part of the window that a summary may take; a longer one is refused."""

SHOWN_CHARS_MIN = 200
"""A record or block is never shown shorter than this."""

GATEWAY_ATTEMPTS_MAX = 4
"""Tries of one request, for failures where trying again can help."""

GATEWAY_TIMEOUT_S = 120
"""Longest wait for one answer; of a stream, for its next byte."""

CONNECT_S = 15
"""Longest wait for a connection to a model endpoint."""

REPLY_BYTES_MAX = 16 << 20
"""Longest answer of a model endpoint that is read."""

STREAM_END_S = 1
"""Longest wait for the end of a stream after all of its reply has come."""

INBOX_MAX = 1000
"""Inputs of one agent that may wait for their turn; a further one is refused."""

LISTENERS_MAX = 1000
"""Callers of one agent that may wait for answers; a further one is refused."""

WATCH_S = 20
"""Who watches an agent says so again this often; one who is gone keeps it in memory no longer than this."""

IDLE_S = 300
"""An agent that nobody uses for so long is let go of."""

LATE_US = 60 * MICROSECONDS
"""A timed heartbeat that comes later than this after it was due is marked late."""

TIMER_LOOK_S = 60
"""The schedule looks at the clock at least this often: a clock may be set, a machine may have slept."""

TIMER_RETRY_US = 60 * MICROSECONDS
"""When an agent that could not be woken is tried again."""

BEATS_MAX = 1000
"""Timed heartbeats that a schedule has under way at once; what is due beyond them waits, and is late."""

BEATS_GATHERED = 100
"""With so many under way, the next ones are sent together."""

TIMER_TICK_S = 0.05
"""So long they are gathered then."""

TIMED_AGENTS_MAX = 1_000_000
"""Agents whose timers one schedule keeps, at about 400 bytes each; those of a further one are left in its log."""

TIMER_AT_MAX = 253_402_300_799 * MICROSECONDS
"""Latest time that a timer can be due: the end of the year 9999."""

TIMER_EVERY_S_MAX = 100 * 366 * 24 * 3600
"""Longest time between two heartbeats of a timer: a hundred years."""

RESENDS_MAX = 5
"""How often a command is sent again because the process that had it died."""

RESTARTS_MAX = 3
"""A host that dies more often in a row is started for nobody's command more than once."""

RECOVERY_WAIT_S = 4
"""After a second death in a row, or a start that failed, so long until the next try; then four times as long."""

RECOVERY_WAIT_S_MAX = 3600
"""The longest time between two tries."""

STEADY_S = 600
"""A host that has lived so long does not die in a row."""

LOOK_AGAIN_S = 60
"""A host that is dead to everybody but itself may still write for a while: its log is read again after so long."""

RECOVERIES_MAX = 1000
"""Hosts that finish what was unfinished, at once; the others wait."""

ASKS_MAX = 32
"""Requests to model endpoints that are under way at once in one gateway."""

ASKS_WAITING_MAX = 10_000
"""Requests that may wait in a gateway for their turn; a further one is refused."""

ASKS_WAITING_AGENT_MAX = 100
"""Requests of one agent that may wait in a gateway for their turn; a further one is refused."""

ASKS_GATHER_S = 0.004
"""Answers to requests that came together, and are there within so many seconds of each other, go back together."""

ENDPOINT_IDLE_S = 60
"""A connection to a model endpoint that nobody needed for so long is closed."""

BACKOFF_S = 0.5
"""Wait before a request is tried again; it doubles with each try."""

BACKOFF_S_MAX = 8
"""Longest wait that doubling comes to."""

PAUSE_S_MAX = 60
"""An endpoint that asks to be left alone for longer refuses what waits for it; for less, it waits."""

PROBE_S = 10
"""How often an endpoint that refused the key is tried again, by one request."""

BREAK_AFTER = 10
"""Tries of one model that fail in a row, after which it is left alone for a while."""

BREAK_S = 30
"""For so long; then one request finds out whether it answers again."""

CALLS_MAX = 100
"""Calls that a Ray actor may have under way: its callers, and what waits for its death."""

GATEWAY_CALLS_MAX = 10_000
"""The same for the gateway, whose own queues are the fair ones."""

ACTIVATIONS_MAX = 4
"""Hosts that a supervisor starts at once."""

SHARD_AGENTS_MAX = 4000
"""Agents of one shard that are in memory at once; the one that was used longest ago makes room for another."""

SHARD_COMMANDS_MAX = 20_000
"""Commands of one shard that may be under way, those that only watch included; a further one is refused."""

BUSY_S = 2
"""Who is refused because a queue is full may try again after so long."""

HEARD_MAX = 1000
"""Commits that may wait for one who watches; what comes after them is told once these were heard."""

PREVIEW_CHARS_MAX = 100_000
"""Characters of a reply on its way that may wait for one who hears of it; the rest is told when it is durable."""

SHARD_TEND_S = 5
"""A shard looks this often for idle agents, at what waits to be sealed, and at the memory that it could give back."""

SHARD_SEAL_BYTES = 32 * 2**20
"""Frames that a shard with commands under way seals; at rest it seals less. Who opens a log that was left with so many
reads them all, 0.6 s of CPU, and waking one agent from among them takes 30 ms: 18 ms and 1 ms for each MiB.
"""

SHARD_MEMORY_MB = 2048
"""Memory that the projections of one shard may use."""

SHARD_RECOVERIES_MAX = 100
"""Agents of one shard whose unfinished turns are finished at once."""

STARTS_WAITING_MAX = 1000
"""Hosts that callers wait for while others are started; a further one is refused."""

TIMED_STARTS_WAITING_MAX = 100
"""The same for hosts that are wanted for a heartbeat only: a further heartbeat is tried again later."""

STANDING_BYTES = 64 * 2**20
"""Records of theirs, in memory."""

STANDING_AGENTS = 500
"""Agents whose logs are looked at together."""

ORDERS_MAX = 10_000
"""Commands that one call carries to a host."""

OBJECT_STORE_BYTES = 100 * 2**20
"""Shared memory of a local Ray: nothing of ours goes through it."""

ANSWER_S = 15
"""A host that says nothing for so long is held up, or hangs."""

START_S = 60
"""A host that has not started by then has no room."""

CLOSE_S = 10
"""Hosts have so long to let go of their agents when the cluster stops."""

FOLLOW_S, FOLLOW_S_MAX = 0.5, 5.0
"""Between two looks of the archive at the logs, while there is something new and where there is nothing."""

FOLLOW_AT_ONCE = 64
"""Logs that are followed before a question is answered that came meanwhile."""

SEARCH_S, MEANING_S = 15.0, 2.0
"""How long a host waits for the archive: for a search in it, and for what it can do without."""

SPARE_S = 5.0
"""For so long a host that got no answer does without what it can do without: nobody waits again and again."""

ARCHIVE_NICENESS = 5
"""Of the archive's process: agents come first."""

SECTIONS_MAX = 100
"""Sections of one system prompt."""

SECTION_CHARS_MAX = 200_000
"""Characters of a section, as a template and as it is shown."""

TEMPLATE_NODES_MAX = 5_000
"""Parts of one template: a text between two signs is one, an expression some."""

TEMPLATE_LOOPS_MAX = 2
"""Loops of a template that stand in each other."""

TEXT_CHARS_MAX = 20_000
"""Characters of a text that a template makes or compares: what stands outside of its signs is not counted."""

RANGE_MAX = 1_000
"""Numbers of one range in a template."""

DESCRIPTION_CHARS_MAX = 1_000
"""Characters that say what a memory block is for."""

BLOCK_CHARS_MAX = 10**8
"""Largest limit that a block can be given."""

BLOCKS_MAX = 200
"""Blocks of one agent."""
