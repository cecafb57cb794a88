-- needs: derived_records
-- Each other name of an entity, and the name that the entity is called by. Merges may follow each other, at most eight
-- times: Lea is Lea Maier, who is Lea Weber. Names are compared as they are written.
WITH RECURSIVE merges AS (
    SELECT agent_id, as_of, payload->>'alias' AS alias, arg_max(payload->>'entity', seq) AS entity
    FROM derived_records WHERE type = 'entity_named' AND in_use AND NOT withdrawn GROUP BY 1, 2, 3
),
followed AS (
    SELECT agent_id, as_of, alias, entity, 1 AS steps FROM merges
    UNION ALL
    SELECT f.agent_id, f.as_of, f.alias, m.entity, f.steps + 1 FROM followed f
        JOIN merges m ON m.agent_id = f.agent_id AND m.as_of = f.as_of AND m.alias = f.entity
    WHERE f.steps < 8 AND m.entity <> f.alias
)
SELECT agent_id, as_of, alias, arg_max(entity, steps) AS entity FROM followed GROUP BY 1, 2, 3
