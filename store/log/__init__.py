"""How is a log written, read, recovered and followed?"""
