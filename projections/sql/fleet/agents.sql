-- One row for each incarnation of each agent; sources are no agents. `name` is the newest that the agent was given.
SELECT a.agent_id, coalesce(g.name, a.agent_id) AS name, life, life = max(life) OVER (PARTITION BY a.agent_id) AS current, events, messages, head, turns,
    first_recorded_at, last_recorded_at, deleted, parent, parent_seq
FROM (
    SELECT agent_id, life, count(*) AS events,
        count(*) FILTER (type IN ('user_message', 'message_sent') AND NOT erased) AS messages,
        max(seq) AS head, max(turn) AS turns, min(recorded_at) AS first_recorded_at, max(recorded_at) AS last_recorded_at,
        coalesce(bool_or(type = 'agent_deleted'), false) AS deleted
    FROM lived WHERE NOT starts_with(agent_id, 'source:') AND NOT starts_with(agent_id, 'block:')
    GROUP BY agent_id, life
) a LEFT JOIN forks f ON f.agent_id = a.agent_id AND a.life = 1
    LEFT JOIN given_names g ON g.agent_id = a.agent_id
