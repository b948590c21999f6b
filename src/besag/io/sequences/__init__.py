"""Files of labelled sequences, and CRFsuite's models of them: what ChainCRF learns from, no Models.

`conll` and `crfsuite_text` read sequences, `crfsuite_model` weights; none of them knows another.
"""
