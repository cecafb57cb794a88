-- The newest record of each slot: what a state is made of. Reads wanted(agent_id, as_of), as every file here does.
SELECT w.agent_id, w.as_of, r.slot, max(r.seq) AS seq, arg_max(r.kept_from, r.seq) AS kept_from
FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
WHERE r.slot IS NOT NULL
GROUP BY w.agent_id, w.as_of, r.slot
