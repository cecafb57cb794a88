"""Parts that all commands share: values of arguments, times, errors, and the objects that a command is made of."""
