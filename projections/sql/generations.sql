-- Generations of the agent's derived memories, with `in_use` for the one that was chosen last (1 before any choice).
-- Generation 0 stands for what the agent or a person noted, which every generation has.
WITH mine AS (
    SELECT r.agent_id, w.as_of, r.seq, r.type, coalesce((r.payload->>'generation')::BIGINT, 0) AS generation
    FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
    WHERE r.type IN ({derived}, 'generation_chosen') AND NOT starts_with(r.payload, '{"erased":true')
),
chosen AS (
    SELECT w.agent_id, w.as_of, coalesce(arg_max(m.generation, m.seq), 1) AS generation
    FROM wanted w LEFT JOIN mine m ON m.agent_id = w.agent_id AND m.as_of = w.as_of AND m.type = 'generation_chosen'
    GROUP BY w.agent_id, w.as_of
),
found AS (
    SELECT agent_id, as_of, generation FROM mine UNION SELECT agent_id, as_of, generation FROM chosen
    UNION SELECT agent_id, as_of, 0 FROM wanted
)
SELECT f.agent_id, f.as_of, f.generation, f.generation = c.generation AS in_use
FROM found f JOIN chosen c ON c.agent_id = f.agent_id AND c.as_of = f.as_of
