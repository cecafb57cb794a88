-- What a search in many agents needs to know of each, in its current incarnation. `indexed`: the archive alone has all
-- of its memories, or they are too many to be read from the log.
SELECT agent_id, max(seq) AS head,
    bool_or(type = 'archival_inserted') AS archive,
    bool_or(type = 'source_attached') AS documents,
    bool_or(type IN ('insight_noted', 'fact_noted', 'plan_made')) AS derived,
    bool_or(type IN ('agent_forked', 'records_erased', 'source_attached'))
        OR count(*) FILTER (type IN ('archival_inserted', 'archival_updated', 'archival_deleted')) > {stored_max}
        AS indexed,
    coalesce(arg_max(payload->>'$.zone', seq)
        FILTER (type = 'agent_configured' AND NOT starts_with(payload, '{{"erased":true')), 'UTC') AS zone
FROM current_records GROUP BY agent_id
