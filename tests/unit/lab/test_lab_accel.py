# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from lab import accel
from lab.base import LabError
from lab.image import Image
from lab.qemu import TCG, Accel

IMAGE = Image(Path("/nowhere"), "0123456789ab")
KVM = Accel("kvm", "host")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUFLEET_LAB_DIR", str(tmp_path))
    monkeypatch.delenv("GPUFLEET_LAB_ACCEL", raising=False)
    monkeypatch.setattr(accel, "_boot_id", lambda: "this boot")


def test_tcg_can_be_forced_without_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUFLEET_LAB_ACCEL", "tcg")
    assert accel.choose(IMAGE) == TCG


def test_another_word_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUFLEET_LAB_ACCEL", "xen")
    with pytest.raises(LabError, match="xen"):
        accel.choose(IMAGE)


@pytest.mark.parametrize("known", [TCG, KVM], ids=lambda known: known.name)
def test_the_answer_of_a_trial_is_kept(known: Accel) -> None:
    accel.remember(known, "tried")
    assert accel.choose(IMAGE) == known
    assert accel.describe() == f"{known.name} (tried)"


def test_the_answer_of_another_boot_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    accel.remember(KVM, "tried")
    monkeypatch.setattr(accel, "_boot_id", lambda: "the next boot")
    assert accel.describe() == "not tried yet"


def test_kvm_is_taken_where_a_guest_boots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *_words: True)
    monkeypatch.setattr(accel, "_boot", lambda _image, model: "" if "arch" in model.cpu else "it hangs")
    assert accel.choose(IMAGE) == Accel("kvm", "host,-arch-capabilities")


def test_tcg_is_taken_where_none_boots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *_words: True)
    monkeypatch.setattr(accel, "_boot", lambda _image, _model: "it hangs")
    assert accel.choose(IMAGE) == TCG
    assert accel.describe() == "tcg (it hangs)"


def test_kvm_that_was_asked_for_and_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    accel.remember(TCG, "it hangs")
    monkeypatch.setenv("GPUFLEET_LAB_ACCEL", "kvm")
    with pytest.raises(LabError, match="it hangs"):
        accel.choose(IMAGE)
