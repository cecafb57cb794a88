-- needs: turns
-- The turns that are not finished: what an agent goes on with when it is activated.
SELECT * FROM turns WHERE status = 'open'
