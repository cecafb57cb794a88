-- needs: said
-- What was said in the life of that moment.
SELECT * EXCLUDE (ended) FROM said WHERE ended > as_of
