"""Attacked reviews: how they are read, measured, recorded and drawn."""
