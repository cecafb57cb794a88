-- Every configuration of the agent, in all incarnations: each may contain function schemas that later ones refer to.
SELECT r.agent_id, w.as_of, r.seq, r.ended > w.as_of AS living, r.version, r.text, r.payload
FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of
WHERE r.type = 'agent_configured' AND r.slot IS NOT NULL
