"""Images and masks in folders, as arrays; `folders` reads and writes, `features` makes what a model sees of colours."""
