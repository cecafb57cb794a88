-- The same counts as `count_new.sql`, for a whole log at once: one pass over each life. A law holds the two together.
UPDATE hot SET recall = c.recall, archival = c.archival FROM (
    SELECT agent_id, seq, slot, recall AS known, count(*) FILTER (said) OVER life AS recall,
        count(*) FILTER (type = 'archival_inserted') OVER life
        - count(*) FILTER (type = 'archival_deleted') OVER life AS archival
    FROM hot WINDOW life AS (PARTITION BY agent_id, ended ORDER BY seq)
) c WHERE hot.agent_id = c.agent_id AND hot.seq = c.seq AND c.known IS NULL
    AND (c.slot IN ('config', 'summary') OR c.slot LIKE 'block:%')
