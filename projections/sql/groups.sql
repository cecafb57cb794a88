-- Each member of a group of agents, and its manager, as the newest configuration has them.
WITH newest AS (
    SELECT r.agent_id, w.as_of, max(r.seq) AS seq, arg_max(r.recorded_at, r.seq) AS recorded_at,
        arg_max(r.payload->>'model', r.seq) AS model,
        arg_max(coalesce(r.payload->'members', '[]'), r.seq)::VARCHAR[] AS members,
        arg_max(coalesce(r.payload->>'manager', ''), r.seq) AS manager
    FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
    WHERE r.type = 'agent_configured' AND NOT starts_with(r.payload, '{"erased":true')
    GROUP BY r.agent_id, w.as_of
)
SELECT agent_id, as_of, seq, recorded_at, substr(model, 7) AS rule,
    unnest(members) AS member, 'member' AS role, generate_subscripts(members, 1) AS place
FROM newest WHERE starts_with(model, 'group/')
UNION ALL
SELECT agent_id, as_of, seq, recorded_at, substr(model, 7), manager, 'manager', 0
FROM newest WHERE starts_with(model, 'group/') AND manager <> ''
