"""Where agents live: hosts and what they are told, the supervisor over them, timers, the gateway, this process or Ray.

What an agent does is beside this folder; `api` is the way in.
"""
