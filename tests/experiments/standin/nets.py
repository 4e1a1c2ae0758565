"""The classifier with the perturbations' arithmetic."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np

to_cpu = chainer.cuda.to_cpu
to_gpu = chainer.cuda.to_gpu


def kl_loss(xp, p_logit, q_logit):
    """Mean KL divergence of q from p."""
    difference = F.log_softmax(p_logit) - F.log_softmax(q_logit)
    return F.sum(F.softmax(p_logit) * difference) / len(p_logit)


def get_normalized_vector(d, xp=None, shape=None):
    """Unit length over the axes `shape` (default: all but the first)."""
    axes = tuple(range(1, d.ndim)) if shape is None else shape
    if xp is not None:
        d = d / (1e-12 + xp.abs(d).max(axes, keepdims=True))
        return d / xp.sqrt(1e-6 + (d * d).sum(axes, keepdims=True))
    length = F.sqrt(F.sum(d * d, axes, keepdims=True) + 1e-6)
    return d / F.broadcast_to(length, d.shape)


class uniLSTM_iVAT(chainer.Chain):  # noqa: N801  upstream's name

    def __init__(self, n_vocab=None, emb_dim=256, hidden_dim=1024, use_dropout=0.50, n_layers=1,
                 hidden_classifier=30, use_adv=0, xi_var=5.0, n_class=2, args=None):
        super().__init__()
        if args.use_bilstm:
            raise NotImplementedError
        with self.init_scope():
            self.word_embed = L.EmbedID(n_vocab, emb_dim, ignore_label=-1)
            self.hidden_layer = L.Linear(hidden_dim, hidden_classifier)
            self.output_layer = L.Linear(hidden_classifier, n_class)
            self.uni_lstm = L.NStepLSTM(n_layers, emb_dim, hidden_dim, use_dropout)
        for layer in self.uni_lstm:
            layer.b1.array[:] = layer.b5.array[:] = 1
        self.args, self.use_adv, self.xi_var, self.use_dropout = args, use_adv, xi_var, use_dropout
        self.train = True

    def set_train(self, train):
        self.train = train

    def freeze_word_emb(self):
        self.word_embed.W.update_rule.enabled = False

    def set_pretrained_lstm(self, pretrain_model, word_only=True):
        self.word_embed.W.array[:] = pretrain_model.embed.W.array[:len(self.word_embed.W)]
        if not word_only:
            self.uni_lstm.copyparams(pretrain_model.lstm)

    def compute_all_nearest_words(self, top_k=15):
        limit = self.train_vocab_size if self.args.use_limit_vocab else self.vocab_size
        vectors = self.word_embed.W.array[:limit]
        unit = vectors / np.linalg.norm(vectors, axis=1)[:, None]
        first = self.args.nn_k_offset
        ranks = [np.argsort(-unit[start:start + self.args.batchsize_nn] @ unit.T, axis=1)
                 for start in range(0, limit, self.args.batchsize_nn)]
        self.nearest_ids = to_gpu(np.concatenate(ranks)[:, first:first + top_k].astype(np.int32))
        return self.nearest_ids

    def get_nearest_words(self, x_data):
        return self.nearest_ids[x_data]

    def __call__(self, x_data, lengths=None, d=None, first_step=False):
        ids = np.concatenate(x_data)
        xs = F.dropout(self.word_embed(ids), self.use_dropout)
        if self.train and (self.use_adv or self.args.use_semi_data):
            if first_step:
                xs = xs + self.args.xi_var_first * self.first_perturbation(ids, xs)
            elif d is not None:
                xs = xs + self.xi_var * self.normalized(d, lengths)
        reviews = F.split_axis(xs, np.cumsum(lengths)[:-1], axis=0)
        states = F.stack([states[-1] for states in self.uni_lstm(None, None, reviews)[2]])
        hidden = F.dropout(F.relu(self.hidden_layer(states)), self.use_dropout)
        return self.output_layer(hidden)

    def first_perturbation(self, ids, xs):
        semi = self.args.use_semi_data
        if self.args.use_attn_d:
            near = F.dropout(self.word_embed(self.get_nearest_words(ids)), self.use_dropout)
            difference = near - F.broadcast_to(xs[:, None], near.shape)
            self.dir_normed = get_normalized_vector(difference, shape=(2,))
            shape = near.shape[:2] + (1,)
            weights = np.full(shape, 1 / self.args.nn_k if semi else 0, np.float32)
            self.attention_d_var = chainer.Variable(weights)
            used = F.normalize(self.attention_d_var, axis=1) if semi else self.attention_d_var
            d = F.sum(F.broadcast_to(used, near.shape) * self.dir_normed.array, axis=1)
            self.d_var = get_normalized_vector(d)
        else:
            noise = (np.random.normal(size=xs.shape, dtype='f') if semi
                     else np.zeros(xs.shape, 'f'))
            self.d_var = chainer.Variable(get_normalized_vector(noise, np))
        return self.d_var

    def normalized(self, d, lengths):
        if not self.args.norm_sentence_level:
            return get_normalized_vector(d, np)
        return np.concatenate([
            get_normalized_vector(chainer.Variable(review[None])).array[0]
            for review in np.split(d, np.cumsum(lengths)[:-1])])
