-- Every input that does not come from a user, with the reason why the agent ran.
SELECT agent_id, life, seq, turn, step, recorded_at, TRY(payload->>'$.reason') AS reason,
    coalesce(TRY(payload->>'$.timer'), '') AS timer, coalesce(TRY((payload->>'$.late')::BOOLEAN), false) AS late,
    coalesce(text, '') AS text
FROM lived WHERE type = 'heartbeat' AND NOT erased
