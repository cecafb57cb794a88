"""Turn a request that resends a conversation into one run of one agent: append, fork, import what the log lacks, or
give the run that a request before it began.

Every id here is made of what the log has: two servers, or a request that is repeated while the first is at work, make
the same one, and the log takes it once.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from everlog.actors.agent.conversation_import import ImportedMessage
from everlog.events import BadInput, MessageSent, UserMessage
from everlog.events.times import MICROSECONDS, moment
from everlog.interfaces.http.conversations.client_history import (
    ClientExchange,
    answer_digest,
    question_digest,
)
from everlog.interfaces.http.conversations.conversation_log import AgentConversations, ConversationLog, LoggedExchange
from everlog.interfaces.http.conversations.resent_history import (
    Begin,
    Continue,
    ExchangeDigests,
    ForkBefore,
    SameRun,
    meaning_of,
)
from everlog.interfaces.http.core.idempotency import CommandIds, ids_of_key
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall
from everlog.store import is_shared

REPEATED_US = 600 * MICROSECONDS
"""Time after the newest record of a run in which the same request means the same run, microseconds: the longest that
clients wait before they repeat a request.
"""
BRANCHES_MAX = 10_000
"""Branches of one conversation."""
NO_NOTE = question_digest("")
"""Digest of the note of a message that has none, or the one of the message before."""
_TRIES = 5
"""Number of times that a request is compared with the log again because another server forked at the same moment."""
_OWN = "chat-"
"""Beginning of the ids of conversations whose clients have no name for them."""


class ResentRequest(NamedTuple):
    """A request that resends its conversation."""

    root: str
    """Stream of the agent that the client names."""
    name: str
    """Id of the conversation that the client gives; empty: the history alone says which it is."""
    prior: Sequence[ClientExchange | ExchangeDigests]
    """Exchanges before the question, as texts, or as digests if they come from the log itself."""
    question: str
    note: str = ""
    speaker: str = ""
    user: str = ""
    """Text that tells the users of a client apart: their conversations are never the same."""
    attempt: str = ""
    """Id that the client gives to this attempt: another one is no repeat. Empty: none."""


class ConversationRun(NamedTuple):
    """The run that answers a request."""

    stream: str
    """Agent that runs: the one that the client named, or a fork of it."""
    conversation: str
    run: str
    """Event id of the question."""
    message: UserMessage | None
    """Message to send under that id; None: it was sent before."""
    earlier: str = ""
    """Run that came before this one in the conversation; empty: none."""


class _Branch(NamedTuple):
    stream: str
    conversation: str
    exchanges: Sequence[LoggedExchange]
    """Exchanges that were not undone."""
    undone: int = 0


async def run_of_request(call: HttpCall, request: ResentRequest) -> ConversationRun:
    """Return the run of a request, after its fork or import was done. Raises the errors of agents, and the refusal of
    an attempt that was made before with another question.
    """
    log = call.service.conversations
    digests = [_digests(one) for one in request.prior]
    question = question_digest(request.question)
    ids = await _attempt_ids(call, request)
    for _ in range(_TRIES):
        branches = await _branches(log, request, digests, question)
        made = next((run for branch in branches if (run := _made(branch, ids, question))), None)
        if made is not None:
            return made
        decided = await _decided(call, request, digests, question, branches, ids)
        if decided is not None:
            return decided
    raise Refusal(503, "busy", "Other servers fork the conversation at this moment. Nothing was sent.", retry_after_s=1)


def _digests(exchange: ClientExchange | ExchangeDigests) -> ExchangeDigests:
    if isinstance(exchange, ExchangeDigests):
        return exchange
    return ExchangeDigests(question_digest(exchange.asked), answer_digest(exchange.answered))


async def _attempt_ids(call: HttpCall, request: ResentRequest) -> CommandIds | None:
    """Return the ids that the client's own id of the attempt gives; None without one."""
    key = call.request.headers.get("idempotency-key") or request.attempt
    return ids_of_key(key, request.root, call.service.ports.clock.now()) if key else None


async def _branches(
    log: ConversationLog, request: ResentRequest, prior: Sequence[ExchangeDigests], question: bytes
) -> Sequence[_Branch]:
    """Return the branches that a request may belong to."""
    talk = await log.of(request.root)
    if request.name:
        names: Sequence[str] = [request.name]
    else:
        mine = _prefix(request)
        found = talk.with_question(prior[0].asked if prior else question)
        names = [name for name in found if name.startswith(mine)]
    roots = [_branch(talk, request.root, name) for name in names]
    return [branch for root in roots for branch in await _with_forks(log, root)]


async def _with_forks(log: ConversationLog, root: _Branch) -> Sequence[_Branch]:
    """Return all branches of one conversation, oldest first. `root`: the one on the agent itself."""
    branches, name = [root], root.conversation
    while len(branches) < BRANCHES_MAX and log.knows(fork := branch_name(root.stream, name, len(branches))):
        branches.append(_branch(await log.of(fork), fork, name))
    return branches


def _branch(talk: AgentConversations, stream: str, conversation: str) -> _Branch:
    every = talk.exchanges(conversation)
    shown = [exchange for exchange in every if not exchange.hidden]
    return _Branch(stream, conversation, shown, len(every) - len(shown))


def branch_name(root: str, conversation: str, number: int) -> str:
    """Return the name of the fork of an agent that is a branch of a conversation. `number`: from 1."""
    return f"{root}.chat-{_hex(conversation, 8)}-{number}"


def is_branch(stream: str) -> bool:
    """Return True if an agent is a branch that `branch_name` named."""
    return root_of(stream) != stream


def root_of(stream: str) -> str:
    """Return the agent that a branch was forked from; the agent itself if it is no branch."""
    root, found, rest = stream.rpartition(".chat-")
    digest, _, number = rest.partition("-")
    return root if found and len(digest) == 8 and number.isdecimal() else stream


async def newest_branch(call: HttpCall, root: str, conversation: str) -> Sequence[LoggedExchange]:
    """Return the exchanges of the branch of a conversation in which something was said last; none for a new one."""
    log = call.service.conversations
    branches = await _with_forks(log, _branch(await log.of(root), root, conversation))
    return max((one.exchanges for one in branches if one.exchanges), key=lambda each: each[-1].at, default=())


def _prefix(request: ResentRequest) -> str:
    """Return the beginning of the ids of conversations whose clients have no name for them, for one user."""
    return f"{_OWN}{_hex(request.user, 8)}-"


def _new_name(
    call: HttpCall, request: ResentRequest, history: Sequence[ExchangeDigests], branches: Sequence[_Branch]
) -> str:
    """Return the id of a conversation that begins with a history: the same for a request that is repeated before the
    log has it, and another one for each conversation that began with the same words before.
    """
    said = " ".join(one.asked.hex() + one.answered.hex() for one in history)
    before = len({branch.conversation for branch in branches if branch.exchanges})
    return f"{_prefix(request)}{_hex(f'{call.caller.key_id} {said} {before}', 12)}"


def _hex(text: str, digits: int) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def _made(branch: _Branch, ids: CommandIds | None, question: bytes) -> ConversationRun | None:
    """Return the run that an attempt has made already. Raises the refusal of another question under the same id."""
    if ids is None:
        return None
    for place, exchange in enumerate(branch.exchanges):
        if exchange.run in (ids.id, ids.earlier):
            if exchange.asked != question:
                raise Refusal(
                    422, "duplicate-id", "A request with this Idempotency-Key was sent before, with another message. "
                    "Nothing was sent: give each message a key of its own.",
                )  # fmt: skip
            return ConversationRun(branch.stream, branch.conversation, exchange.run, None, _before(branch, place))
    return None


def _before(branch: _Branch, place: int) -> str:
    return branch.exchanges[place - 1].run if place else ""


async def _decided(
    call: HttpCall,
    request: ResentRequest,
    prior: Sequence[ExchangeDigests],
    question: bytes,
    branches: Sequence[_Branch],
    ids: CommandIds | None,
) -> ConversationRun | None:
    """Return the run of a request that no attempt has made, or None if the log has to be compared again."""
    histories = [[exchange.digests for exchange in branch.exchanges] for branch in branches]
    keyed = bool(request.name)
    meaning = meaning_of(prior, question, histories, keyed=keyed, afresh=ids is not None)
    if isinstance(meaning, SameRun):
        branch = branches[meaning.branch]
        exchange = branch.exchanges[meaning.exchange]
        if not exchange.imported and await _is_repeat(call, branch.stream, exchange):
            return ConversationRun(
                branch.stream, branch.conversation, exchange.run, None, _before(branch, meaning.exchange)
            )
        meaning = meaning_of(prior, question, histories, keyed=keyed, afresh=True)
    if isinstance(meaning, Begin):
        name = request.name or _new_name(call, request, [*prior, ExchangeDigests(question, b"")], branches)
        return await _appended(call, request, _Branch(request.root, name, ()), 0, ids)
    branch = branches[meaning.branch]
    if isinstance(meaning, Continue):
        return await _appended(call, request, branch, meaning.known, ids)
    assert isinstance(meaning, ForkBefore)
    number = sum(one.conversation == branch.conversation for one in branches)
    fork = branch_name(request.root, branch.conversation, number)
    if not await _forked(call, branch.stream, fork, branch.exchanges[meaning.exchange].seq - 1):
        return None
    kept = _Branch(fork, branch.conversation, branch.exchanges[: meaning.exchange])
    return await _appended(call, request, kept, meaning.known, ids)


async def _is_repeat(call: HttpCall, stream: str, exchange: LoggedExchange) -> bool:
    """Return True if a request for the same question means the run that it has: the run is at work, or ended lately."""
    if call.service.ports.clock.now() - exchange.at <= REPEATED_US:
        return True
    found = await call.service.run_of(stream, exchange.run)
    return found is not None and found.status == "running"


async def _forked(call: HttpCall, stream: str, fork: str, at: int) -> bool:
    """Fork an agent at a seq. Return False if another server has made a fork of that name."""
    system = call.service.system
    shared = is_shared(await call.service.ports.aside(system.store.partition_of, stream))
    try:
        await system.fork(stream, fork, at=at, placement="shared" if shared else "dedicated")
    except BadInput:
        if call.service.conversations.knows(fork):
            return False
        raise
    return True


async def _appended(
    call: HttpCall, request: ResentRequest, branch: _Branch, known: int, ids: CommandIds | None
) -> ConversationRun:
    """Import the exchanges that a branch lacks, and return the run of the question after them."""
    taken = [one for one in request.prior[known:] if isinstance(one, ClientExchange)]
    place = len(branch.exchanges) + len(taken)
    earlier = branch.exchanges[-1] if branch.exchanges else None
    before = f"{place} {earlier.seq if earlier else 0} {branch.undone}"
    mark = f"{branch.conversation} {before} {_hex(request.question, 32)}"
    now = call.service.ports.clock.now()
    run = (ids or ids_of_key(mark, branch.stream, now)).id
    if taken:
        await _take_in(call, branch, taken, ids_of_key(f"prior {mark}", branch.stream, now).id)
    had = next((one.note for one in reversed(branch.exchanges) if one.note != NO_NOTE), NO_NOTE)
    note = request.note if question_digest(request.note) != had else ""
    message = UserMessage(text=request.question, name=request.speaker, conversation=branch.conversation, note=note)
    return ConversationRun(branch.stream, branch.conversation, run, message, earlier.run if earlier else "")


async def _take_in(call: HttpCall, branch: _Branch, taken: Sequence[ClientExchange], first_id: str) -> None:
    """Import exchanges that the client had elsewhere, with the time of now: no client sends other times."""
    at = moment(call.service.ports.clock.now())
    said = []
    for exchange in taken:
        asked = UserMessage(text=exchange.asked, conversation=branch.conversation, imported=True)
        said.append(ImportedMessage(asked, at))
        if exchange.answered.strip():
            said.append(ImportedMessage(MessageSent(text=exchange.answered, imported=True), at))
    handle = call.service.system.handle(branch.stream, by=call.caller.key_id, first_id=first_id)
    await handle.import_messages(said)
