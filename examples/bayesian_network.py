"""A Bayesian network from text: questions about causes, effects, and interventions."""

import besag

# Nodes have their states in brackets; a CPT has a row for each joint state of the parents.
model = besag.bayesian_network(
    "burglary[no,yes] -> alarm[off,on] <- quake[no,yes]; alarm -> call[no,yes]",
    cpts={
        "burglary": [0.99, 0.01],
        "quake": [0.98, 0.02],
        "alarm": {
            ("no", "no"): [0.999, 0.001],
            ("no", "yes"): [0.7, 0.3],
            ("yes", "no"): [0.06, 0.94],
            ("yes", "yes"): [0.05, 0.95],
        },
        "call": {"off": [0.995, 0.005], "on": [0.1, 0.9]},
    },
)
print(model, "\n")

# The neighbour calls. Was it a burglary? Then the radio reports an earthquake, which explains the alarm away.
called = model.marginals(evidence={"call": "yes"})
explained = model.marginals(evidence={"call": "yes", "quake": "yes"})
print(f"P(burglary)               = {model.marginals()['burglary'][1]:.4f}")
print(f"P(burglary | call)        = {called['burglary'][1]:.4f}")
print(f"P(burglary | call, quake) = {explained['burglary'][1]:.4f}\n")

# Burglary and earthquake are independent until their common effect is known.
print("separated:             ", model.d_separated("burglary", "quake"))
print("separated given a call:", model.d_separated("burglary", "quake", given=["call"]), "\n")

# To see the alarm ring and to make it ring are different things: only the first says something about its causes.
seen = model.marginals(evidence={"alarm": "on"})
made = model.do({"alarm": "on"}).marginals()
print(f"P(burglary | see alarm) = {seen['burglary'][1]:.4f},  P(burglary | do alarm) = {made['burglary'][1]:.4f}\n")

# The most probable explanation of a call, and five nights with a call as the model imagines them.
print("explanation of a call:", model.map(evidence={"call": "yes"}).assignment, "\n")
print(model.sample(5, evidence={"call": "yes"}, seed=0).to_string())
