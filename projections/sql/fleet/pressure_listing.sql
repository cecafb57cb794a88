-- One row for each agent in its current incarnation, for `everlog pressure`. `listing` is the query of that name.
WITH listed AS ({listing}),
counted AS (
    SELECT agent_id, life, count(*) AS summaries FROM read_through WHERE type = 'summary' AND NOT erased
    GROUP BY agent_id, life
)
SELECT l.agent_id, l.head, l.deleted, coalesce(p.tokens, 0) AS tokens, p."window", p.used,
    coalesce(p.fraction, 0.75) AS fraction, coalesce(p.warned, false) AS warned, p.summary_seq,
    coalesce(c.summaries, 0) AS summaries
FROM listed l
    LEFT JOIN pressure p ON p.agent_id = l.agent_id
    LEFT JOIN counted c ON c.agent_id = l.agent_id AND c.life = p.life
ORDER BY l.agent_id
