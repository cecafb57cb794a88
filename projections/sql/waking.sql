-- Rows from which an agent is activated: enough for its position (`standing`), its open turns (`turns`), every
-- configuration (`configurations`), and whether a timer was ever set. `activation_state_of` in
-- `actors/agent/activation_state.py` evaluates the rows: planning and grouping would be nearly the whole cost of this
-- query in SQL, and the rows are few. A law checks that the result agrees with the four projections.
SELECT r.agent_id, w.as_of, r.seq, r.ended > w.as_of AS living, r.turn, r.step, r.type, r.cause::VARCHAR AS cause,
    r.type IN ({inputs})
        AND NOT contains(r.payload, '"imported":true') AND NOT starts_with(r.payload, '{"erased":true') AS input,
    CASE r.type WHEN 'model_reply' THEN json_array_length(r.payload, '$.calls')
        WHEN 'function_result' THEN CASE WHEN contains(r.payload, '"approval":') THEN 0 ELSE -1 END END AS owed,
    CASE r.slot WHEN 'config' THEN r.text END AS text, CASE r.slot WHEN 'config' THEN r.payload END AS configuration
FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of
