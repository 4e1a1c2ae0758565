"""The table of methods: what each is called, how it is drawn, how it attacks and how it trains.

All other modules read this table. A new method is a class in `attacks` and a row here: it then
appears in `train --method`, `analysis`, `lm.perplexity`, the paper's tables and the plots.
"""
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from interpretable_adv import attacks, paper, updaters
from interpretable_adv.perturbations import Array

# Upstream's switches and ours, in the order of `Method.switches`.
SWITCHES = ('use_adv', 'use_attn_d', 'use_semi_data', 'use_spgd')


@dataclasses.dataclass(frozen=True)
class AttackSettings:
    """What an attack is, besides its method and the classifier; see `attacks` for the meanings.

    Attributes:
        k, k_offset: neighbours per word, and the rank of the first.
        limit_vocabulary: whether neighbours are words of labelled reviews only.
        class_lm: path of a class-conditional language model that guides the attack; '': none.
        class_lm_weight: λ, the weight of its log-likelihood.
        seed: of attacks that draw random numbers of their own.
    """

    epsilon: float
    level: str = 'sentence'
    first_scale: float = 1.0
    mask_eos: bool = False
    k: int = 10
    k_offset: int = 1
    limit_vocabulary: bool = True
    sparsity: float = 0.75
    iterations: int = 1
    step: float | None = None
    toward_only: bool = False
    rank: str = 'raw'
    directions: str = 'clean'
    class_lm: str = ''
    class_lm_weight: float = 1.0
    seed: int = 1234

    @property
    def budget(self) -> float:
        """The share of the words that an attack may swap."""
        return round(1 - self.sparsity, 6)


SHARED = ('level', 'first_scale', 'mask_eos')  # settings of every attack
OF_NEIGHBORS = ('k', 'k_offset', 'limit_vocabulary')  # settings of attacks that need neighbours
OF_GUIDES = ('class_lm', 'class_lm_weight')  # settings of attacks that can be guided


@dataclasses.dataclass(frozen=True)
class Method:
    """A row of the table.

    Attributes:
        title: name in tables and plots.
        color, marker: in plots; the colours are from the colour-blind safe palettes of Okabe and
            Ito, and of Tol.
        trained_by: the value of `train --method`; None: it cannot train.
        switches: upstream's way to ask for it, see `SWITCHES`; None: there is none.
        updater: the training step.
        attack: class of `attacks`; None: there is nothing to attack with.
        uses: settings of the attack, besides `SHARED` and those of neighbours.
        needs_neighbors: whether the attack takes a table of neighbours.
        refresh_steps: steps after which training computes them again; 0: by epochs, as upstream.
        virtual: whether it attacks the model's own output instead of the label.
        swaps: whether it swaps words. Such an attack has neither ε nor the settings `SHARED`; its
            strength is its budget, the share of words that it may swap.
        guided: whether it can follow a class-conditional language model; `needs_guide`: whether it
            must.
        control_of: the method whose classifier and settings a control borrows.
        host: the method whose classifier and settings an attack borrows that has none of its own.
        borrows: settings that a control takes from another method, `{setting: method}`.
    """

    name: str
    title: str
    color: str
    marker: str
    trained_by: str | None = None
    switches: tuple[int, int, int, int] | None = None
    updater: type | None = None
    attack: Callable[..., Any] | None = None
    uses: tuple[str, ...] = ()
    needs_neighbors: bool = False
    refresh_steps: int = 0
    virtual: bool = False
    swaps: bool = False
    guided: bool = False
    needs_guide: bool = False
    control_of: str | None = None
    host: str | None = None
    borrows: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def epsilon(self) -> float | None:
        """The paper's ε."""
        return paper.EPSILON.get(self.control_of or self.trained_by or self.name)

    @property
    def lender(self) -> str | None:
        """The method whose classifier and settings it borrows."""
        return self.control_of or self.host

    @property
    def starts_from_lm(self) -> bool:
        """Whether Table 3's classifier starts from the language model."""
        return self.trained_by is not None and self.name != 'baseline'

    @property
    def settings(self) -> tuple[str, ...]:
        """Names of the `AttackSettings` that its attack depends on, besides ε."""
        return (*(() if self.swaps else SHARED), *(OF_NEIGHBORS if self.needs_neighbors else ()),
                *self.uses, *(OF_GUIDES if self.guided else ()))

    @property
    def all_settings(self) -> tuple[str, ...]:
        """The same with ε, where it has one."""
        return self.settings if self.swaps else ('epsilon', *self.settings)

    def build_attack(self, settings: AttackSettings, neighbors: Any = None,
                     noise: Callable[[Any, tuple], Array] | None = None,
                     guide: attacks.Guide | None = None) -> Any:
        """The attack that the settings describe.

        Args:
            neighbors: table of neighbour ids, for methods that need one.
            noise, guide: see `attacks.AdvT`.
        """
        assert self.attack is not None, f'{self.name} has no attack'
        options = {name: getattr(settings, name) for name in self.uses}
        if self.needs_neighbors:
            options['neighbors'] = neighbors
        if self.virtual:
            options.update(virtual=True, noise=noise)
        if self.guided:
            options['guide'] = guide
        if self.swaps:
            return self.attack(**options)
        options.update((name, getattr(settings, name)) for name in SHARED)
        return self.attack(settings.epsilon, **options)


SPGD_USES = ('sparsity', 'iterations', 'step', 'toward_only', 'rank', 'directions')

# In the order of the paper's tables.
METHODS: dict[str, Method] = {row.name: row for row in (
    Method('baseline', 'Baseline', '#7f7f7f', 'v', trained_by='baseline', switches=(0, 0, 0, 0),
           updater=updaters.BaselineUpdater),
    Method('pretrained', 'Pretrained', '#000000', '^', trained_by='baseline'),
    Method('adv', 'AdvT-Text', '#0072b2', 'o', trained_by='adv', switches=(1, 0, 0, 0),
           updater=updaters.AdversarialUpdater, attack=attacks.AdvT, guided=True),
    Method('iadv', 'iAdvT-Text', '#e69f00', 's', trained_by='iadv', switches=(1, 1, 0, 0),
           updater=updaters.AdversarialUpdater, attack=attacks.IAdvT, needs_neighbors=True),
    Method('spgd', 'SPGD', '#009e73', 'D', trained_by='spgd', switches=(1, 0, 0, 1),
           updater=updaters.SPGDUpdater, attack=attacks.SPGD, uses=SPGD_USES,
           needs_neighbors=True, refresh_steps=50, guided=True),
    Method('spgd_lm', 'SPGD with p(x|y)', '#117733', 'p', trained_by='spgd',
           updater=updaters.SPGDUpdater, attack=attacks.SPGD, uses=SPGD_USES,
           needs_neighbors=True, guided=True, needs_guide=True, host='spgd'),
    Method('vat', 'VAT-Text', '#cc79a7', 'P', trained_by='vat', switches=(0, 0, 1, 0),
           updater=updaters.VirtualUpdater, attack=attacks.AdvT, virtual=True),
    Method('ivat', 'iVAT-Text', '#d55e00', 'X', trained_by='ivat', switches=(0, 1, 1, 0),
           updater=updaters.VirtualUpdater, attack=attacks.IAdvT, needs_neighbors=True,
           virtual=True),
    Method('none', 'None (ground-truth corpus)', '#bbbbbb', '.', attack=attacks.NoAttack),
    Method('adv_sparse', 'AdvT-Text, sparsified', '#56b4e9', '<', attack=attacks.SparseAdvT,
           uses=('sparsity',), control_of='adv', borrows={'sparsity': 'spgd'}, guided=True),
    Method('random', "Random, AdvT-Text's norms", '#999999', '>', attack=attacks.RandomDirections,
           uses=('seed',), control_of='adv', guided=True),
    Method('hotflip', 'HotFlip', '#882255', '*', attack=attacks.HotFlip, uses=('sparsity',),
           needs_neighbors=True, swaps=True, guided=True, host='spgd'),
    Method('hotflip_greedy', 'HotFlip, greedy', '#aa4499', 'h', attack=attacks.GreedyHotFlip,
           uses=('sparsity',), needs_neighbors=True, swaps=True, guided=True, host='spgd'),
)}


def trainable() -> list[str]:
    """The values of `train --method`."""
    return [name for name, row in METHODS.items() if row.trained_by == name]


def classifiers() -> list[str]:
    """The rows of Table 3, and others that can train."""
    return [name for name, row in METHODS.items() if row.trained_by is not None]


def attackers() -> list[str]:
    """What can attack a classifier, the clean corpus (`none`) and the controls included."""
    return [name for name, row in METHODS.items() if row.attack is not None]


def controls(methods: Sequence[str]) -> list[str]:
    """The controls that accompany these methods."""
    return [name for name, row in METHODS.items()
            if row.control_of is not None and row.control_of in methods]


def swapping(methods: Sequence[str]) -> list[str]:
    """The attacks by swaps that accompany these methods."""
    return [name for name, row in METHODS.items() if row.swaps and row.host in methods]


def by_switches(switches: tuple[int, ...]) -> list[Method] | None:
    """The methods that upstream's switches choose; None: they choose none.

    Upstream can train adversarially and virtually at once: then there are two.
    """
    rows = {row.switches: row for row in METHODS.values() if row.switches is not None}
    if switches in rows:
        return [rows[switches]]
    use_adv, use_attn_d, use_semi_data, use_spgd = switches
    if use_adv and use_semi_data and not use_spgd:
        return [rows[1, use_attn_d, 0, 0], rows[0, use_attn_d, 1, 0]]
    if use_attn_d and not (use_adv or use_semi_data or use_spgd):
        return [METHODS['baseline']]
    return None
