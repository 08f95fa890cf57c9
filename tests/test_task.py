import math

import pytest
from torch.nn import functional as F

import lorpman as lp


def test_a_task_is_checked_when_it_is_made():
    with pytest.raises(lp.UsageError, match="maximise must be True or False"):
        lp.Task("a", F.mse_loss, F.mse_loss, maximise=1)
    with pytest.raises(lp.UsageError, match="must be finite"):
        lp.Task("a", F.mse_loss, F.mse_loss, reference=math.nan)
