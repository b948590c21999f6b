"""Compiled parts of `besag.model.structured`: the rules that engines send the messages of structured factors by."""
