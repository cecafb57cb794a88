"""Limits and defaults of agents, with the unit last in the name. "(MemGPT)": the value is MemGPT's.

Used by agents, hosts, gateway and front ends. `verify` computes with today's values: raise `RENDERER` if a new value
changes a request; one that changes a function's result makes `verify` report mismatches in older logs.
"""

from everlog.events.times import MICROSECONDS

OFFLINE = "offline"
"""Name of the embedded, rule-based stand-in for a model."""

SEND_MESSAGE = "send_message"
"""Name of the function by which an agent sends messages to people."""

THINKING_ALOUD = "gpt-4"
"""Beginning of the names of models whose first reply must have an inner monologue, if it is checked (MemGPT)."""

RENDERER = 1
"""Version of the rendered bytes. Raise it when `render_request.py` or `context_fit.py` gives other bytes for the same
context: `verify` checks only calls whose configuration has this version.
"""

BLOCK_CHARS = 2000
"""Default limit of a memory block in characters (MemGPT)."""

WINDOW_TOKENS = 8192
"""Default context window in tokens, for models that are not in WINDOWS_TOKENS."""

WINDOW_TOKENS_MIN = 4096
"""Smallest context window in tokens: it holds the prompt, the functions and a few messages."""

WINDOW_TOKENS_MAX = 100_000_000
"""Largest accepted context window in tokens. A larger figure is taken for a mistake."""

SMALL_WINDOW_TOKENS = 6144
"""Largest context window, in tokens, with which a new agent gets the preset `small` unless another one is named: prompt
and functions of the preset `chat` would fill half of such a window.
"""

WINDOWS_TOKENS = {"gpt-4o": 128_000, "gpt-4.1": 1_000_000, "gpt-5": 400_000, "gpt-4-turbo": 128_000}
"""Context windows in tokens, by the beginning of the model's name."""

REPLY_FRACTION = 1 / 16
"""Fraction of the window that is left free for the reply."""

GGUF_REPLY_FRACTION = 1 / 8
"""Maximum length of a reply of a GGUF model, as a fraction of the window, unless sampling sets another: a base model
never stops by itself.
"""

TOKENS_PER_BYTE = 0.3
"""Estimated tokens per byte of a request until the first usage figure arrives: a little more than English text
needs.
"""

TOKENS_PER_BYTE_OF = {
    "gpt-": 0.27, "o1": 0.27, "o3": 0.27, "o4": 0.27, "gemini": 0.29, "gemma": 0.29, "llama-3": 0.27, "qwen": 0.28,
    "deepseek": 0.28, "claude": 0.33, "mistral": 0.32, "llama-2": 0.34,
}  # fmt: skip
"""Like TOKENS_PER_BYTE, for families of models: by the beginning of the model's name, or of the last part of that name.
Each value is a tenth above the tokens per byte of English requests with a vocabulary of that size. Only Gemma's was
measured (0.268). The usage figure of the first reply replaces any of these values.
"""

SCHEMA_SHARE = 0.55
"""Fraction of a request with calling format `schema` that counts as prompt tokens: the schema, about half of the
request, goes to the endpoint's grammar and not to the model.
"""

TOKENS_MAX = 2**53
"""Largest count of tokens that is accepted from a provider."""

TOKENS_PER_BYTE_MIN, TOKENS_PER_BYTE_MAX = 0.02, 1.0
"""Limits of measured tokens per byte, both inclusive: a token has at least one byte, and hardly ever more than
fifty.
"""

PAGES_MAX = 1_000_000
"""Number of the last page of a search. A higher number is taken as this one."""

PAGE_RESULTS = 10
"""Results on one page of a search. MemGPT has 5 whole ones; here a long one is its best passage."""
PASSAGE_CHARS = 260
"""Maximum characters of a result that a page shows; of a longer text the best passage."""
READ_CHARS = 3000
"""Maximum characters of one page of a text that is read whole."""

ARCHIVAL_CHARS_MAX = 1_000_000
"""Maximum characters of one archival memory: room for text that a person pastes. The index stores long texts in
parts.
"""

TAGS_MAX = 32
"""Maximum number of tags of one memory."""

TAG_CHARS_MAX = 100
"""Maximum characters of one tag."""

RESULT_CHARS_MAX = 3000
"""Maximum characters of a function result that the model is shown; searches are exempt (MemGPT)."""

FUNCTION_LIMIT_S = 120
"""Default of `timeout_s`: seconds that a call of a user's function may take."""

FUNCTION_GRACE_S = 5
"""Seconds that a cancelled coroutine function has to clean up. Then it is left behind."""

FUNCTION_THREADS_MAX = 64
"""Maximum number of functions of one process that run in threads at a time; further calls wait in order."""

FUNCTION_PLACE_S = 30
"""Seconds after which a running function no longer counts against FUNCTION_THREADS_MAX, so that functions that hang do
not keep others from starting.
"""

FUNCTION_THREADS_OVERDUE_MAX = 448
"""Maximum number of running functions that no longer count against FUNCTION_THREADS_MAX: further ones keep counting."""

FUNCTION_WAIT_S = 600
"""Seconds that a call waits for a thread. Then the call fails, and its function is not run."""

PAUSE_MINUTES_MAX = 360
"""Maximum minutes for which timed heartbeats can be paused, inclusive (MemGPT)."""

SUMMARY_WORDS = 100
"""Words that the model is asked to write for a summary (MemGPT)."""

SUMMARY_WORDS_SHORTER = 40
"""Words that the model is asked to write after a summary that was too long."""

SUMMARY_FRACTION_MAX = 0.15
"""Largest fraction of the window that a summary may take; a longer summary is rejected."""

SHOWN_CHARS_MIN = 200
"""Smallest number of characters to which a record or block is shortened."""

GATEWAY_ATTEMPTS_MAX = 4
"""Maximum attempts for one request. Only failures that another attempt can cure are retried."""

GATEWAY_TIMEOUT_S = 120
"""Seconds in which an endpoint must answer. For a stream: seconds in which its next piece must arrive; comments are
none. `silence_s` of an endpoint in models.toml replaces it.
"""

CALL_S_MAX = 900
"""Seconds in which a call of a model must end, with all its tries and the pauses between them. `call_s` of an endpoint
in models.toml replaces it.
"""

CONNECT_S = 15
"""Seconds in which a connection to a model endpoint must open."""

REPLY_BYTES_MAX = 16 << 20
"""Maximum bytes of an endpoint's answer. The limit keeps a runaway answer from filling the memory."""

STREAM_END_S = 1
"""Seconds to wait for the end of a stream whose reply is complete. Some servers keep the stream open."""

INBOX_MAX = 1000
"""Maximum inputs of one agent that wait for their turn; a further input is refused with `Busy`."""

SUBSCRIBERS_MAX = 1000
"""Maximum subscribers of one agent; a further one is refused with `Busy`."""

WATCH_S = 20
"""Seconds after which a `watch` subscription expires. Live clients renew it, so a dead client does not keep an agent in
memory for longer than this.
"""

IDLE_S = 300
"""Seconds without use after which an agent is unloaded."""

LATE_US = 60 * MICROSECONDS
"""Microseconds after its due time from which on a timed heartbeat is marked late."""

TIMER_CHECK_S = 60
"""Maximum seconds between two looks of the timer schedule at the clock: meanwhile the clock may have been set, or the
machine may have slept.
"""

TIMER_RETRY_US = 60 * MICROSECONDS
"""Microseconds until a timer is retried whose agent could not be activated."""

HEARTBEATS_IN_FLIGHT_MAX = 1000
"""Maximum timed heartbeats in flight in one schedule. Further due heartbeats wait, and may be late."""

BEATS_BATCHED_FROM = 100
"""Heartbeats in flight from which on the schedule collects further ones, and sends them as one batch."""

HEARTBEAT_BATCH_S = 0.05
"""Seconds for which such a batch is collected."""

TIMED_AGENTS_MAX = 1_000_000
"""Maximum agents whose timers one schedule keeps in memory, at about 400 bytes each. Timers of further agents stay in
their logs.
"""

TIMER_AT_MAX = 253_402_300_799 * MICROSECONDS
"""Latest due time of a timer in microseconds UTC: the end of the year 9999."""

TIMER_EVERY_S_MAX = 100 * 366 * 24 * 3600
"""Maximum seconds between two heartbeats of a timer: a hundred years."""

RESENDS_MAX = 5
"""Maximum number of times that a command is sent again after its process died. The command's id makes a repeat
idempotent.
"""

RESTARTS_MAX = 3
"""Deaths of a host in a row up to which a command may restart the host again and again. After more deaths, a command
starts the host once: the command itself may be the cause.
"""

RECOVERY_WAIT_S = 4
"""Seconds until a host is restarted after its second death in a row, or after a failed start. Each further failure
makes the wait four times as long.
"""

RECOVERY_WAIT_S_MAX = 3600
"""Maximum seconds between two such restarts."""

STABLE_HOST_S = 600
"""Seconds of life after which a host's death no longer counts as one in a row."""

REREAD_LOG_S = 60
"""Seconds after which the log of a host presumed dead is read again: if the host was only cut off from the network, it
may have appended records meanwhile.
"""

RECOVERIES_MAX = 1000
"""Maximum hosts that finish unfinished turns at the same time; further hosts wait."""

ASKS_MAX = 32
"""Maximum requests to model endpoints that are in flight in one gateway."""

ASKS_WAITING_MAX = 10_000
"""Maximum requests that wait in a gateway for their turn; a further request is refused."""

ASKS_WAITING_AGENT_MAX = 100
"""Maximum requests of one agent that wait in a gateway for their turn; a further request is refused."""

MODEL_REPLIES_GATHER_S = 0.004
"""Seconds for which answers to a batch of requests are collected: answers that arrive within this time of each other
are returned together.
"""

ENDPOINT_IDLE_S = 60
"""Seconds after which an unused connection to a model endpoint is closed."""

BACKOFF_S = 0.5
"""Seconds before a request is tried again. Each further attempt doubles the wait."""

BACKOFF_S_MAX = 8
"""Maximum seconds that such a wait doubles to."""

PAUSE_S_MAX = 60
"""Maximum seconds for which an endpoint's queue waits when the endpoint asks for a pause. If the endpoint asks for a
longer pause, its waiting requests fail at once.
"""

PROBE_S = 10
"""Minimum seconds between the single requests that test an endpoint which refused the key."""

BREAKER_FAILURES = 10
"""Failed attempts of one model in a row after which its circuit breaker opens: requests to the model fail at once."""

BREAKER_OPEN_S = 30
"""Minimum seconds for which an open circuit breaker stays open; then one request tests whether the model answers
again.
"""

CALLS_MAX = 100
"""Maximum calls that a Ray actor has in flight: those of its callers, and those that wait for its death."""

ACTIVATIONS_MAX = 4
"""Maximum hosts that a supervisor starts at the same time."""

SHARD_AGENTS_MAX = 4000
"""Maximum agents of one shard in memory. The agent that was used longest ago is unloaded to make room for another."""

SHARD_COMMANDS_MAX = 20_000
"""Maximum commands in flight in one shard, `watch` included; a further command is refused."""

BUSY_S = 2
"""Seconds after which a caller may retry a command that a full queue refused."""

WATCHED_COMMITS_MAX = 1000
"""Maximum commits queued for one `watch` subscriber. Later commits are not queued: the client reads them from the log
once it has taken these.
"""

PREVIEW_CHARS_MAX = 100_000
"""Maximum characters of a streamed reply that are queued for one subscriber. The rest of that reply is not streamed;
its record is delivered when the reply is durable.
"""

SHARD_TEND_S = 5
"""Maximum seconds between two rounds in which a shard unloads idle agents, seals its log and gives back unused
memory.
"""

SHARD_SEAL_BYTES = 32 * 2**20
"""Bytes of frames at which a shard with commands in flight seals its log; an idle shard seals at fewer. The limit
bounds the cost of opening a log that was left unsealed: for 32 MiB, 0.6 s of CPU to read it and 30 ms to activate one
agent (18 ms and 1 ms for each MiB).
"""

SHARD_MEMORY_MB = 2048
"""Maximum memory in MB of the DuckDB database that holds the projections of one shard."""

SHARD_RECOVERIES_MAX = 100
"""Maximum agents of one shard whose unfinished turns are finished at the same time."""

STARTS_WAITING_MAX = 1000
"""Maximum hosts whose start callers wait for while other hosts are started; a further start is refused."""

TIMED_STARTS_WAITING_MAX = 100
"""The same for hosts that are started for a heartbeat only; a further heartbeat is retried later."""

PENDING_READ_BYTES = 64 * 2**20
"""Bytes of log records at which a batch of agents is searched for unfinished turns and timers. It bounds the memory."""

PENDING_READ_AGENTS = 500
"""Number of agents at which such a batch is searched."""

COMMANDS_PER_CALL_MAX = 10_000
"""Maximum commands in one call to a host."""

OBJECT_STORE_BYTES = 100 * 2**20
"""Bytes of shared memory of a local Ray cluster. The value is small because everlog puts nothing into it."""

ANSWER_S = 15
"""Seconds without an answer after which a host counts as unresponsive."""

START_S = 60
"""Seconds in which a new host must start. A host that takes longer counts as one for which the cluster has no room."""

CLOSE_S = 10
"""Seconds that hosts have to unload their agents when the cluster stops; then they are killed."""

FOLLOW_S, FOLLOW_S_MAX = 0.5, 5.0
"""Shortest and longest wait in seconds between two reads of the logs by the archive. The wait doubles while nothing is
new.
"""

FOLLOW_LOGS_BATCH = 64
"""Number of logs that the archive reads in one go; waiting queries are answered between two goes."""

SEARCH_S = 15.0
"""Seconds that a search waits for the archive, or for the vectors of messages."""

ARCHIVE_RETRY_S = 5.0
"""Seconds for which searches of messages use words alone after the embedder gave no answer. Without the pause, each of
them would wait for SEARCH_S while an endpoint is down.
"""

EMBED_AHEAD_RECORDS = 2_000
"""Number of records from which an agent's messages are embedded when the agent is loaded. Those of a smaller agent take
less than 0.2 seconds, and are embedded by the first search.
"""

ARCHIVE_NICENESS = 5
"""`nice` value of the archive's process: agents get the CPU first."""

SECTIONS_MAX = 100
"""Maximum sections of one system prompt."""

SECTION_CHARS_MAX = 200_000
"""Maximum characters of a section, both as a template and rendered."""

TEMPLATE_NODES_MAX = 5_000
"""Maximum nodes in the syntax tree of one template: a stretch of plain text is one node, an expression several."""

TEMPLATE_LOOPS_MAX = 2
"""Maximum depth of nested loops in a template."""

TEXT_CHARS_MAX = 20_000
"""Maximum characters of a text that an expression in a template makes or compares. Text outside of expressions does not
count.
"""

RANGE_MAX = 1_000
"""Maximum numbers of one range in a template."""

DESCRIPTION_CHARS_MAX = 1_000
"""Maximum characters of a memory block's description."""

BLOCK_CHARS_MAX = 10**8
"""Largest limit, in characters, that a memory block can be given."""

BLOCKS_MAX = 200
"""Maximum memory blocks of one agent."""

DERIVATION_ATTEMPTS = 2
"""Requests that a derivation sends for one answer, if the first answer cannot be used."""
DERIVE_MESSAGES_MAX = 500
"""Most messages that one commit of a derivation concludes from."""
