"""How fast the arithmetic is: beside stock Chainer, PyTorch and faiss, after a check that all
compute the same. `bash experiments/benchmarks/run.sh` runs everything."""
