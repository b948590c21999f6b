"""R-hat and effective sample size: known cases, and ArviZ where it is installed."""

import numpy as np
import pytest

from besag.infer.sampling.diagnostics import effective_size, r_hat


def autoregressive(rng: np.random.Generator, a: float, shape: tuple[int, ...]) -> np.ndarray:
    x = rng.normal(size=shape)
    for t in range(1, shape[-1]):
        x[..., t] += a * x[..., t - 1]
    return x


@pytest.mark.parametrize(("a", "share"), [(0.0, 1.0), (0.5, 1 / 3), (0.8, 1 / 9)])
def test_effective_size_of_an_autoregression(a: float, share: float) -> None:
    """(1 - a) / (1 + a) of the draws, in the mean over 20 series within a sixth."""
    x = autoregressive(np.random.default_rng(0), a, (20, 4, 2000))
    assert np.mean(effective_size(x)) / 8000 == pytest.approx(share, rel=1 / 6)
    assert (r_hat(x) < 1.02).all()


def test_chains_at_different_places_do_not_agree() -> None:
    x = np.random.default_rng(0).normal(size=(1, 4, 500))
    assert r_hat(x + np.array([0, 0, 0, 2])[:, None])[0] > 1.2
    assert r_hat(x * np.array([1, 1, 1, 5])[:, None])[0] > 1.02
    assert effective_size(x + np.array([0, 0, 0, 2])[:, None])[0] < 100


def test_what_never_changes() -> None:
    still = np.ones((1, 2, 50))
    assert r_hat(still)[0] == 1
    assert effective_size(still)[0] == 100
    assert r_hat(still * np.array([1, 2])[:, None])[0] == np.inf
    assert r_hat(still[:, :, :4])[0] == np.inf
    assert effective_size(still[:, :, :4])[0] == 0


def test_arviz_says_the_same() -> None:
    arviz = pytest.importorskip("arviz")
    rng = np.random.default_rng(1)
    for a in (-0.5, 0.0, 0.5, 0.9):
        for n in (40, 101, 1000):
            x = autoregressive(rng, a, (2, 4, n))
            x[1] = np.round(x[1])
            assert r_hat(x) == pytest.approx([float(arviz.rhat(one)) for one in x], rel=1e-9)
            assert effective_size(x) == pytest.approx([float(arviz.ess(one)) for one in x], rel=1e-9)
