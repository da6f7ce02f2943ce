"""Harms tenure on purpose and checks what is left: drills, simulation, and the checks that both share."""
