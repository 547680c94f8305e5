from __future__ import annotations

import pytest

from kernmodel.errors import UsageError
from kernmodel.machine.cores import check_cores
from kernmodel.machine.load import load_machine


@pytest.mark.parametrize("cores", [-1, 0, 41])
def test_cores_that_the_machine_does_not_have(cores: int) -> None:
    with pytest.raises(UsageError, match=f"{cores} cores, but clx has 40") as caught:
        check_cores(load_machine("clx"), cores)
    assert caught.value.todo == "give 1 to 40"


@pytest.mark.parametrize("cores", [1, 40])
def test_cores_that_it_has(cores: int) -> None:
    check_cores(load_machine("clx"), cores)
