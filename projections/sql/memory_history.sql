-- Every value that a memory block ever had, with the operation and the event that caused it; `ended`: when the block
-- was removed from core memory.
SELECT r.agent_id, w.as_of, r.payload->>'label' AS label, r.seq, coalesce(r.payload->>'operation', 'ended') AS operation,
    coalesce(r.text, '') AS value, (r.payload->>'limit')::BIGINT AS "limit", r.event_id, r.cause, r.recorded_at
FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
WHERE r.slot LIKE 'block:%'
