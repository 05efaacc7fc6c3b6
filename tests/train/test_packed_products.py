"""Products of matrices by whichever library is quickest: the same to the rounding of float32."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from dragoman.train.packed import products


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    """What was found out about the processor is forgotten."""
    products._is_for_onednn.cache_clear()
    yield
    products._is_for_onednn.cache_clear()


@pytest.mark.parametrize("is_for_onednn", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_both_libraries_multiply(monkeypatch: pytest.MonkeyPatch, is_for_onednn: bool, dtype: torch.dtype) -> None:
    """Whatever way round the factors lie in memory; other types than float32 are PyTorch's own."""
    monkeypatch.setattr(products, "_is_for_onednn", lambda: is_for_onednn)
    generator = torch.Generator().manual_seed(1)
    x, grad, weight = (torch.randn(shape, generator=generator).to(dtype) for shape in ((70, 24), (70, 40), (40, 24)))
    for found, a, b in (
        (products.product(x, weight.T), x, weight.T),
        (products.product(grad, weight), grad, weight),
        (products.turned_product(grad, x), grad.T, x),
        (products.turned_product(x, grad), x.T, grad),
        (products.product(grad[7:61], weight), grad[7:61], weight),
    ):
        assert found.dtype == dtype
        exact = a.double() @ b.double()
        bound = torch.finfo(dtype).eps * a.double().abs() @ b.double().abs()
        assert ((found.double() - exact).abs() <= 2 * bound).all()


@pytest.mark.parametrize(
    ("maker", "vectors", "expected"),
    [
        ("AuthenticAMD", "AVX512", True),
        ("AuthenticAMD", "AVX2", False),
        ("GenuineIntel", "AVX512", False),
    ],
)
def test_which_library_is_a_matter_of_the_processor_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, maker: str, vectors: str, expected: bool
) -> None:
    """MKL, which is the other, keeps AVX-512 for Intel's."""
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nvendor_id\t: {maker}\nflags\t\t: fpu\n")
    monkeypatch.setattr(products, "_CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: vectors)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    assert products._is_for_onednn() is expected


def test_a_processor_of_unknown_make(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Outside Linux it says itself what it is."""
    monkeypatch.setattr(products, "_CPUINFO", tmp_path / "missing")
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    for name, expected in (("AMD64 Family 26 Model 2, AuthenticAMD", True), ("Intel64 Family 6, GenuineIntel", False)):
        monkeypatch.setattr(products.platform, "processor", lambda name=name: name)
        products._is_for_onednn.cache_clear()
        assert products._is_for_onednn() is expected
