"""The flags that describe an attack, and the attack that they describe."""
from interpretable_adv import attacks
from interpretable_adv.cli import at_least, share


def add(parser):
    """Adds SPGD's flags to a command; returns their group."""
    group = parser.add_argument_group('SPGD')
    add = group.add_argument
    switch = {'type': int, 'choices': (0, 1), 'nargs': '?', 'const': 1, 'default': 0}
    add('--sparsity', type=share, default=0.75, help='σ, share of the words that stay in place')
    add('--spgd_iters', type=at_least(1), default=1, help='M, gradient steps')
    add('--spgd_step', type=at_least(0, float), help='size of a gradient step (default: ε)')
    add('--spgd_toward_only', **switch,
        help='leave words in place whose neighbours all lie behind')
    add('--sparsity_rank', choices=('raw', 'projected'), default='raw',
        help='which norm ranks the words')
    add('--mask_eos', **switch, help="never perturb a review's end, in any method")
    return group


def build(method, epsilon, neighbors, settings, **options):
    """The attack of a method: adv or vat, iadv or ivat, spgd.

    Args:
        neighbors: table of neighbour ids, for the methods that need one.
        settings: values of the flags, with `norm_sentence_level`.
        options: of the attack, beside what the flags say.
    """
    options = {'level': 'sentence' if settings.norm_sentence_level else 'word',
               'mask_eos': bool(settings.mask_eos), **options}
    if method == 'spgd':
        return attacks.SPGD(
            epsilon, neighbors, settings.sparsity, settings.spgd_iters, settings.spgd_step,
            bool(settings.spgd_toward_only), rank=settings.sparsity_rank, **options)
    if method in ('iadv', 'ivat'):
        return attacks.IAdvT(epsilon, neighbors, **options)
    return attacks.AdvT(epsilon, **options)
