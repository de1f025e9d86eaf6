"""For which networks and how many passes a GPU pays, and how much of one a job takes."""

import pytest

from gfscore.networks.device_choice import Network, gpu_pays, memory_mb, percent_of

DIGITS = Network(4 * 47_530, (1, 8, 8))
RESNET_20 = Network(4 * 270_000, (3, 32, 32))
WIDE_RESNET = Network(4 * 36_500_000, (3, 32, 32))
RESNET_50 = Network(4 * 25_600_000, (3, 224, 224))


@pytest.mark.parametrize(
    ("network", "per_second"), [(DIGITS, 114_000), (RESNET_20, 1_083)], ids=["digits", "ResNet-20"]
)
def test_passes_a_second_are_those_that_were_measured_on_one_core(network, per_second):
    assert 1 / network.cpu_seconds_per_forward == pytest.approx(per_second, rel=0.2)


@pytest.mark.parametrize(
    ("network", "forwards", "pays"),
    [
        (DIGITS, 900, False),
        (DIGITS, 900 * 3000, False),
        (RESNET_20, 1_000, False),
        (RESNET_20, 10_000, True),
        (WIDE_RESNET, 10, False),
        (WIDE_RESNET, 10_000, True),
        (RESNET_50, 2_000, True),
    ],
)
def test_a_gpu_pays_where_it_saves_more_than_its_start(network, forwards, pays):
    assert gpu_pays(network, forwards) == pays


@pytest.mark.parametrize("network", [RESNET_20, WIDE_RESNET, RESNET_50])
def test_more_passes_never_lead_back_to_the_cpu(network):
    answers = [gpu_pays(network, 10**power) for power in range(9)]
    assert answers == sorted(answers)


def test_memory_grows_with_network_batch_and_gradients():
    assert memory_mb(RESNET_20, 256, gradients=True) < memory_mb(WIDE_RESNET, 256, gradients=True)
    assert memory_mb(WIDE_RESNET, 1, gradients=True) < memory_mb(WIDE_RESNET, 256, gradients=True)
    assert memory_mb(WIDE_RESNET, 256, gradients=False) < memory_mb(WIDE_RESNET, 256, gradients=True)
    # Activations of WideResNet-28-10 for a backward pass are about 28 MB an image.
    assert memory_mb(WIDE_RESNET, 256, gradients=True) > 256 * 28


@pytest.mark.parametrize(("memory", "total", "percent"), [(800, 80_000, 1), (801, 80_000, 2), (1, 80_000, 1),
                                                          (90_000, 80_000, 100), (1, None, 100)])  # fmt: skip
def test_a_part_is_a_whole_percentage_of_the_gpu(memory, total, percent):
    assert percent_of(memory, total) == percent
