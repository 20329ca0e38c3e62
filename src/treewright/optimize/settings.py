"""How much searches do: their constants as settings, which a fit gets by its `Conduct`.

Nobody has to choose them: they are not parameters of estimators. Whoever wants shorter searches, as tests do, passes
others. Tolerances and what is mathematics stay where they are used.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "BinOCTSearch",
    "JoiningSettings",
    "OCTHSearch",
    "OCTSVMSearch",
    "S2OCTSearch",
    "SVM1ODTSearch",
    "SearchSettings",
    "TeacherSettings",
]


@dataclass(frozen=True)
class TeacherSettings:
    """The teacher that is made where none is given, and the ensemble where none is given."""

    n_trees: int = 100
    """Trees of a forest."""
    refined_trees: int = 50
    """Trees of one that is refined."""
    asked_votes: float = 1e7
    """Votes of trees for points that are asked for: fewer trees where there are many points."""
    asking_share: float = 0.6
    """Share of the time in which labels are left out."""
    refined_rounds: int = 3
    """Rounds of refinement."""
    refined_labels: float = 50.0
    """Labels with which half of the scores are refined."""
    refined_steepness: float = 3.0
    """How fast that share falls with more of them."""
    least_refined: float = 0.02
    """Refined scores with a smaller share are not made."""
    refined_points: int = 20_000
    """Points up to which scores are refined."""
    unseen_cells: int = 10_000_000
    """Points times classes times folds up to which what is said without some of the labels is kept."""
    nearest_products: float = 2e9
    """Products of features and pairs of points in a search for the nearest labelled point."""

    folds: int = 5
    """Folds of labelled points."""
    fold_points: int = 2000
    """Most points in them."""
    fold_trees: int = 30
    """Trees of a forest in a fold."""
    telling_labels: int = 150
    """Labels that have to be left out to tell whether a classifier can be done without. On 28 made registers cut at
    exact totals all classifiers find 1.5 % more than those that are needed with up to 100 labels, 0.1 % fewer with
    more."""

    kernel_points: int = 3000
    """Up to this many points a kernel machine is soon fitted."""
    kernel_work: float = 3e9
    """Products of features, pairs of points and pairs of classes that a kernel machine may take."""
    linear_cells: int = 3_000_000
    """Points times features times classes that a logistic regression is fitted on."""
    linear_steps: int = 300
    """Most iterations of it."""
    gaussian_points: int = 20_000
    """Points that normal distributions are fitted on."""
    gaussian_features: int = 500
    """Features up to which classes are seen as normal distributions with one covariance."""
    forest_points: int = 20_000
    """Points that a forest is fitted on."""
    forest_batch: int = 10
    """Trees that are added to it at a time."""
    small_cells: int = 20_000
    """Points times features up to which all its trees are there at once."""
    boosted_points: int = 20_000
    """Points that boosting is fitted on."""
    many_boosted: int = 2000
    """From how many on it has more and larger trees."""
    boosted_rounds: int = 50
    """Its rounds. On 28 made registers cut at exact totals it finds 68.5 % so with trees of 8 leaves, in a third of the
    time of 100 rounds of 15 leaves and steps of 0.1, which find 68.4."""
    boosted_step: float = 0.15
    """What of each round is taken."""
    many_boosted_rounds: int = 100
    """Its rounds on many points."""
    many_asked: int = 200_000
    """With more points to be asked for it has fewer rounds and larger steps, as each takes its time at each point. On
    the register of a million rows of benchmarks/register.py 79.6 % are right so, in 7 microseconds a row, beside 79.8
    in 36."""
    many_asked_rounds: int = 20
    """Its rounds then."""
    many_asked_step: float = 0.4
    """What of each is taken then."""
    axes: int = 30
    """Principal axes that turned trees see."""
    axes_cells: int = 5_000_000
    """Points times features from which they are found."""

    imagined_rows: int = 2000
    """Rows that a tree has to learn from, imagined ones included. On 27 of the 55 tables with 5 % labels a tree errs on
    26.3 % of new rows with them, on 27.1 without, the teacher on 26.1."""
    imagined_cells: int = 500_000
    """Cells of these rows."""

    ensemble_trees: int = 200
    """Trees of the forest of C2RF where no ensemble is given."""
    ensemble_few_trees: int = 10
    """The same where there is no time for more."""
    vote_seconds: float = 1e-7
    """What the vote of a tree of it on a row takes, all that is done with it included."""


@dataclass(frozen=True)
class JoiningSettings:
    """Linear programs of a hyperplane that points join where its last solution misses them."""

    near: int
    """Points nearest to the hyperplane that are in the first program."""
    at_a_time: int
    """Points that join at a time."""
    programs: int
    """Most programs."""


@dataclass(frozen=True)
class S2OCTSearch:
    """What finds trees for labelled and unlabelled points and their totals."""

    samples: int = 6
    """Optimal trees among which one is chosen, where that takes several."""

    guided_rounds: int = 6
    """How often an attempt that misses the totals is guided anew."""
    taught_kicks: int = 6
    """How often a tree that follows the teacher leaves totals that it meets, to keep more of what was taught."""
    taught_attempts: int = 60
    """Most attempts with a teacher."""
    idle_taught: int = 5
    """Such attempts without a better tree after which they end, where the least objective is proven."""
    idle_unproven: int = 12
    """The same where it is not."""
    proven_attempts: int = 24
    """Attempts after which a proven optimum is enough, however few trees there are to choose from."""
    small_cells: int = 5000
    """Non-zeros up to which branch and bound is soon through, so that a search should not keep it waiting."""
    idle_attempts: int = 10
    """Attempts without improvement after which the search ends, for such programs."""
    idle_large: int = 30
    """The same for others."""
    all_share: float = 0.6
    """Share of the time in which all trees of two levels with one feature a split may be looked at, where trees have
    two levels."""
    all_share_deeper: float = 0.1
    """The same where they have more."""
    priced_share: float = 0.2
    """Share of the time for the first trees with one feature a split."""

    path: tuple[tuple[int | None, float], ...] = (
        (3, 1.0),
        (1, 3.0),
        (1, 1.0),
        (2, 3.0),
        (2, 1.0),
        (5, 1.0),
        (None, 1.0),
        (None, 0.2),
    )
    """Features of a split and price of one, from sparse to dense; the first serves where there is no time for
    others."""
    path_kicks: int = 6
    """How often a tree of the path leaves totals that it meets, to keep more of what was taught."""

    taught_points: int = 8_000
    """Taught points that a tree is fitted to; where there are more, a sample of them."""
    taught_passes: int = 8
    """Passes over the nodes."""
    random_starts: int = 3
    """Random starts."""
    few_points: int = 3000
    """Points above which there is one of them only."""
    fitting_share: float = 0.5
    """Share of the time that is left in which a tree is fitted; its thresholds need time too."""
    sampled_points: int = 3000
    """Labelled points that trees are grown on and linear programs have; where there are more, a sample of them."""
    guided_points: int = 250
    """Unlabelled points with guided labels that a tree is grown on, and that a linear program has."""
    separating_passes: int = 3
    """Passes over the nodes in which guided trees are separated anew."""

    priced_rounds: int = 12
    """Changes of the prices of classes."""
    priced_points: int = 4_000
    """Taught points that a tree is fitted to at these prices; where there are more, a sample of them."""

    levelling_rounds: int = 12
    """Most moves at a price of rows that miss the totals."""
    levelling_last_rounds: int = 24
    """Most moves at the last price."""
    turns: int = 16
    """Directions near to a node's own that are tried."""
    turn_cells: int = 4_000_000
    """Points times directions times nodes that a round may look at; fewer directions where there are more."""

    sides_rounds: int = 6
    """How often labels and totals are mended in turn."""
    sides_passes: int = 3
    """Passes over the nodes in which labelled points get their margins."""
    sides_joining: JoiningSettings = JoiningSettings(near=200, at_a_time=500, programs=12)

    margin_rounds: int = 60
    """Rounds of program and cut at a node."""
    margin_sweeps: int = 3
    """Sweeps over the nodes."""
    hopeless: int = 6
    """With more points without room than this a sweep ends."""
    margin_patience: int = 4
    """Rounds in which a point may lack room before it is sent to the other side, for twice as many."""
    margin_joining: JoiningSettings = JoiningSettings(near=150, at_a_time=300, programs=8)

    hard_points: int = 3000
    """Above this many labelled points at a node only shifts are tried."""
    kept_programs: int = 32
    """Nodes whose linear programs are kept."""
    widening_joining: JoiningSettings = JoiningSettings(near=200, at_a_time=500, programs=20)


@dataclass(frozen=True)
class BinOCTSearch:
    """What finds trees with splits of single features, of BinOCT and of fair trees."""

    restarts: int = 40
    """Trees that a search begins with, besides the given ones and CART."""


@dataclass(frozen=True)
class OCTHSearch:
    """What finds trees with splits by hyperplanes that have the fewest errors.

    Rounds of wandering without a better tree end the search, besides three times as many as there were: a round for
    three points between the least and the most, as branch and bound does the less afterwards the more points there are.
    """

    least_patience: int = 30
    most_patience: int = 120
    most_values: int = 20_000_000
    """Points times splits beyond which trees do not wander."""
    step_values: int = 300_000
    """Values that a round of wandering looks at: steps times points."""
    least_steps: int = 30
    """Steps of a round."""
    most_steps: int = 3000
    fresh: float = 0.15
    """Share of the rounds that begin with a new tree."""
    kicked: float = 0.35
    """Share of those that begin with another split somewhere."""
    heat: tuple[float, float] = (-0.7, 0.5)
    """Powers of ten between which a round draws the errors it accepts at first, in points."""
    tao_alphas: tuple[float, ...] = (0.3, 0.03)
    """Prices of normals in the trees of alternating optimization that are starts."""


@dataclass(frozen=True)
class SVM1ODTSearch:
    """What finds 1-norm support vector trees."""

    passes: int = 10
    """Most passes of the driver over a tree."""
    tao_alpha: float = 0.3
    """Price of a normal in the trees of alternating optimization that are starts."""
    patience: int = 60
    """Rounds without a better tree after which the search ends, besides three times as many as there were before; 0 for
    the starts alone."""
    step_values: int = 300_000
    """Values that a round of wandering looks at: steps times points."""
    least_steps: int = 20
    """Steps of a round."""
    most_steps: int = 3000
    fresh: float = 0.05
    """Share of the rounds that begin with a new tree."""
    kicked: float = 0.3
    """Share of those that begin with another split somewhere."""
    heat: tuple[float, float] = (-0.5, 0.5)
    """Powers of ten between which a round draws the losses it accepts, in points."""
    cheap: tuple[float, float] = (-4.0, -1.5)
    """Powers of ten between which it draws the first price of margins."""
    before_crossing: int = 5
    """Rounds of wandering before the first one in which points change places."""
    most_pause: int = 32
    """Most between two of them."""
    shallow_share: float = 0.25
    """Share of the time for the best tree of one level less, which deeper trees than of depth 2 start from too."""
    crossed_new: float = 0.6
    """Share of the rounds of crossing that begin with a new tree."""
    crossed_sparse: float = 0.7
    """Share of these trees that are made from a sparse root."""
    settled: int = 16
    """Trees that are fitted to places at a time."""
    kept: int = 20
    """The best of them that are kept to go on from."""
    warm: tuple[float, float] = (-1.5, -0.3)
    """Powers of ten of the losses that are accepted where points change places, as a share of what planes cost."""
    cross_values: int = 3_000_000
    """Values of points that a round of such changes looks at."""
    fewest_crossings: int = 120
    """How many changes these are at least."""
    most_crossings: int = 1500
    choice_patience: int = 4
    """Rounds without a better tree in the searches of a choice of prices."""
    choice_partitions: int = 4
    """Most partitions of the points into folds in that choice."""


@dataclass(frozen=True)
class OCTSVMSearch:
    """What finds maximum-margin trees."""

    patience: int = 30
    """Restarts without a better tree after which a whole fit turns to branch and bound; three times as many end the
    search anyway, 0 is for the starts alone."""
    first_patience: int = 4
    """The same of a search before it, whose tree tightens the program."""
    choice_restarts: int = 2
    """Restarts of each tree in the choice of the length of normals."""
    choice_points: int = 2000
    """Points of large tables that this choice sees."""


@dataclass(frozen=True)
class SearchSettings:
    """All of them, and when branch and bound is worth beginning."""

    program_cells: int = 30_000_000
    """Non-zeros of a program beyond which no solver gets anywhere and memory runs out."""
    teacher: TeacherSettings = TeacherSettings()
    s2oct: S2OCTSearch = S2OCTSearch()
    binoct: BinOCTSearch = BinOCTSearch()
    oct_h: OCTHSearch = OCTHSearch()
    svm1odt: SVM1ODTSearch = SVM1ODTSearch()
    octsvm: OCTSVMSearch = OCTSVMSearch()
