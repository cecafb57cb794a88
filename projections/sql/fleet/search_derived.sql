-- Insights, facts and items of plans, for a search in many agents.
SELECT agent_id, 'derived' AS part, seq, part AS number, kind, time, name, text, '' AS ref,
    to_json({{'sources': sources, 'outdated': outdated, 'ended': ended, 'until': until}})::VARCHAR AS more
FROM ({search_derived})
