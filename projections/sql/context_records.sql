-- needs: hidden_turns?, latest, memory_pressure
-- The records that the context is made of: the newest of each slot (configuration, memory blocks, summary), then those
-- that the context shows or heeds since `kept_from`. `context_window` applies those among them that change the context
-- (turns_hidden, context_trimmed, reply_rethought). Each stands after what it is about, so that a summary never hides it
-- and leaves that in view.
SELECT r.agent_id, p.as_of, r.seq, r.slot, r.shown AND r.seq >= p.kept_from AS shown, r.type, r.turn, r.step,
    epoch_us(r.recorded_at) AS recorded_at, epoch_us(r.said_at) AS said_at, r.version, r.text, r.payload,
    CASE WHEN r.slot IN ('config', 'summary') OR starts_with(r.slot, 'block:') THEN r.recall END AS recall,
    CASE WHEN r.slot IN ('config', 'summary') OR starts_with(r.slot, 'block:') THEN greatest(r.archival, 0) END AS archival
FROM memory_pressure p JOIN records r ON r.agent_id = p.agent_id
WHERE r.seq <= p.as_of AND r.ended > p.as_of
    AND ((r.shown AND r.seq >= p.kept_from) OR (r.slot IS NOT NULL AND list_contains(p.newest, r.seq)))
