"""Files of labelled sequences, and CRFsuite's models of them."""
