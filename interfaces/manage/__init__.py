"""How are agents and their memory looked after? Commands that change them."""
