"""How does an agent leave a store and come into another one?"""
