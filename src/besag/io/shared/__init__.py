"""What readers and writers of several formats share.

`files` (bytes and text), `tables` (tables to a Model), `nodes` (Bayesian networks between file and Model), `numbers`,
`budget` (limits for hostile files), and text of all kinds: `tokens`, `xml_tree`, `json_text`, `relaxed_json`.
"""
