-- needs: hidden_turns?, latest, memory_pressure, context_changes?
-- What the model sees, in its order: the configuration with the system prompt, the memory blocks, the summary, then the
-- messages (`message`). The newest other records of a slot are heeded and not shown: a removed block, and a reply or
-- warning that is not in view. So are `model_switched` (another model answers the rest of the turn) and
-- `reply_rejected`, which is shown only if nothing of its turn follows. Of a record or block only `shown_chars`
-- characters are shown; null: all. An input that arrived during an earlier turn comes after that turn; `during` is the turn of the call, and
-- later turns wait. The last change of memory, summary or configuration has the counts of the memory header, `recall` and
-- `archival`, and its time: so the beginning of the request stays the same between two calls. Above `threshold` tokens
-- of one call the agent is warned, if it is not `warned` already.
SELECT r.agent_id, p.as_of, p.during, r.slot, r.seq, r.turn, r.step, r.type,
    r.shown AND r.seq >= p.kept_from AND r.turn <= p.during
        AND h.turn IS NULL -- if changed
        AS message,
    epoch_us(coalesce(r.said_at, r.recorded_at)) AS at, r.version,
    coalesce(x.text, r.text) AS text, x.shown_chars, -- if changed
    r.text, NULL::BIGINT AS shown_chars, -- if unchanged
    r.payload, CASE WHEN r.seq = p.changed_seq THEN r.recall END AS recall,
    CASE WHEN r.seq = p.changed_seq THEN greatest(r.archival, 0) END AS archival, p.warned,
    CASE WHEN r.type = 'model_switched' THEN p.fraction * coalesce(r.tokens, p."window") ELSE p.threshold END AS threshold
FROM memory_pressure p JOIN records r ON r.agent_id = p.agent_id
    LEFT JOIN hidden_turns h ON h.agent_id = p.agent_id AND h.as_of = p.as_of AND h.turn = r.turn -- if changed
        AND NOT (r.type IN ('user_message', 'message_sent') AND contains(r.payload, '"imported":true')) -- if changed
        AND r.type <> 'model_switched' -- if changed
    LEFT JOIN context_changes x ON x.agent_id = p.agent_id AND x.as_of = p.as_of AND x.during = p.during -- if changed
        AND x.target = CASE WHEN starts_with(r.slot, 'block:') THEN r.slot ELSE r.seq::VARCHAR END -- if changed
WHERE r.seq <= p.as_of AND r.ended > p.as_of
    AND ((r.shown AND r.seq >= p.kept_from AND r.turn <= p.during
            AND h.turn IS NULL -- if changed
            AND (r.type NOT IN ('context_trimmed', 'turns_hidden', 'reply_rethought') -- if changed
                OR starts_with(r.payload, '{"erased":true')) -- if changed
        ) OR (r.slot IS NOT NULL AND list_contains(p.newest, r.seq)))
ORDER BY CASE r.slot WHEN 'config' THEN '0' WHEN 'block:persona' THEN '1' WHEN 'block:human' THEN '2' WHEN 'summary'
    THEN '4' ELSE CASE WHEN starts_with(r.slot, 'block:') THEN '3' || r.slot ELSE '5' END END, r.turn, r.seq
