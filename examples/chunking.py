"""Training a chunker: a chain CRF on a dozen sentences, its labels, its probabilities, and its weights.

python examples/chunking.py
"""

import besag

SENTENCES = [
    "The/DT/B-NP cat/NN/I-NP sat/VBD/B-VP on/IN/B-PP the/DT/B-NP mat/NN/I-NP ././O",
    "She/PRP/B-NP reads/VBZ/B-VP old/JJ/B-NP books/NNS/I-NP ././O",
    "A/DT/B-NP small/JJ/I-NP dog/NN/I-NP has/VBZ/B-VP slept/VBN/I-VP in/IN/B-PP his/PRP$/B-NP bed/NN/I-NP ././O",
    "They/PRP/B-NP will/MD/B-VP sell/VB/I-VP the/DT/B-NP house/NN/I-NP ././O",
    "Prices/NNS/B-NP fell/VBD/B-VP on/IN/B-PP Monday/NNP/B-NP ././O",
    "The/DT/B-NP old/JJ/I-NP man/NN/I-NP saw/VBD/B-VP a/DT/B-NP boat/NN/I-NP ././O",
]


def items(tokens: list[list[str]]) -> list[dict[str, object]]:
    """Words and tags around each token."""
    tags = ["<s>", *(token[1] for token in tokens), "</s>"]
    return [
        {"word": token[0].lower(), "tag": token[1], "around": [f"-1:{tags[t]}", f"+1:{tags[t + 2]}"]}
        for t, token in enumerate(tokens)
    ]


def main() -> None:
    sentences = [[token.rsplit("/", 2) for token in line.split()] for line in SENTENCES]
    X = [items(tokens) for tokens in sentences]
    y = [[token[2] for token in tokens] for tokens in sentences]
    crf = besag.ChainCRF(l2=0.1, constraint="BIO").fit(X[:-1], y[:-1])
    print(f"{crf.n_iter_} iterations, objective {crf.objective_:.3f}, converged: {crf.converged_}\n")
    marginals = crf.predict_marginals(X[-1:])[0]
    for token, label, p in zip(sentences[-1], crf.predict(X[-1:])[0], marginals, strict=True):
        print(f"{token[0]:10} {label:6} {p.max():.2f}   (right: {token[2]})")
    print(f"\nThe old man is one noun phrase with probability {crf.span_probability(X[-1], 0, 3, 'NP'):.2f}")
    strongest = sorted(crf.state_features_.items(), key=lambda pair: -abs(pair[1]))[:5]
    for (attribute, label), weight in strongest:
        print(f"{weight:6.2f}  {attribute} -> {label}")


if __name__ == "__main__":
    main()
