-- Every function call of the model, with its arguments and its outcome (open, ok, failed, unknown).
WITH asked AS (
    SELECT agent_id, life, seq, turn, step, recorded_at, unnest(TRY(from_json(payload->'$.calls',
        '[{"id":"VARCHAR","name":"VARCHAR","arguments":"VARCHAR"}]'))) AS call
    FROM lived WHERE type = 'model_reply' AND NOT erased
),
ended AS (
    SELECT agent_id, life, seq, turn, step, TRY(payload->>'$.call_id') AS call_id, text, recorded_at,
        f_kind AS outcome
    FROM lived WHERE type = 'function_result' AND NOT erased
)
SELECT a.agent_id, a.life, a.seq, a.turn, a.step, a.call.id AS call_id, a.call.name AS name,
    a.call.arguments AS arguments, coalesce(e.outcome, 'open') AS outcome, e.seq AS result_seq, e.text AS result,
    a.recorded_at AS started_at, e.recorded_at AS ended_at,
    epoch_us(e.recorded_at) - epoch_us(a.recorded_at) AS duration_us
FROM asked a LEFT JOIN ended e ON e.agent_id = a.agent_id AND e.life = a.life AND e.turn = a.turn AND e.step = a.step
    AND e.call_id = a.call.id
