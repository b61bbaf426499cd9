"""The peer's objectives: forward and backward of one micro-batch, and its part of the step's losses."""
import torch


class Objective:
    def total(self, batch):
        """Number that the means of an optimizer step are taken over: its sequences."""
        return len(batch[0])

    def tokens(self, batch):
        return batch[0].numel()


class Causal(Objective):
    names = ["train/loss"]

    def __init__(self, deck, model, autocast, compiled):
        self.model, self.autocast = compiled(model), autocast

    def accumulate(self, tokens, targets, total):
        """tokens, targets (B, T); total: sequences of the optimizer step. Returns the sums of the losses in `names`."""
        with self.autocast():
            loss = self.model(tokens, targets) * (len(tokens) / total)
        loss.backward()
        return loss.detach()[None]


class Refinement(Objective):
    """As lib/objective/refinement.hpp states it. A supervision step is one compiled function, whose backward follows
    immediately: only one step's activations are kept. The embedding's waits for the gradients of x from all steps."""
    def __init__(self, deck, model, autocast, compiled):
        o = deck.objective
        self.model, self.autocast, self.advance = model, autocast, compiled(self.supervision_step)
        self.reward, self.S = o.reward, o.supervision_steps
        powers = [o.weight_base**(s - self.S + 1) for s in range(self.S)]
        self.shares = [power / sum(powers) for power in powers]
        self.names = ["train/loss"] + [f"train/loss_step_{s}" for s in range(self.S)]

    def supervision_step(self, x, y, z, targets, weights):
        """weights (B); returns the loss, each sequence's (B), and the states of the next step, constants for the gradient."""
        y, z = self.model.advance(x, y, z)
        losses = self.model.token_losses(y, targets).mean(1)
        return (weights * losses).sum(), losses.detach(), y.detach(), z.detach()

    def accumulate(self, tokens, targets, total):
        with self.autocast():
            embedded = self.model.embedded(tokens)
        x, y, z = embedded.detach().requires_grad_(), None, None
        weights = torch.full((len(tokens),), self.shares[0] / total, device=tokens.device)
        sums = [-self.reward * len(tokens) / total]
        for s in range(self.S):
            with self.autocast():
                loss, losses, y, z = self.advance(x, y, z, targets, weights)
            loss.backward()
            sums[0] = sums[0] + loss.detach()
            sums.append(losses.sum() / total)
            # In the improvement (before - after) / before, per sequence, only -after is differentiated.
            if s + 1 < self.S:
                weights = (self.shares[s + 1] + self.reward / (self.S - 1) / losses) / total
        embedded.backward(x.grad)
        return torch.stack(sums)


class Supervised(Objective):
    """As lib/objective/supervised.hpp states it; batches are those of peer_chat.ChatBatches."""
    names = ["train/loss"]

    def __init__(self, deck, model, autocast, compiled):
        self.model, self.autocast, self.packed = compiled(model), autocast, deck.data.packing

    def total(self, batch):
        return (batch[1] >= 0).sum()

    def tokens(self, batch):
        return int(batch[3].sum())

    def accumulate(self, tokens, targets, positions, _, total):
        with self.autocast():
            loss = self.model(tokens, targets, positions if self.packed else None, total)
        loss.backward()
        return loss.detach()[None]


def make_objective(deck, model, autocast, compiled):
    return {"causal": Causal, "refinement": Refinement,
            "supervised": Supervised}[deck.objective.kind](deck, model, autocast, compiled)
