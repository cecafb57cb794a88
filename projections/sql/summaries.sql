-- Every summary, and every undoing of a summary.
SELECT r.agent_id, w.as_of, r.seq, r.type, r.version, r.text, r.payload, r.recorded_at
FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
WHERE r.slot = 'summary'
