"""The papers that this package implements; CITATION.cff lists the same.

What the copies at hand do not state is left out: most of the five sources carry no year, and one neither title nor
authors.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Reference:
    """A paper, page or repository: who wrote it, what is `taken` from it here, and where it is found."""

    authors: str
    title: str
    taken: str
    year: int | None = None
    venue: str = ""
    arxiv: str = ""
    url: str = ""

    @property
    def link(self):
        """Address of the paper, or an empty text."""
        return f"https://arxiv.org/abs/{self.arxiv}" if self.arxiv else self.url


REFERENCES = (
    Reference(
        "A. Shah, K. Visavadiya, M. Padala",
        "GF-Score: Certified Class-Conditional Robustness Evaluation with Fairness Guarantees",
        "class scores, RDI, NRGC, WCR, FP, self-calibration",
    ),
    Reference(
        "cestwc",
        "precise-robustness",
        "the exact binomial test of probabilistic robustness; the copy at hand names neither title nor authors",
        url="https://github.com/cestwc/precise-robustness",
    ),
    Reference(
        "AI Security Blog",
        "Robustness measurement algorithms",
        "adversarial accuracy, minimal perturbations, certified radii (pseudo-code, section 26.3.1)",
        year=2025,
    ),
    Reference(
        "T. Medi, J. Grabinski, M. Keuper",
        "Towards Class-wise Robustness Analysis",
        "class false positive scores, confusions, similarities, targeted success",
    ),
    Reference(
        "Anonymous",
        "Is the Fairness Metric Truly Fair?",
        "Tolerance, Deviation, Coupling, the printed DP, EOpp, EOdd and AOdd",
        venue="Submission under double-blind review",
    ),
    Reference(
        "Z. Li, P.-Y. Chen, T.-Y. Ho",
        "GREAT Score: Global Robustness Evaluation of Adversarial Perturbation using Generative Models",
        "the attack-free margin score",
        year=2024,
        venue="NeurIPS",
        arxiv="2304.09875",
    ),
    Reference(
        "F. Croce, M. Andriushchenko, V. Sehwag, E. Debenedetti, N. Flammarion, M. Chiang, P. Mittal, M. Hein",
        "RobustBench: a standardized adversarial robustness benchmark",
        "networks, published accuracies",
        year=2021,
        arxiv="2010.09670",
    ),
    Reference(
        "F. Croce, M. Hein",
        "Reliable evaluation of adversarial robustness with an ensemble of diverse parameter-free attacks",
        "Auto-PGD, AutoAttack",
        year=2020,
        arxiv="2003.01690",
    ),
    Reference(
        "I. J. Goodfellow, J. Shlens, C. Szegedy",
        "Explaining and Harnessing Adversarial Examples",
        "FGSM",
        year=2015,
        arxiv="1412.6572",
    ),
    Reference(
        "A. Madry, A. Makelov, L. Schmidt, D. Tsipras, A. Vladu",
        "Towards Deep Learning Models Resistant to Adversarial Attacks",
        "PGD, as an attack and in training",
        year=2018,
        arxiv="1706.06083",
    ),
    Reference(
        "N. Carlini, D. Wagner",
        "Towards Evaluating the Robustness of Neural Networks",
        "the C&W attack",
        year=2017,
        arxiv="1608.04644",
    ),
    Reference(
        "A. Athalye, N. Carlini, D. Wagner",
        "Obfuscated Gradients Give a False Sense of Security: Circumventing Defenses to Adversarial Examples",
        "signs of gradient masking",
        year=2018,
        venue="ICML",
        arxiv="1802.00420",
    ),
    Reference(
        "J. M. Cohen, E. Rosenfeld, J. Z. Kolter",
        "Certified Adversarial Robustness via Randomized Smoothing",
        "certified radii",
        year=2019,
        arxiv="1902.02918",
    ),
    Reference(
        "H. Salman, G. Yang, J. Li, P. Zhang, H. Zhang, I. Razenshteyn, S. Bubeck",
        "Provably Robust Deep Learning via Adversarially Trained Smoothed Classifiers",
        "the attack on smoothed classifiers",
        year=2019,
        arxiv="1906.04584",
    ),
    Reference(
        "E. Wong, L. Rice, J. Z. Kolter",
        "Fast is better than free: Revisiting adversarial training",
        "training on single steps (FGSM)",
        year=2020,
        arxiv="2001.03994",
    ),
    Reference(
        "H. Zhang, Y. Yu, J. Jiao, E. P. Xing, L. El Ghaoui, M. I. Jordan",
        "Theoretically Principled Trade-off between Robustness and Accuracy",
        "training by TRADES",
        year=2019,
        arxiv="1901.08573",
    ),
    Reference(
        "Y. Wang, D. Zou, J. Yi, J. Bailey, X. Ma, Q. Gu",
        "Improving Adversarial Robustness Requires Revisiting Misclassified Examples",
        "training by MART",
        year=2020,
        venue="ICLR",
    ),
    Reference(
        "S. Sagawa, P. W. Koh, T. B. Hashimoto, P. Liang",
        "Distributionally Robust Neural Networks for Group Shifts: On the Importance of Regularization for Worst-Case "
        "Generalization",
        "training for the worst class (group DRO)",
        year=2020,
        arxiv="1911.08731",
    ),
    Reference(
        "B. Li, W. Liu",
        "WAT: Improve the Worst-class Robustness in Adversarial Training",
        "training for the worst class under attack",
        year=2023,
        arxiv="2302.04025",
    ),
    Reference(
        "D. Hendrycks, T. Dietterich",
        "Benchmarking Neural Network Robustness to Common Corruptions and Perturbations",
        "common corruptions",
        year=2019,
        venue="ICLR",
    ),
    Reference(
        "M. Hardt, E. Price, N. Srebro",
        "Equality of Opportunity in Supervised Learning",
        "differences between groups",
        year=2016,
        venue="NeurIPS",
    ),
    Reference(
        "I. Higgins, L. Matthey, A. Pal, C. Burgess, X. Glorot, M. Botvinick, S. Mohamed, A. Lerchner",
        "beta-VAE: Learning Basic Visual Concepts with a Constrained Variational Framework",
        "mappers without attributes",
        year=2017,
        venue="ICLR",
    ),
    Reference(
        "I. Waudby-Smith, A. Ramdas",
        "Estimating means of bounded random variables by betting",
        "intervals by betting",
        year=2024,
        arxiv="2010.09686",
    ),
    Reference(
        "W. Hoeffding",
        "Probability Inequalities for Sums of Bounded Random Variables",
        "Hoeffding's intervals",
        year=1963,
        venue="Journal of the American Statistical Association 58(301):13-30",
    ),
)
"""The five sources of the page in its order, then methods, by subject."""


def cited(reference):
    """A reference as one line of Markdown: authors and year, title, venue, link."""
    authors = f"{reference.authors} ({reference.year})" if reference.year else reference.authors
    words = [authors, f"*{reference.title}*"]
    if reference.venue:
        words.append(reference.venue)
    if reference.link:
        name = f"arXiv:{reference.arxiv}" if reference.arxiv else reference.link.removeprefix("https://")
        words.append(f"[{name}]({reference.link})")
    return ". ".join(words)
