-- One row for each agent in its current incarnation, for `everlog agents`. Records that a fork reads from its ancestors
-- count as its own, as they do in the agent's own projections.
SELECT a.agent_id, events, messages, head, turns, last_active, deleted, parent, parent_seq
FROM (
    SELECT agent_id, life, count(*) AS events,
        count(*) FILTER (type IN ('user_message', 'message_sent') AND NOT erased) AS messages,
        max(seq) AS head, max(turn) AS turns, epoch_us(max(recorded_at)) AS last_active,
        coalesce(bool_or(type = 'agent_deleted'), false) AS deleted
    FROM read_through WHERE NOT starts_with(agent_id, 'source:') AND NOT starts_with(agent_id, 'block:')
    GROUP BY agent_id, life
    QUALIFY life = max(life) OVER (PARTITION BY agent_id)
) a LEFT JOIN forks f ON f.agent_id = a.agent_id AND a.life = 1
ORDER BY a.agent_id
