"""PaMaL's rule: linear scalarisation with balanced tasks, and a guarded regulariser."""

from typing import Literal, get_args

import torch
from torch import Tensor

from lorpman.errors import UsageError, unknown
from lorpman.rules.base import Rule, Step
from lorpman.rules.objective import Term
from lorpman.rules.task_gradients import gradient_norms

Balance = Literal["none", "gradnorm", "rwa", "full"]
BALANCES = get_args(Balance)
# Both as in PaMaL's code.
_SMALL = 1e-3
_HISTORY = 25


class Balanced(Rule):
    """``sum_ji w_ji losses_ji``, where ``w_ji`` is ``alpha_ji`` times what balances the tasks.

    Args:
        balance: What balances the tasks.

            - ``none``: nothing.
            - ``gradnorm``: division by ``n_ji + 0.001``, the norm of the gradient of the raw loss
              over the shared parameters.
            - ``rwa``: times ``1 - |l_i| / sum_k |l_k|``, with ``l`` the mean of the last 25
              losses; every preference adds one, and the first 25 are not weighted.
            - ``full``: both; the norm is then that of the loss already weighted by ``rwa``.
        regulariser: A term that is added to the objective.
        guard: Add it only where it is smaller than the rest of the objective, as PaMaL's code
            does.

    Raises:
        UsageError: If ``balance`` is unknown.
    """

    def __init__(
        self, balance: Balance = "none", regulariser: Term | None = None, guard: bool = True
    ) -> None:
        super().__init__()
        if balance not in BALANCES:
            raise unknown("balance", balance, BALANCES)
        self.balance = balance
        self.regulariser = regulariser
        self.guard = guard
        self._recent_losses = torch.zeros(0, 0)

    def backward(self, step: Step) -> None:
        """Leave the gradient of the balanced losses and the regulariser.

        Raises:
            UsageError: If gradients are to be balanced and nothing shared is trained.
        """
        rows = zip(step.alphas, step.losses, strict=True)
        weights = torch.stack([self._weights(alpha, losses, step) for alpha, losses in rows])
        total = (weights * step.losses).sum()
        if self.regulariser is not None:
            extra = self.regulariser(step.alphas, step.losses, step.model)
            if not self.guard or extra < total:
                total = total + extra
        step.backward(total)

    def _weights(self, alpha: Tensor, losses: Tensor, step: Step) -> Tensor:
        """The weights ``[m]`` of the losses at one preference."""
        weights = torch.ones_like(alpha)
        if self.balance in ("rwa", "full"):
            weights = self._by_loss(losses.detach())
        if self.balance in ("gradnorm", "full"):
            shared = step.model.shared_parameters(alpha)
            if not shared:
                raise UsageError("gradient balancing needs trainable shared parameters, found none")
            weights = weights / (weights * gradient_norms(losses, shared) + _SMALL)
        return alpha * weights

    def _by_loss(self, losses: Tensor) -> Tensor:
        """``1 - |l_i| / sum_k |l_k|`` for each task, ``[m]``; remembers the ``losses [m]``."""
        recent = self._recent_losses.to(losses).reshape(-1, len(losses))
        # One more than the mean takes: that there are 26 says that the first 25 are over.
        self._recent_losses = torch.cat([recent, losses[None]])[-_HISTORY - 1 :]
        if len(self._recent_losses) <= _HISTORY:
            return torch.ones_like(losses)
        mean = self._recent_losses[1:].mean(0).abs()
        return 1 - mean / mean.sum().clamp_min(torch.finfo(mean.dtype).tiny)

    # The number of tasks is not known before the first step, so this is no buffer.
    def get_extra_state(self) -> Tensor:
        """The recent losses, for a checkpoint."""
        return self._recent_losses

    def set_extra_state(self, state: Tensor) -> None:
        """Take the recent losses from a checkpoint.

        Args:
            state: What :meth:`get_extra_state` gave.
        """
        self._recent_losses = state
