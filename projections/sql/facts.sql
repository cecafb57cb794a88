-- needs: generation_facts
-- What the agent believes and believed, in the generation in use: see `generation_facts`. What was believed at a moment
-- of the agent's life is another `as_of`.
SELECT * EXCLUDE (view, in_use) FROM generation_facts WHERE in_use
