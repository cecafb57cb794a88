-- needs: latest, memory_pressure
-- What `context_window` takes of an agent's newest records as of now: the row of `memory_pressure`, the newest reply, and
-- the last turn of a record with a slot. The engine keeps it until a record may change it (`kept_contexts.py`).
SELECT p.agent_id, p.kept_from, p.newest, p.changed_seq, p."window", p.fraction, p.threshold, p.warned,
    s.reply_seq, s.turn
FROM memory_pressure p JOIN (
    SELECT r.agent_id, max(r.seq) FILTER (r.slot = 'reply') AS reply_seq, max(r.turn) AS turn
    FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.ended > w.as_of
    WHERE r.slot IS NOT NULL GROUP BY r.agent_id
) s ON s.agent_id = p.agent_id
