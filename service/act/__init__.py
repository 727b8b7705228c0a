"""Carries out plans, and writes status and Events."""
