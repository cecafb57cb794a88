-- needs: said
-- What user and agent said in the incarnation of that moment.
SELECT * EXCLUDE (ended) FROM said WHERE ended > as_of
