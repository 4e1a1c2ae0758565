"""The names and parameters of CuPy 13.6.0, from `api.json`.

Each entry maps a name to its parameters as one string (`'a, axis, dtype, out'`), or to null for
what is not a plain function: classes, constants, ufuncs, properties.
"""
import json
import os

with open(os.path.join(os.path.dirname(__file__), 'api.json'), encoding='utf-8') as _stream:
    API = json.load(_stream)


def check_keywords(name, parameters, keywords):
    """Raises `TypeError` when `keywords` has one that `parameters` does not name."""
    allowed = [parameter.strip() for parameter in parameters.split(',')]
    if any(parameter.startswith('**') for parameter in allowed):
        return
    for keyword in keywords:
        if keyword not in allowed:
            raise TypeError(f'{name}() got an unexpected keyword argument {keyword!r}')
