"""UAI: models (`read`, `write`), and the evidence, query and result files around them (`tasks`)."""
