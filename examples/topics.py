"""What are these texts about? A mixture of topics, learnt from which words occur in 600 texts, without any labels.

p(words) = sum over topics of p(topic) prod over words of p(word | topic): latent classes, by EM. Texts are drawn from
three topics, so that what is found can be compared with what is true.
"""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import besag

TOPICS = {
    "sea": ["boat", "wave", "salt", "harbour"],
    "kitchen": ["salt", "oven", "butter", "spoon"],
    "music": ["violin", "choir", "wave", "rhythm"],  # waves are in two topics, salt too
}
words = list(dict.fromkeys(word for listed in TOPICS.values() for word in listed))
rng = np.random.default_rng(0)
truth = rng.integers(len(TOPICS), size=600)
likely = np.array([[0.6 if word in listed else 0.05 for word in words] for listed in TOPICS.values()])
texts = pd.DataFrame(rng.random((600, len(words))) < likely[truth], columns=words)

mixture = besag.Mixture(n_components=3, restarts=3).fit(texts)
found = np.asarray(mixture.predict(texts)).astype(int)
names = list(TOPICS)
name_of = {k: names[np.bincount(truth[found == k], minlength=3).argmax()] for k in range(3)}
right = np.mean([name_of[k] == names[t] for k, t in zip(found, truth, strict=True)])
print(f"{right:.0%} of the texts are in the class of their topic")

p = np.stack([mixture.model_.cpt(word)[:, 1] for word in words], axis=1)  # (topic, word)
for k, row in enumerate(p):
    print(f"class {k}: {', '.join(words[i] for i in np.argsort(-row)[:4])}")
Path("out").mkdir(exist_ok=True)
figure, axes = plt.subplots(figsize=(6, 2.2), layout="constrained")
figure.colorbar(axes.imshow(p, vmin=0, vmax=1), label="p(word | class)")
axes.set_xticks(range(len(words)), words, rotation=60)
axes.set_yticks(range(3), [f"class {k}" for k in range(3)])
figure.savefig("out/topics.png", dpi=150)
print("out/topics.png shows the probability of each word in each class")
