"""Compiled counting."""
