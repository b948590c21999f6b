"""Compiled loops of structure learning: joint configurations, scores of families, tests of independence."""
