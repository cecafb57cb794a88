"""Answer clients that speak OpenAI's API: each agent is a model. Thin translations, which decide nothing but which
messages of a request are new.
"""
