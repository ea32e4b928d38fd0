# SPDX-License-Identifier: Apache-2.0
"""Rates of this CPU: fitted to times, kept in the cache folder, measured again where the file cannot be used."""

import dataclasses
import json
import logging
import os

import pytest
import torch
from test_forward import build

from lacis.capture.cost import Work, predict
from lacis.capture.rates import CpuRates, fitted, usual
from lacis.runtime import calibration

# Per call, value, product and byte of sparse layers; per call, weight, products with few and many tokens, far byte.
TRUE = CpuRates(1.4e-5, 1.6e-10, 1.7e-11, 9e-11, 2e-6, 1e-10, 3e-11, 2e-11, 6e-11)
TOKENS = (1, 8, 16, 64, 128)
SIZES = [(128, 1, 0.05), *((1024, tokens, kept) for tokens in TOKENS for kept in (0.05, 0.3)), (4096, 1, 0.1)]


def times(rates: CpuRates, dtype=torch.float32, late=0.0, quiet=True) -> calibration.Measured:
    """What a machine with these rates measures, where one of the layers waits for so many seconds."""
    works = [Work(n, n, tokens, int(n * n * kept), (1, 1), dtype) for n, tokens, kept in SIZES]
    loops = [(work, rates.loops(work) + late * (n == 3)) for n, work in enumerate(works)]
    return calibration.Measured(loops, [(work, rates.dense(work)) for work in works], quiet)


class Machine:
    """Stands for the CPU: counts how often it is measured."""

    def __init__(self):
        self.rates, self.late, self.quiet, self.asked = TRUE, 0.0, True, []

    def measure(self, dtype):
        self.asked.append(dtype)
        return times(self.rates, dtype, self.late, self.quiet)


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine with the true rates, and a process that knows none, with a cache of its own."""
    found = Machine()
    monkeypatch.setenv("LACIS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("LACIS_CALIBRATE", "1")
    monkeypatch.setattr(calibration, "measure", found.measure)
    monkeypatch.setattr(calibration, "_known", {})
    return found


def in_a_new_process(dtype=torch.float32):
    calibration._known.clear()
    return calibration.rates(dtype)


def near(found: CpuRates, expected: CpuRates):
    assert dataclasses.astuple(found) == pytest.approx(dataclasses.astuple(expected), rel=1e-6)


def test_fitted_rates_give_the_times_again():
    measured = times(TRUE)
    near(fitted(measured.loops, measured.dense), TRUE)


def test_no_rate_is_negative_and_the_fit_is_near_where_times_are_off():
    measured = times(TRUE)
    off = lambda pairs: [(work, seconds * (1.2 if n % 2 else 0.85)) for n, (work, seconds) in enumerate(pairs)]
    found = fitted(off(measured.loops), off(measured.dense))
    assert all(rate >= 0 for rate in dataclasses.astuple(found))
    for work, seconds in measured.loops:
        assert seconds / 1.3 < found.loops(work) < seconds * 1.3
    free = dataclasses.replace(TRUE, entry=0.0, dense_weight=0.0)
    measured = times(free)
    found = fitted(measured.loops, measured.dense)
    assert found.entry * 1e6 < free.call and found.product == pytest.approx(free.product, rel=1e-6)


def test_a_machine_is_measured_once_for_each_dtype_and_number_of_threads(machine, monkeypatch):
    near(calibration.rates(torch.float32), TRUE)
    near(in_a_new_process(), TRUE)
    assert machine.asked == [torch.float32]
    near(in_a_new_process(torch.bfloat16), TRUE)
    assert machine.asked == [torch.float32, torch.bfloat16]
    monkeypatch.setattr(torch, "get_num_threads", lambda: 77)
    near(in_a_new_process(), TRUE)
    assert machine.asked == [torch.float32, torch.bfloat16, torch.float32]


def the_file():
    """That of the one dtype which this process knows."""
    return calibration.path(*calibration._known)


def test_the_file_is_private_and_says_what_it_is_about(machine):
    calibration.rates(torch.float32)
    file = the_file()
    content = json.loads(file.read_text())
    assert file.stat().st_mode & 0o777 == 0o600 and [each.name for each in file.parent.iterdir()] == [file.name]
    assert content["about"] == calibration.identity(torch.float32)
    near(CpuRates(**content["rates"]), TRUE)


def another_dtype(file):
    content = json.loads(file.read_text())
    content["about"]["dtype"] = "float64"
    file.write_text(json.dumps(content))


def with_rate(value):
    def damage(file):
        content = json.loads(file.read_text())
        content["rates"]["product"] = value
        file.write_text(json.dumps(content))

    return damage


def a_link(file):
    kept = file.with_name("elsewhere")
    os.replace(file, kept)
    file.symlink_to(kept)


DAMAGES = {
    "cut off": lambda file: file.write_text(file.read_text()[:-20]),
    "empty": lambda file: file.write_text(""),
    "no text": lambda file: file.write_bytes(b"\xff\xfe\x00"),
    "no object": lambda file: file.write_text("[1, 2]"),
    "deep": lambda file: file.write_text("[" * 4000),
    "too long": lambda file: file.write_text(" " * 5000 + file.read_text()),
    "no rates": lambda file: file.write_text(json.dumps({"about": json.loads(file.read_text())["about"], "rates": 3})),
    "negative": with_rate(-1e-11),
    "infinite": with_rate(float("inf")),
    "not a number": with_rate(float("nan")),
    "a string": with_rate("1e-11"),
    "another dtype": another_dtype,
    "a link": a_link,
    "others write": lambda file: file.chmod(0o666),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_file_that_cannot_be_used_is_replaced(machine, caplog, damage):
    calibration.rates(torch.float32)
    file = the_file()
    DAMAGES[damage](file)
    near(in_a_new_process(), TRUE)
    assert len(machine.asked) == 2 and "measured again" in caplog.text
    near(in_a_new_process(), TRUE)
    assert len(machine.asked) == 2 and not file.is_symlink() and file.stat().st_mode & 0o777 == 0o600


def test_a_busy_machine_is_measured_again_by_the_next_process(machine, caplog):
    caplog.set_level(logging.INFO, logger="lacis")
    machine.quiet = False
    near(calibration.rates(torch.float32), TRUE)
    near(calibration.rates(torch.float32), TRUE)
    assert len(machine.asked) == 1 and "measures it again" in caplog.text
    near(in_a_new_process(), TRUE)
    assert len(machine.asked) == 2


@pytest.mark.parametrize("late", ["one layer", "every call"])
def test_times_that_are_none_make_no_rates(machine, late):
    if late == "one layer":  # 8 ms, a turn of another process
        machine.late = 8e-3
    else:
        machine.rates = dataclasses.replace(TRUE, call=8e-3, dense_call=8e-3)
    assert in_a_new_process() == usual(torch.float32, torch.get_num_threads())
    assert in_a_new_process(torch.bfloat16) is None
    assert len(machine.asked) == 2 and calibration.path("0").parent.is_dir() and not calibration.path("0").exists()
    machine.rates, machine.late = TRUE, 0.0
    near(in_a_new_process(), TRUE)


def test_without_a_cache_a_process_measures_for_itself(machine, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LACIS_CACHE_DIR", str(tmp_path / "file"))
    near(calibration.rates(torch.float32), TRUE)
    near(calibration.rates(torch.float32), TRUE)
    assert len(machine.asked) == 1


@pytest.mark.parametrize("variable, value", [("LACIS_CALIBRATE", "0"), ("LACIS_DEBUG", "1")])
def test_the_table_holds_where_nothing_is_measured(machine, monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    work = Work(3072, 768, 128, 3072 * 768 // 10, (1, 1), torch.float32)
    assert predict(work, "cpu", "loops", calibration.rates(torch.float32)) == predict(work, "cpu", "loops")
    assert calibration.rates(torch.bfloat16) is None and not machine.asked


def test_integers_have_no_rates(machine):
    assert calibration.rates(torch.int32) is None and not machine.asked


def test_reports_and_choices_go_by_the_rates_of_this_machine(machine):
    model, schedule = build()
    row = schedule.report(torch.randn(8, 40)).rows[0]
    work = Work(24, 40, 8, 192, (1, 1), torch.float32)
    assert row.predicted_ms == pytest.approx(TRUE.loops(work) * 1e3, rel=1e-6)
    assert row.dense_predicted_ms == pytest.approx(TRUE.dense(work) * 1e3, rel=1e-6)
    assert machine.asked == [torch.float32]


def test_this_machine_can_be_measured(monkeypatch):
    monkeypatch.setattr(calibration, "_SECONDS", 0.0)
    before = torch.get_rng_state()
    measured = calibration.measure(torch.float32)
    found = fitted(measured.loops, measured.dense)
    assert torch.equal(before, torch.get_rng_state()), "a calibration draws no numbers of the user's"
    assert len(measured.loops) == 5 and len(measured.dense) == 7
    assert all(seconds > 0 for _, seconds in (*measured.loops, *measured.dense))
    assert max(dataclasses.astuple(found)) > 0 <= min(dataclasses.astuple(found))
