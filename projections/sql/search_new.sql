-- What had been said up to a seq in the incarnation of that seq, from a seq on, in order. Parameters after the agents and
-- as_of: the agent and as_of again as plain values, and the first seq.
SELECT r.seq, epoch_us(coalesce(r.said_at, r.recorded_at)) AS time,
    CASE r.type WHEN 'user_message' THEN 'user' ELSE 'assistant' END AS role,
    coalesce(r.payload->>'name', '') AS name, coalesce(r.text, '') AS text, coalesce(r.payload->>'ref', '') AS ref
FROM records r WHERE r.agent_id = $3 AND r.said AND r.seq <= $4 AND r.ended > $4 AND r.seq >= $5
ORDER BY r.seq
