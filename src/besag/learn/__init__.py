"""Learning: objectives, penalties, optimisers, and `fit`, which puts them together."""
