-- The same counts as `count_new.sql`, for many records at once: one pass over each life. A law holds the two together.
WITH mine AS (SELECT * FROM records WHERE agent_id IN (SELECT agent_id FROM incoming))
UPDATE records SET recall = c.recall, archival = c.archival FROM (
    SELECT h.agent_id, h.seq, h.slot, h.recall AS known,
        coalesce(b.recall, 0) + count(*) FILTER (h.said AND h.seq > coalesce(b.seq, 0)) OVER life AS recall,
        coalesce(b.archival, 0)
            + coalesce(sum(h.archived) FILTER (h.seq > coalesce(b.seq, 0)) OVER life, 0)::BIGINT AS archival
    FROM mine h LEFT JOIN (
        SELECT agent_id, ended, max(seq) AS seq, arg_max(recall, seq) AS recall, arg_max(archival, seq) AS archival
        FROM mine WHERE recall IS NOT NULL GROUP BY agent_id, ended
    ) b ON b.agent_id = h.agent_id AND b.ended = h.ended
    WINDOW life AS (PARTITION BY h.agent_id, h.ended ORDER BY h.seq)
) c WHERE records.agent_id = c.agent_id AND records.seq = c.seq AND c.known IS NULL
    AND (c.slot IN ('config', 'summary') OR c.slot LIKE 'block:%')
