-- What was said at some seqs. Parameters after the agents and as_of: the agent and as_of again as plain values, the
-- first of the seqs, and all of them.
SELECT r.seq, epoch_us(coalesce(r.said_at, r.recorded_at)) AS time,
    CASE r.type WHEN 'user_message' THEN 'user' ELSE 'assistant' END AS role,
    coalesce(r.payload->>'name', '') AS name, coalesce(r.text, '') AS text, coalesce(r.payload->>'ref', '') AS ref
FROM records r WHERE r.agent_id = $3 AND r.said AND r.seq <= $4 AND r.seq >= $5 AND list_contains($6::BIGINT[], r.seq)
ORDER BY r.seq
