"""The native format, which holds every Model without loss: `form` has the grammar, `read` and `write` use it."""
