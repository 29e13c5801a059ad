"""Stand-ins for packages that a project imports and its code under test does not use: every name in them is a
class, and so is every name in that."""
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types


def lookup(holder, name):
    if name.startswith("__"):
        raise AttributeError(name)
    made = Class(name, (), {"__init__": lambda self, *args, **kwargs: None})
    setattr(holder, name, made)
    return made


class Class(type):
    __getattr__ = lookup


class Module(types.ModuleType):
    __path__ = []
    __getattr__ = lookup


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, packages):
        self.packages = packages

    def find_spec(self, name, path, target=None):
        if any(f"{name}.".startswith(f"{package}.") for package in self.packages):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return Module(spec.name)

    def exec_module(self, module):
        pass


def packages(*names):
    sys.meta_path.insert(0, Finder(set(names)))


def rest_of(*names):
    """For packages of which some files are there: stands in for what else they import of themselves."""
    sys.meta_path.append(Finder(set(names)))


def bare(*names):
    """Packages of which single files are wanted: what a package does when it is imported is left out."""
    for name in names:
        folders = importlib.util.find_spec(name).submodule_search_locations
        module = sys.modules[name] = types.ModuleType(name)
        module.__path__ = list(folders)
