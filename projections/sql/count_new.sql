-- Counts for the memory header, at the changes that were added last: the sizes of recall and archival memory at that
-- point. Counting continues from the change before.
WITH mine AS (SELECT * FROM records WHERE agent_id IN (SELECT agent_id FROM incoming))
UPDATE records SET recall = c.recall, archival = c.archival FROM (
    SELECT m.agent_id, m.seq,
        coalesce(any_value(b.recall), 0) + count(*) FILTER (r.said) AS recall,
        coalesce(any_value(b.archival), 0) + coalesce(sum(r.archived), 0)::BIGINT AS archival
    FROM mine m LEFT JOIN (
        SELECT agent_id, ended, max(seq) AS seq, arg_max(recall, seq) AS recall, arg_max(archival, seq) AS archival
        FROM mine WHERE recall IS NOT NULL GROUP BY agent_id, ended
    ) b ON b.agent_id = m.agent_id AND b.ended = m.ended
        JOIN mine r ON r.agent_id = m.agent_id AND r.ended = m.ended AND r.seq <= m.seq AND r.seq > coalesce(b.seq, 0)
    WHERE m.recall IS NULL AND (m.slot IN ('config', 'summary') OR m.slot LIKE 'block:%')
    GROUP BY m.agent_id, m.seq
) c WHERE records.agent_id = c.agent_id AND records.seq = c.seq
