-- What user and agent said in all incarnations, imported conversations included. `time` is when it was said.
SELECT r.agent_id, w.as_of, r.seq, coalesce(r.said_at, r.recorded_at) AS time,
    CASE r.type WHEN 'user_message' THEN 'user' ELSE 'assistant' END AS role,
    coalesce(r.payload->>'name', '') AS name, coalesce(r.text, '') AS text, coalesce(r.payload->>'ref', '') AS ref,
    coalesce((r.payload->>'imported')::BOOLEAN, false) AS imported, r.turn, r.ended
FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of
WHERE r.said
