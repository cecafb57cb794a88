-- needs: latest, context_bounds
-- What the model sees: the newest value of each slot (system message parts, summary), then the records shown since
-- `kept_from`. Order by turn, then seq: an input that arrived during an earlier turn comes after that turn. The memory
-- header's counts and time are those of the last change of memory, summary or configuration, which keeps the beginning
-- of the request the same between two calls: `recall` and `archival` of the newest row that has them. What among these
-- rows takes others out again, shortens or rewords them (turns_hidden, context_trimmed, reply_rethought) is applied by
-- `actors/context.py`. Each stands after what it is about, so that a summary never hides it and leaves that in view.
SELECT r.agent_id, b.as_of, r.seq, r.slot, r.shown AND r.seq >= b.kept_from AS shown, r.type, r.turn, r.step,
    epoch_us(r.recorded_at) AS recorded_at, epoch_us(r.said_at) AS said_at, r.version, r.text, r.payload,
    CASE WHEN r.slot IN ('config', 'summary') OR starts_with(r.slot, 'block:') THEN r.recall END AS recall,
    CASE WHEN r.slot IN ('config', 'summary') OR starts_with(r.slot, 'block:') THEN greatest(r.archival, 0) END AS archival
FROM context_bounds b JOIN records r ON r.agent_id = b.agent_id
WHERE r.seq <= b.as_of AND r.ended > b.as_of
    AND ((r.shown AND r.seq >= b.kept_from) OR (r.slot IS NOT NULL AND list_contains(b.slots, r.seq)))
