-- One row for each model call of a turn that got an answer.
SELECT agent_id, life, turn, step, seq, recorded_at, coalesce(text, '') AS monologue,
    coalesce(f_owed, 0) AS calls,
    coalesce(f_tokens, 0) AS tokens
FROM lived WHERE type = 'model_reply' AND turn > 0
