-- needs: latest, memory_pressure
-- What `context_window` takes of an agent's newest records as of now: the row of `memory_pressure`, the newest reply, the
-- last turn of a record with a slot, and the counts that the next change of memory will have. They continue from the
-- newest counts, as those of `count_new.sql` do. The engine follows them from record to record (`kept_contexts.py`).
SELECT p.agent_id, p.kept_from, p.newest, p.changed_seq, p."window", p.fraction, p.threshold, p.warned,
    s.reply_seq, s.turn, s.recall, s.archival
FROM memory_pressure p JOIN (
    SELECT r.agent_id, max(r.seq) FILTER (r.slot = 'reply') AS reply_seq,
        max(r.turn) FILTER (r.slot IS NOT NULL) AS turn,
        coalesce(any_value(b.recall), 0) + count(*) FILTER (r.said AND r.seq > coalesce(b.seq, 0)) AS recall,
        coalesce(any_value(b.archival), 0)
            + coalesce(sum(r.archived) FILTER (r.seq > coalesce(b.seq, 0)), 0)::BIGINT AS archival
    FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.ended > w.as_of LEFT JOIN (
        SELECT c.agent_id, max(c.seq) AS seq, arg_max(c.recall, c.seq) AS recall, arg_max(c.archival, c.seq) AS archival
        FROM wanted w JOIN records c ON c.agent_id = w.agent_id AND c.ended > w.as_of
        WHERE c.recall IS NOT NULL GROUP BY c.agent_id
    ) b ON b.agent_id = r.agent_id
    GROUP BY r.agent_id
) s ON s.agent_id = p.agent_id
