-- Turns that a person hid.
SELECT DISTINCT r.agent_id, w.as_of, unnest((r.payload->'turns')::BIGINT[]) AS turn
FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
WHERE r.type = 'turns_hidden' AND NOT starts_with(r.payload, '{"erased":true')
