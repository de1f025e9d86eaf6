"""Pictures of the three findings."""

import numpy as np

from gfscore.show.drawing.theme import ACCENT, CATEGORIES, CONTRAST, INK, MUTED
from studies.drawing import drawing, framed_figure, laid_out, quiet
from studies.findings.numbers import DEFINITIONS, average, class_orders, standing
from studies.reproduction.classwise_networks import miss_rate_order
from studies.reproduction.real_networks import (
    CHECKPOINTS,
    PUBLISHED,
    TARGETED,
    class_order,
    family_of,
    networks,
    per_network,
)


def looks():
    """Colour and shape of each family of the checkpoints, in the order of the table."""
    families = dict.fromkeys(family_of(classes) for classes in networks(CHECKPOINTS).values())
    return dict(zip(families, zip(CATEGORIES, "osD^vPX", strict=True), strict=False))


def order_picture(title):
    """Models and classes by the attack-free score against what attacks leave."""
    checkpoints = networks(CHECKPOINTS).values()
    with drawing():
        figure = framed_figure(
            3.9,
            title=title,
            subtitle="17 CIFAR-10 checkpoints, 1,017 test images; PGD, then Auto-PGD, 20 steps each, l_inf 2/255.",
            note="Right: each row is a network that keeps at least 10% of its images; 1 is the same order of the ten "
            "classes as under attack. Dashed: means over networks.",
        )
        left, right = figure.subplots(1, 2, width_ratios=[1, 1.15])
        for family, (colour, shape) in looks().items():
            members = [classes for classes in checkpoints if family_of(classes) == family]
            score = [average(classes, "great_softmax") for classes in members]
            attacked = [average(classes, "attacked_recall") for classes in members]
            left.scatter(score, attacked, color=colour, marker=shape, label=family, s=34)
        left.set_xlabel("mean attack-free score (softmax), 0 to 1.25")
        left.set_ylabel("accuracy under attack")
        left.set_ylim(bottom=-0.02)
        left.set_title("Networks")
        left.legend()
        quiet(left, grid="both")
        by_score, _ = class_orders("great_softmax")
        by_recall, _ = class_orders("recall")
        _markers(right, by_score, label="attack-free score", colour=ACCENT, marker="o")
        _markers(right, by_recall, label="undisturbed recall", colour=CONTRAST, marker="s")
        _name_rows(right, list(standing()))
        right.set_xlabel("rank correlation over classes with recall under attack")
        right.set_title("Classes, network by network")
        right.legend(loc="lower left")
    return laid_out(figure)


def shared_picture(title):
    """Class profiles of all networks, each with its mean taken off and divided by its spread."""
    panels = {
        "8 published, undisturbed": (networks(PUBLISHED), "recall"),
        "17 checkpoints, undisturbed": (networks(CHECKPOINTS), "recall"),
        f"{len(standing())} checkpoints, under attack": (standing(), "attacked_recall"),
    }
    with drawing():
        figure = framed_figure(
            3.3,
            title=title,
            subtitle="Recall of each class, less the network's mean over classes, in standard deviations over classes.",
            note="A thin line is a network, its colour the family as in the picture above; the thick line the mean.",
        )
        grid = figure.subplots(1, 3, sharey=True)
        for axes, (title_of_panel, (frames, column)) in zip(grid, panels.items(), strict=True):
            profiles = []
            for classes in frames.values():
                recall = classes[column]
                profile = (recall - recall.mean()) / recall.std()
                colour, _ = looks().get(family_of(classes), (MUTED, ""))
                axes.plot(profile.to_numpy(), color=colour, linewidth=0.9, alpha=0.7)
                profiles.append(profile)
            axes.plot(np.mean(profiles, axis=0), color=INK, linewidth=2.4)
            axes.set_xticks(range(len(recall)), list(recall.index), rotation=60, ha="right", rotation_mode="anchor")
            axes.set_title(title_of_panel)
            quiet(axes, grid="y")
    return laid_out(figure)


def predictors_picture(title):
    """How well CFPS and 1 - recall order the classes by targeted success, network by network."""
    with drawing():
        figure = framed_figure(
            4.2,
            title=title,
            subtitle="Rank correlation over the ten classes with the success of targeted PGD (l_inf 2/255, 20 steps) "
            "towards each: 13 CIFAR-10 checkpoints, 60 images.",
            note="Three definitions of success: of all images of other classes; the same less the share that is taken "
            "for the class undisturbed; of those misclassified under the attack. Dashed: means.",
        )
        names = list(networks(TARGETED))
        grid = figure.subplots(1, 3, sharey=True)
        for axes, (definition, words) in zip(grid, DEFINITIONS.items(), strict=True):
            by_cfps, _ = per_network(class_order("cfps", f"target_{definition}"), TARGETED)
            by_miss_rate, _ = per_network(miss_rate_order(definition), TARGETED)
            _markers(axes, by_cfps, label="CFPS", colour=ACCENT, marker="o")
            _markers(axes, by_miss_rate, label="1 - recall", colour=CONTRAST, marker="s")
            _name_rows(axes, names)
            axes.set_title(words)
            axes.set_xlim(-1.05, 1.05)
        grid[0].legend(loc="lower left")
    return laid_out(figure)


def _markers(axes, values, *, label, colour, marker):
    # One row per network, the first on top, and the mean.
    rows = np.arange(len(values))[::-1]
    axes.scatter(values, rows, color=colour, marker=marker, label=label, s=26, alpha=0.85)
    axes.axvline(float(np.mean(values)), color=colour, linewidth=1, linestyle="--")


def _name_rows(axes, names):
    axes.axvline(0, color=MUTED, linewidth=0.8)
    axes.set_yticks(np.arange(len(names))[::-1], names)
    quiet(axes, grid="x")
