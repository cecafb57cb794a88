"""What do all commands need? Settings, values, moments, errors, and the objects they are composed of."""
