-- needs: insights, outdated, facts, plan_items
-- Insights, facts and items of plans, for searches: in the order of their seqs. `ended`: a fact that no longer holds;
-- `until`: the time at which a fact ended, or ends by itself.
SELECT agent_id, as_of, seq, 0::BIGINT AS part, 'insight' AS kind, epoch_us(noted_at) AS time, '' AS name, text,
    sources, outdated, false AS ended, NULL::BIGINT AS until
FROM insights
UNION ALL
SELECT agent_id, as_of, seq, 0, 'fact', epoch_us(noted_at), subject, sentence, sources,
    NOT believed OR EXISTS (FROM outdated o WHERE o.agent_id = f.agent_id AND o.as_of = f.as_of AND o.seq = f.seq),
    NOT believed, epoch_us(valid_to)
FROM facts f
UNION ALL
SELECT agent_id, as_of, plan, item, 'plan', epoch_us(made_at), '', text, sources, outdated, false, NULL
FROM plan_items
ORDER BY seq, part
