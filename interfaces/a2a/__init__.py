"""Commands about agents of other programs, which agents may ask by the A2A protocol."""
