r"""Message passing on the tree of 001, "Example: Inference on Trees": from the leaves to the root i and back.

    i - F - j - G - k - H - l
                     \
                      I - m
"""

import besag

model = besag.data.bundled("tree_001")
result = model.marginals(engine="tree[root=i]", trace=True)

# A message is a vector over the states of the variable that sends or receives it; the frame has a row for each entry.
messages = result.messages
for (_, source, target), entries in messages.groupby(["step", "source", "target"]):
    kind = "r" if target in result else "q"  # 001 calls messages to variables r and messages to factors q
    print(f"{kind}_{source}->{target} =", *(f"{value:7.4f}" for value in entries["value"]))

# 002 (36): the product of what a variable receives, summed over its states, is Z: the same at every variable.
print()
for name in result:
    received = messages[messages["target"] == name]
    print(f"Z at {name}: {received.groupby('state')['value'].prod().sum():.6f}")

# 001: normalised, that product is the marginal.
print()
product = messages[messages["target"] == "k"].groupby("state")["value"].prod()
print("p(k) from messages:  ", (product / product.sum()).round(6).tolist())
print("p(k) from the engine:", result["k"].round(6).tolist())

# The same messages with min for sum and sum for product find the labelling of least energy, 002 (42)-(44).
best = model.map(engine="tree[root=i]")
print(f"\nargmin H: {best.assignment}, H = {best.energy}")
