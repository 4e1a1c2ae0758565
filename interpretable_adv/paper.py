"""What the paper prints: Barham and Feizi (2019), Tables 1 to 3 and Appendix B.

The only place that knows the paper's numbers.
"""

# Table 1: perplexity of test reviews under each method's attack.
PERPLEXITY = {'none': 117.93, 'adv': 122.53, 'iadv': 123.86, 'spgd': 119.02}
GAP = {method: round(value - PERPLEXITY['none'], 2) for method, value in PERPLEXITY.items()
       if method != 'none'}

# Table 2: the dataset; lengths count <eos>.
DATASET = {
    'train': {'examples': 21246, 'min': 12, 'max': 2505, 'mean': 242.44},
    'dev': {'examples': 3754, 'min': 11, 'max': 1101, 'mean': 239.86},
    'test': {'examples': 25000, 'min': 7, 'max': 2379, 'mean': 235.59},
    'unlabeled': {'examples': 50000},
}

N_VOCAB = 87008  # entries of the vocabulary
MIN_RUNS = 5  # "all model evaluations were run at least 5 times"

# Table 3: test accuracy in per cent.
ACCURACY = {'baseline': 89.83, 'pretrained': 92.69, 'adv': 93.58, 'iadv': 93.58, 'spgd': 93.54}

# Appendix B: the language model's own test perplexity.
LM_PERPLEXITY = 114.77

# Appendix B. ε of VAT and iVAT, which the paper does not train, are those of AdvT and iAdvT.
EPSILON = {'adv': 5.0, 'iadv': 15.0, 'vat': 5.0, 'ivat': 15.0, 'spgd': 25.0}

# Appendix B, and for what it leaves to Sato et al. (2018), upstream's README.
CLASSIFIER = {
    'lower': 0, 'min_count': 1, 'ignore_unk': 1,
    'emb_dim': 256, 'hidden_dim': 1024, 'hidden_cls_dim': 30, 'n_layers': 1, 'dropout': 0.5,
    'batchsize': 32, 'n_epoch': 30, 'alpha': 0.001, 'alpha_decay': 0.9998, 'use_exp_decay': 1,
    'clip': 4.0, 'nn_k': 15, 'sparsity': 0.75, 'spgd_iters': 1, 'update_nearest_batch': 50,
}

# Appendix B; the adaptive softmax that it mentions can only be the language model's.
LANGUAGE_MODEL = {
    'unit': 1024, 'n_units_word': 256, 'bproplen': 35, 'gradclip': 5.0, 'alpha': 0.001,
    'alpha_decay': 0.9999, 'adaptive_softmax': True, 'forget_bias': 1.0, 'decay_if_fail': True,
    'valid_split': 'dev',
}
