-- needs: hidden_turns?, latest
-- Each memory block: its value, limit in characters, purpose, protection, the shared block that it follows, and the
-- event that wrote it.
SELECT r.agent_id, l.as_of, r.payload->>'label' AS label, coalesce(r.text, '') AS value,
    (r.payload->>'limit')::BIGINT AS "limit", r.seq, r.event_id, r.cause, r.recorded_at,
    coalesce(r.payload->>'description', '') AS description, coalesce((r.payload->>'read_only')::BOOLEAN, false) AS read_only,
    coalesce(r.payload->>'origin', '') AS origin
FROM latest l JOIN records r ON r.agent_id = l.agent_id AND r.seq = l.seq
WHERE l.slot LIKE 'block:%' AND r.type = 'memory_edited'
