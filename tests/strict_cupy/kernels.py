"""`cupy.ElementwiseKernel` and `cupy.ReductionKernel`: CUDA snippets compiled as C++.

The operations of these kernels are C++ apart from a few names CUDA provides, so g++ builds
them into a loop over all elements. Compiled kernels are kept in the folder that the environment
variable STRICT_CUPY_CACHE names, or in a temporary folder for the length of the process.
"""
import ctypes
import functools
import hashlib
import os
import subprocess
import tempfile

import numpy as np

from .arrays import ndarray, wrap

C_TYPES = {
    '?': 'bool', 'b': 'signed char', 'B': 'unsigned char', 'h': 'short', 'H': 'unsigned short',
    'i': 'int', 'I': 'unsigned int', 'l': 'long', 'L': 'unsigned long', 'q': 'long long',
    'Q': 'unsigned long long', 'e': '_Float16', 'f': 'float', 'd': 'double'}

PRELUDE = r'''
#include <cmath>
#include <cstddef>
#include <cstdint>
#define __device__
#define __forceinline__ inline
using std::abs; using std::ceil; using std::cos; using std::exp; using std::expm1;
using std::fabs; using std::floor; using std::fmod; using std::isfinite; using std::isinf;
using std::isnan; using std::log; using std::log10; using std::log1p; using std::log2;
using std::pow; using std::rint; using std::round; using std::sin; using std::sqrt;
using std::tan; using std::tanh; using std::sinh; using std::cosh;
template <class A, class B> auto max(A a, B b) -> decltype(a + b) { return a > b ? a : b; }
template <class A, class B> auto min(A a, B b) -> decltype(a + b) { return a < b ? a : b; }
template <class T> T rsqrt(T x) { return T(1) / sqrt(x); }
template <class T, class U> T atomicAdd(T* address, U value) {
    T old = *address; *address = T(old + value); return old;
}
struct Indexer { ptrdiff_t count; ptrdiff_t size() const { return count; } };
template <class T> struct Raw {
    T* values; ptrdiff_t count; int ndim; const ptrdiff_t* extent;
    ptrdiff_t size() const { return count; }
    const ptrdiff_t* shape() const { return extent; }
    T& operator[](ptrdiff_t i) const { return values[i]; }
    T& operator[](int i) const { return values[i]; }
    T& operator[](const ptrdiff_t* index) const {
        ptrdiff_t flat = 0;
        for (int d = 0; d < ndim; d++) flat = flat * extent[d] + index[d];
        return values[flat];
    }
};
'''


class Parameter:
    """One entry of a parameter list such as `raw T x`; a one-letter type is a placeholder."""

    def __init__(self, text):
        *flags, self.type, self.name = text.split()
        self.raw = 'raw' in flags

    @property
    def is_placeholder(self):
        return len(self.type) == 1

    @property
    def dtype(self):
        return np.dtype(self.type)


def parse(parameters):
    return [Parameter(text) for text in parameters.split(',') if text.strip()]


@functools.lru_cache(None)
def _cache_folder():
    if 'STRICT_CUPY_CACHE' in os.environ:
        return os.environ['STRICT_CUPY_CACHE']
    temporary = tempfile.TemporaryDirectory(prefix='strict_cupy_')
    _cache_folder.keep = temporary  # removed when the process ends
    return temporary.name


@functools.lru_cache(None)
def compile_kernel(source):
    """Compiles the C++ `source` and returns its function `kernel`."""
    digest = hashlib.sha256(source.encode()).hexdigest()[:24]
    library = os.path.join(_cache_folder(), digest + '.so')
    if not os.path.exists(library):
        partial = f'{library}.{os.getpid()}'
        done = subprocess.run(
            ['g++', '-std=c++11', '-O1', '-fPIC', '-shared', '-w', '-x', 'c++', '-', '-o', partial],
            input=source, text=True, capture_output=True)
        if done.returncode:
            raise RuntimeError(f'a kernel does not compile:\n{done.stderr}\n{source}')
        os.replace(partial, library)
    kernel = ctypes.CDLL(library).kernel
    kernel.restype = None
    return kernel


def _pointers(buffers):
    shapes = [(ctypes.c_ssize_t * max(1, values.ndim))(*values.shape) for values in buffers]
    n = len(buffers)
    return shapes, (
        (ctypes.c_void_p * n)(*[values.ctypes.data for values in buffers]),
        (ctypes.c_ssize_t * n)(*[values.size for values in buffers]),
        (ctypes.c_int * n)(*[values.ndim for values in buffers]),
        (ctypes.c_void_p * n)(*[ctypes.addressof(shape) for shape in shapes]))


class _Kernel:
    """What both kinds of kernel share: parameters, types, and running the compiled loop."""

    def __init__(self, in_params, out_params, name, preamble):
        self.inputs = parse(in_params)
        self.outputs = parse(out_params)
        self.parameters = self.inputs + self.outputs
        self.name = name
        self.preamble = preamble

    def _check(self, args):
        if not len(self.inputs) <= len(args) <= len(self.parameters):
            raise TypeError(f'Wrong number of arguments for {self.name!r}')
        for value in args:
            if not isinstance(value, (ndarray, int, float, bool, np.generic)):
                raise TypeError(f'Unsupported type {type(value)} (kernel {self.name!r})')

    def _types(self, args):
        """Resolves placeholders from the arrays; scalars decide only where no array does."""
        types = {}
        for only_arrays in (True, False):
            for parameter, value in zip(self.parameters, args):
                if isinstance(value, ndarray) != only_arrays:
                    continue
                if parameter.is_placeholder:
                    known = types.setdefault(parameter.type, np.asarray(
                        value._values if only_arrays else value).dtype)
                else:
                    known = parameter.dtype
                if only_arrays and known != value.dtype:
                    raise TypeError(f'Type is mismatched. {parameter.name} {value.dtype} '
                                    f'{known} (kernel {self.name!r})')
        return types

    def _dtype(self, parameter, types):
        if not parameter.is_placeholder:
            return parameter.dtype
        if parameter.type not in types:
            raise TypeError(f'Cannot decide the type {parameter.type} (kernel {self.name!r})')
        return types[parameter.type]

    def _host(self, args, types):
        return [value._values if isinstance(value, ndarray)
                else np.asarray(value, self._dtype(parameter, types))
                for parameter, value in zip(self.parameters, args)]

    def _run(self, buffers, types, loop, count, length=1):
        typedefs = ''.join(f'typedef {C_TYPES[dtype.char]} {name};\n'
                           for name, dtype in types.items())
        arrays = ''
        for k, (parameter, values) in enumerate(zip(self.parameters, buffers)):
            c_type = C_TYPES[values.dtype.char]
            if parameter.raw:
                arrays += (f'Raw<{c_type}> {parameter.name}{{({c_type}*)data[{k}], sizes[{k}], '
                           f'ndims[{k}], shapes[{k}]}};\n')
            else:
                arrays += f'{c_type}* _all_{parameter.name} = ({c_type}*)data[{k}];\n'
        source = (f'{PRELUDE}{typedefs}{self.preamble}\n'
                  'extern "C" void kernel(ptrdiff_t _count, ptrdiff_t _length, void** data, '
                  'const ptrdiff_t* sizes, const int* ndims, '
                  'const ptrdiff_t* const* shapes) {\n'
                  f'{arrays}Indexer _ind{{_count}};\n{loop}\n}}\n')
        shapes, pointers = _pointers(buffers)
        compile_kernel(source)(ctypes.c_ssize_t(count), ctypes.c_ssize_t(length), *pointers)


class ElementwiseKernel(_Kernel):
    """Runs `operation` for every element of the broadcast arguments."""

    def __init__(self, in_params, out_params, operation, name='kernel', reduce_dims=True,
                 preamble='', no_return=False, return_tuple=False, loop_prep='',
                 after_loop='', options=()):
        super().__init__(in_params, out_params, name, preamble)
        self.operation = operation
        self.loop_prep, self.after_loop = loop_prep, after_loop
        self.no_return, self.return_tuple = no_return, return_tuple

    def __call__(self, *args, size=None):
        self._check(args)
        types = self._types(args)
        values = self._host(args, types)
        shape = (size,) if size is not None else np.broadcast_shapes(*[
            value.shape for parameter, value in zip(self.parameters, values)
            if not parameter.raw])
        for parameter in self.parameters[len(values):]:
            values.append(np.empty(shape, self._dtype(parameter, types)))
        buffers = [np.ascontiguousarray(
            value if parameter.raw else np.broadcast_to(value, shape)).reshape(
                value.shape if parameter.raw else shape)
            for parameter, value in zip(self.parameters, values)]
        inside = ''
        for parameter, value in zip(self.parameters, buffers):
            if not parameter.raw:
                reference = '&' if parameter in self.outputs else ''
                constant = '' if reference else 'const '
                inside += (f'{constant}{C_TYPES[value.dtype.char]} {reference}{parameter.name} '
                           f'= _all_{parameter.name}[i];\n')
        loop = (f'{self.loop_prep};\nfor (ptrdiff_t i = 0; i < _count; i++) {{\n'
                f'{inside}{self.operation};\n}}\n{self.after_loop};')
        self._run(buffers, types, loop, count=int(np.prod(shape, dtype=int)))
        first = len(self.inputs)
        for value, buffer in zip(values[first:], buffers[first:]):
            if not np.shares_memory(value, buffer):
                value[...] = buffer
        results = [args[k] if k < len(args) else wrap(values[k])
                   for k in range(first, len(self.parameters))]
        if self.no_return:
            return None
        return results[0] if len(results) == 1 and not self.return_tuple else tuple(results)


class ReductionKernel(_Kernel):
    """Maps elements, combines them in order along the axes, and maps each result."""

    def __init__(self, in_params, out_params, map_expr, reduce_expr, post_map_expr, identity,
                 name='reduce_kernel', reduce_type=None, reduce_dims=True, preamble='',
                 options=()):
        super().__init__(in_params, out_params, name, preamble)
        self.map_expr, self.reduce_expr = map_expr, reduce_expr
        self.post_map_expr, self.identity = post_map_expr, identity
        self.reduce_type = reduce_type

    def __call__(self, *args, axis=None, keepdims=False, out=None, stream=None):
        if len(args) > len(self.inputs) or out is not None:
            raise NotImplementedError('strict_cupy reductions make their own output')
        self._check(args)
        types = self._types(args)
        values = self._host(args, types)
        shape = np.broadcast_shapes(*[value.shape for parameter, value
                                      in zip(self.inputs, values) if not parameter.raw])
        axes = (tuple(range(len(shape))) if axis is None
                else tuple(a % len(shape) for a in np.atleast_1d(axis)))
        kept = [d for d in range(len(shape)) if d not in axes]
        length = int(np.prod([shape[d] for d in axes], dtype=int))
        output, = self.outputs
        result = np.empty([shape[d] for d in kept], self._dtype(output, types))
        buffers = [np.ascontiguousarray(
            value if parameter.raw else np.broadcast_to(value, shape).transpose(*kept, *axes))
            for parameter, value in zip(self.inputs, values)] + [result]
        inside = ''.join(
            f'const {C_TYPES[value.dtype.char]} {parameter.name} = _all_{parameter.name}[_j];\n'
            for parameter, value in zip(self.inputs, buffers) if not parameter.raw)
        c_type = C_TYPES[result.dtype.char]
        loop = f'''
            typedef {self.reduce_type or c_type} _type_reduce;
            for (ptrdiff_t _i = 0; _i < _count; _i++) {{
                _type_reduce _total = _type_reduce({self.identity});
                for (ptrdiff_t _k = 0; _k < _length; _k++) {{
                    ptrdiff_t _j = _i * _length + _k;
                    {inside}
                    _type_reduce a = _total, b = _type_reduce({self.map_expr});
                    _total = _type_reduce({self.reduce_expr});
                }}
                _type_reduce a = _total;
                {c_type} &{output.name} = _all_{output.name}[_i];
                {self.post_map_expr};
            }}'''
        self._run(buffers, types, loop, count=result.size, length=length)
        if keepdims:
            result = result.reshape([1 if d in axes else shape[d] for d in range(len(shape))])
        return wrap(result)
