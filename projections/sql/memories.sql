-- needs: said, importance, archival_memory, insights, facts, plan_items
-- All memories of the agent in one table: messages, stored texts, insights, facts and items of plans. `time` is when it
-- was said or noted; `outdated`: it rests on a fact that has ended, or is one.
SELECT s.agent_id, s.as_of, s.seq, 'message' AS kind, s.time, s.role, s.name, s.text, i.importance, []::BIGINT[] AS sources,
    0::BIGINT AS depth, false AS outdated, '' AS deriver, 0::BIGINT AS part
FROM said s JOIN importance i ON i.agent_id = s.agent_id AND i.as_of = s.as_of AND i.seq = s.seq
UNION ALL
SELECT agent_id, as_of, seq, 'archival', time, 'archival', '', text, 5, [], 0, false, '', 0 FROM archival_memory
UNION ALL
SELECT agent_id, as_of, seq, 'insight', noted_at, 'derived', '', text, importance, sources, depth, outdated, deriver, 0
FROM insights
UNION ALL
SELECT agent_id, as_of, seq, 'fact', noted_at, 'derived', subject, sentence, 5, sources, 0, NOT believed, deriver, 0
FROM facts
UNION ALL
SELECT agent_id, as_of, plan, 'plan', made_at, 'derived', '', text, importance, sources, 0, outdated, deriver, item
FROM plan_items
