-- needs: hidden_turns?
-- The newest record of each slot: what a state is made of. Reads wanted(agent_id, as_of, during), as every file here
-- does. A warning counts in its own turn and later ones, and not if its turn is hidden.
SELECT w.agent_id, w.as_of, w.during, r.slot, max(r.seq) AS seq, arg_max_null(r.kept_from, r.seq) AS kept_from,
    arg_max_null(r.tokens, r.seq) AS tokens, arg_max_null(r.ratio, r.seq) AS ratio, arg_max_null(r.cached, r.seq) AS cached
FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
    LEFT JOIN hidden_turns h ON h.agent_id = w.agent_id AND h.as_of = w.as_of AND h.turn = r.turn -- if changed
WHERE r.slot IS NOT NULL AND (r.slot <> 'warning' OR r.turn <= w.during)
    AND (r.slot <> 'warning' OR h.turn IS NULL) -- if changed
GROUP BY w.agent_id, w.as_of, w.during, r.slot
