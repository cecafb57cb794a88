-- What the memory header will say, for the changes that were added last: how much recall and archival memory held then.
UPDATE hot SET recall = c.recall, archival = c.archival FROM (
    SELECT m.agent_id, m.seq, count(*) FILTER (r.said) AS recall,
        count(*) FILTER (r.type = 'archival_inserted') - count(*) FILTER (r.type = 'archival_deleted') AS archival
    FROM hot m JOIN records r ON r.agent_id = m.agent_id AND r.seq <= m.seq AND r.ended > m.seq
    WHERE m.recall IS NULL AND (m.slot IN ('config', 'summary') OR m.slot LIKE 'block:%')
    GROUP BY m.agent_id, m.seq
) c WHERE hot.agent_id = c.agent_id AND hot.seq = c.seq
