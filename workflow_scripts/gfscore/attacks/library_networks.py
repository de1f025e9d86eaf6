"""A network in the form that attacks of public libraries take, so that they leave no trace in it or in torch."""

from contextlib import contextmanager


@contextmanager
def as_library_expects(network, *, seed):
    """Give the network as a module whose attribute `images` counts the images passed through it.

    The libraries call backward(), which would leave gradients in the parameters, and draw from torch's global
    generator: meanwhile no parameter takes gradients, and the generator starts at `seed`. Both are restored.
    """
    import torch

    learned = [parameter for parameter in network.parameters() if parameter.requires_grad]
    for parameter in learned:
        parameter.requires_grad_(False)
    try:
        # Of one GPU only: by default the states of all of them are copied.
        devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(seed)
            yield _counted(network)
    finally:
        for parameter in learned:
            parameter.requires_grad_(True)


def _counted(network):
    import torch

    class Counted(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network, self.images = network, 0

        def forward(self, x):
            self.images += len(x)
            return self.network(x).float()

    return Counted().eval()
