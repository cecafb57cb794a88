-- Every function call of the model, with its arguments and its outcome (open, ok, failed, unknown).
WITH asked AS (
    SELECT r.agent_id, w.as_of, r.seq, r.turn, r.step, r.recorded_at, unnest(from_json(r.payload->'calls',
        '[{"id":"VARCHAR","name":"VARCHAR","arguments":"VARCHAR"}]')) AS call
    FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
    WHERE r.type = 'model_reply' AND (r.payload->'calls') IS NOT NULL
),
ended AS (
    SELECT r.agent_id, w.as_of, r.seq, r.turn, r.step, r.payload->>'call_id' AS call_id, r.text, r.recorded_at,
        CASE WHEN coalesce((r.payload->>'unknown')::BOOLEAN, false) THEN 'unknown'
            WHEN coalesce((r.payload->>'ok')::BOOLEAN, true) THEN 'ok' ELSE 'failed' END AS outcome
    FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
    WHERE r.type = 'function_result'
)
SELECT a.agent_id, a.as_of, a.seq, a.turn, a.step, a.call.id AS call_id, a.call.name AS name,
    a.call.arguments AS arguments, coalesce(e.outcome, 'open') AS outcome, e.seq AS result_seq, e.text AS result,
    a.recorded_at AS asked_at, e.recorded_at AS ended_at
FROM asked a LEFT JOIN ended e ON e.agent_id = a.agent_id AND e.as_of = a.as_of AND e.turn = a.turn
    AND e.step = a.step AND e.call_id = a.call.id
