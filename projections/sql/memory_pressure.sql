-- needs: hidden_turns?, latest
-- Tokens of the last call compared with the window, and if the agent was warned since the last summary (in a turn that
-- was not hidden since): above `threshold` tokens it is warned, once until the next summary. `tokens_per_byte` is that of
-- the last call. For the context: `kept_from`, the first seq that it shows, the newest record of each slot, and the last
-- change of memory, summary or configuration.
SELECT agent_id, as_of, during,
    coalesce(max(tokens) FILTER (slot = 'reply'), 0) AS tokens, -- if asked
    coalesce(max(cached), 0) AS cached, -- if asked
    max(seq) FILTER (slot = 'summary') AS summary_seq, -- if asked
    max(ratio) FILTER (slot = 'reply') AS tokens_per_byte, -- if asked
    coalesce(max(kept_from), 0) AS kept_from, list(seq) AS newest, -- if needed
    max(seq) FILTER (slot NOT IN ('reply', 'warning', 'pause', 'rules')) AS changed_seq, -- if needed
    max(tokens) FILTER (slot = 'config') AS "window",
    coalesce(max(ratio) FILTER (slot = 'config'), 0.75) AS fraction, fraction * "window" AS threshold,
    coalesce(max(seq) FILTER (slot = 'warning'), 0) > coalesce(max(seq) FILTER (slot = 'summary'), 0) AS warned
FROM latest GROUP BY agent_id, as_of, during
