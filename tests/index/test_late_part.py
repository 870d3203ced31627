"""Compressed token vectors: packing and the error of restored vectors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.errors import InputError
from knowhalu.index.late_part import ResidualCodec, ResidualCodes, maxsim


def unit(seed, count, dimension):
    found = np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def vectors():
    return unit(0, 2000, 16)


def test_packing_matches_a_computation_by_hand():
    codec = ResidualCodec(np.array([[1.0, 0, 0, 0]]), np.array([-0.1, 0.0, 0.1]), np.array([-0.2, -0.05, 0.05, 0.2]))
    codes = codec.compress(np.array([[0.7, 0.03, 0.3, -0.02]], dtype=np.float32))
    # residuals -0.3, 0.03, 0.3, -0.02 lie in the ranges 0, 2, 3, 1: two bits each, the first number in the lowest bits
    assert codes.centroids.tolist() == [0] and codes.residuals.tolist() == [[0 | 2 << 2 | 3 << 4 | 1 << 6]]
    restored = np.array([0.8, 0.05, 0.2, -0.05])
    assert codec.restore(codes)[0] == pytest.approx(restored / np.linalg.norm(restored), abs=1e-6)


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_numbers_are_restored_as_the_nearest_value(vectors, bits):
    codec = ResidualCodec.train(vectors, 32, bits)
    left = vectors - codec.centroids[codec.nearest(vectors)]
    codes = codec.compress(vectors)
    restored = codec.restore(ResidualCodes(codes.centroids, codes.residuals))
    error = np.abs(left[:, :, None] - codec.values).min(axis=2)
    expected = codec.centroids[codes.centroids] + codec.values[np.abs(left[:, :, None] - codec.values).argmin(axis=2)]
    assert restored == pytest.approx(expected / np.linalg.norm(expected, axis=1, keepdims=True), abs=1e-5)
    # between the outermost values nothing is off by more than half of the widest gap
    inner = (left >= codec.values[0]) & (left <= codec.values[-1])
    assert error[inner].max() <= np.diff(codec.values).max() / 2 + 1e-6


def test_more_bits_reduce_the_error(vectors):
    cosines = []
    for bits in (1, 2, 4, 8):
        codec = ResidualCodec.train(vectors, 32, bits)
        restored = codec.restore(codec.compress(vectors))
        assert np.linalg.norm(restored, axis=1) == pytest.approx(1.0, abs=1e-5)
        cosines.append(float((restored * vectors).sum(1).mean()))
    assert cosines == sorted(cosines) and cosines[0] > 0.8 and cosines[1] > 0.93 and cosines[2] > 0.995


def test_the_same_seed_gives_the_same_codes(vectors):
    one, two = (ResidualCodec.train(vectors, 16, 2, seed=3) for _ in range(2))
    assert np.array_equal(one.centroids, two.centroids)
    assert np.array_equal(one.compress(vectors).residuals, two.compress(vectors).residuals)


@given(st.sampled_from([1, 2, 4, 8]), st.integers(0, 2**32 - 1))
def test_every_byte_can_be_restored(bits, seed):
    values = np.sort(np.random.default_rng(seed).normal(size=1 << bits)).astype(np.float32)
    codec = ResidualCodec(unit(seed, 3, 8), (values[1:] + values[:-1]) / 2, values)
    codes = ResidualCodes(np.zeros(256, np.int32), np.repeat(np.arange(256, dtype=np.uint8)[:, None], bits, axis=1))
    assert np.isfinite(codec.restore(codes)).all()


@pytest.mark.parametrize(("borders", "values", "dimension"), [(1, 4, 8), (2, 3, 8), (0, 1, 8), (1, 2, 4)])
def test_invalid_codec_sizes_are_refused(borders, values, dimension):
    with pytest.raises(InputError):
        ResidualCodec(np.zeros((2, dimension)), np.zeros(borders), np.zeros(values))


def test_maxsim_matches_a_computation_by_hand():
    query = np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32)
    tokens = np.array([[0.6, 0.8], [1.0, 0.0], [0.0, -1.0]], dtype=np.float32)
    # the first passage has two tokens: best matches 1.0 and 0.8; the second has one: 0.0 and -1.0
    assert maxsim(query, tokens, np.array([0, 2])).tolist() == pytest.approx([1.8, -1.0])
