-- needs: latest
-- The value of each memory block, its limit in characters, and the event that wrote it.
SELECT r.agent_id, l.as_of, r.payload->>'label' AS label, coalesce(r.text, '') AS value,
    (r.payload->>'limit')::BIGINT AS "limit", r.seq, r.event_id, r.cause, r.recorded_at
FROM latest l JOIN records r ON r.agent_id = l.agent_id AND r.seq = l.seq
WHERE l.slot LIKE 'block:%'
