-- What had been said by a moment, in the life of that moment. Parameters after the agents and as_of: both again, as plain
-- values, by which DuckDB reads the table quicker than by a list or a join: a search is planned anew each time.
SELECT r.seq, epoch_us(coalesce(r.said_at, r.recorded_at)) AS time,
    CASE r.type WHEN 'user_message' THEN 'user' ELSE 'assistant' END AS role,
    coalesce(r.payload->>'name', '') AS name, coalesce(r.text, '') AS text, coalesce(r.payload->>'ref', '') AS ref
FROM records r WHERE r.agent_id = $3 AND r.said AND r.seq <= $4 AND r.ended > $4
ORDER BY r.seq
