-- One row for each model call of a turn that got an answer.
SELECT agent_id, life, turn, step, seq, recorded_at, coalesce(text, '') AS monologue,
    coalesce(TRY(json_array_length(payload, '$.calls')), 0)::BIGINT AS calls,
    coalesce(f_tokens, 0) AS tokens
FROM lived WHERE type = 'model_reply' AND turn > 0
