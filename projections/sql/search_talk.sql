-- What had been said up to a seq in the life of that seq, in order, and the record that began that life (`is_birth`).
-- The engine keeps what it read once, see `projections/talk_reads.py`.
SELECT r.agent_id, w.as_of, r.seq, r.type = 'agent_created' AS is_birth,
    epoch_us(coalesce(r.said_at, r.recorded_at)) AS time,
    CASE r.type WHEN 'user_message' THEN 'user' ELSE 'assistant' END AS role,
    coalesce(r.payload->>'name', '') AS name, coalesce(r.text, '') AS text, coalesce(r.payload->>'ref', '') AS ref
FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
WHERE r.said OR r.type = 'agent_created' ORDER BY r.agent_id, r.seq
