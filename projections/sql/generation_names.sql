-- needs: generations, derived_records
-- Each other name of an entity in each generation, and the name that the entity is called by. Merges may follow each
-- other, at most eight times: Lea is Lea Maier, who is Lea Weber. Names are compared as they are written.
WITH RECURSIVE merges AS (
    SELECT d.agent_id, d.as_of, g.generation AS view, g.in_use, d.payload->>'alias' AS alias,
        arg_max(d.payload->>'entity', d.seq) AS entity
    FROM generations g JOIN derived_records d ON d.agent_id = g.agent_id AND d.as_of = g.as_of
        AND d.generation IN (0, g.generation) AND NOT d.withdrawn
    WHERE d.type = 'entity_named' GROUP BY 1, 2, 3, 4, 5
),
followed AS (
    SELECT agent_id, as_of, view, in_use, alias, entity, 1 AS steps FROM merges
    UNION ALL
    SELECT f.agent_id, f.as_of, f.view, f.in_use, f.alias, m.entity, f.steps + 1 FROM followed f
        JOIN merges m ON m.agent_id = f.agent_id AND m.as_of = f.as_of AND m.view = f.view AND m.alias = f.entity
    WHERE f.steps < 8 AND m.entity <> f.alias
)
SELECT agent_id, as_of, view, in_use, alias, arg_max(entity, steps) AS entity FROM followed GROUP BY 1, 2, 3, 4, 5
