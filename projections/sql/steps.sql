-- One row for each model call of a turn that got an answer.
SELECT r.agent_id, w.as_of, r.turn, r.step, r.seq, r.recorded_at, coalesce(r.text, '') AS monologue,
    coalesce(json_array_length(r.payload, '$.calls'), 0) AS calls,
    coalesce((r.payload->'usage'->>'total')::BIGINT, 0) AS tokens
FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
WHERE r.type = 'model_reply' AND r.turn > 0
