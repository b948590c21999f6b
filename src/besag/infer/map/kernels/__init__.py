"""Compiled parts of the engines that look for labellings of least energy."""
