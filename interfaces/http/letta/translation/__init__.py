"""What everlog has, in the words of Letta, and the reverse: functions without effects."""
