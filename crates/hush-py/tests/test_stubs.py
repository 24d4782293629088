"""Checks that _native.pyi lists the names and parameters of the module, which is written in Rust."""

import ast
import inspect
import pathlib

from hushdb import _native

STUB = pathlib.Path(_native.__file__).with_name("_native.pyi")


def parameters(function):
    """Returns the names of a function's parameters, without `self`."""
    args = function.args
    return [arg.arg for arg in [*args.posonlyargs, *args.args, *args.kwonlyargs] if arg.arg not in ("self", "cls")]


def told():
    """Yields the functions and methods of the stub, by name. Attributes of classes have None."""
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, parameters(node)
        elif isinstance(node, ast.ClassDef) and not node.bases:
            for item in node.body:
                if isinstance(item, ast.FunctionDef):
                    is_property = any(getattr(decorator, "id", None) == "property" for decorator in item.decorator_list)
                    yield f"{node.name}.{item.name}", None if is_property else parameters(item)
                elif isinstance(item, ast.AnnAssign):
                    yield f"{node.name}.{item.target.id}", None


def found():
    """Yields the names of the module."""
    for name, thing in vars(_native).items():
        if name.startswith("__") or isinstance(thing, str):
            continue
        if not isinstance(thing, type):
            yield name, list(inspect.signature(thing).parameters)
        elif not issubclass(thing, BaseException):
            members = {item: value for item, value in vars(thing).items() if not item.startswith("__") or item == "__arrow_c_stream__"}
            for item, value in members.items():
                is_called = callable(value) or isinstance(value, (staticmethod, classmethod))
                names = [each for each in inspect.signature(getattr(thing, item)).parameters if each != "self"] if is_called else None
                yield f"{name}.{item}", names
            if thing.__text_signature__ is not None or "__new__" in vars(thing):
                yield f"{name}.__init__", [each for each in inspect.signature(thing).parameters]


def test_the_stub_says_what_there_is():
    stub, module = dict(told()), dict(found())
    assert stub == module
