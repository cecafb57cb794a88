-- What is needed to go on with an agent when it is activated, record by record: enough to say where it stands (`standing`),
-- which turns are open (`turns`), every configuration (`configurations`), and whether a timer was ever set. What it comes
-- to is told by `woken_of` in `actors/context.py`: planning and grouping is nearly all that such a question costs, and it
-- has few rows. A law holds it to what the four projections say.
SELECT r.agent_id, w.as_of, r.seq, r.ended > w.as_of AS living, r.turn, r.step, r.type, r.cause::VARCHAR AS cause,
    r.type IN ({inputs})
        AND NOT contains(r.payload, '"imported":true') AND NOT starts_with(r.payload, '{"erased":true') AS input,
    CASE r.type WHEN 'model_reply' THEN json_array_length(r.payload, '$.calls')
        WHEN 'function_result' THEN -1 END AS owed,
    CASE r.slot WHEN 'config' THEN r.text END AS text, CASE r.slot WHEN 'config' THEN r.payload END AS configuration
FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of
