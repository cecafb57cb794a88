-- needs: derived_records, outdated
-- Each item of each plan, as its newest change left it. `status` is planned, or the name of that change; a postponed item
-- has its new start. `outdated`: the plan rests on a fact that has ended.
WITH counted AS (SELECT * FROM derived_records WHERE in_use AND NOT withdrawn),
items AS (
    SELECT agent_id, as_of, seq AS plan, text AS title, payload, recorded_at, deriver, generation, sources,
        unnest((payload->'items')::JSON[]) AS one,
        unnest(range(coalesce(json_array_length(payload, '$.items'), 0)::BIGINT)) AS item
    FROM counted WHERE type = 'plan_made'
),
changes AS (
    SELECT agent_id, as_of, (payload->>'plan')::BIGINT AS plan, (payload->>'item')::BIGINT AS item,
        max(seq) AS changed_seq, arg_max(payload->>'change', seq) AS status, arg_max(text, seq) AS reason,
        arg_max((payload->>'start')::BIGINT, seq) AS start,
        arg_max(coalesce((payload->>'replaced_by')::BIGINT, 0), seq) AS replaced_by
    FROM counted WHERE type = 'plan_changed' GROUP BY 1, 2, 3, 4
)
SELECT i.agent_id, i.as_of, i.plan, i.item, i.title, i.one->>'text' AS text,
    make_timestamptz(coalesce(c.start, (i.one->>'start')::BIGINT)) AS start, (i.one->>'minutes')::BIGINT AS minutes,
    coalesce(i.one->>'place', '') AS place, coalesce(i.one->>'until', '') AS until,
    coalesce(c.status, 'planned') AS status, coalesce(c.reason, '') AS reason,
    coalesce(c.changed_seq, i.plan) AS seq, coalesce(c.replaced_by, 0) AS replaced_by,
    coalesce(i.payload->>'level', 'day') AS level, coalesce((i.payload->>'parent')::BIGINT, 0) AS parent,
    coalesce((i.payload->>'parent_item')::BIGINT, 0) AS parent_item,
    coalesce((i.payload->>'importance')::BIGINT, 5) AS importance, i.recorded_at AS made_at, i.sources, i.deriver,
    i.generation,
    EXISTS (FROM outdated o WHERE o.agent_id = i.agent_id AND o.as_of = i.as_of AND o.seq = i.plan) AS outdated
FROM items i LEFT JOIN changes c ON c.agent_id = i.agent_id AND c.as_of = i.as_of AND c.plan = i.plan AND c.item = i.item
