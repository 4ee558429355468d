"""What a program may read besides its arguments, at one moment: the attributes of a model and of
the objects in them, and what the program's code reads in other ways.

Layers, optimizers and schedules have `_watched()`, which yields the names and values of their
attributes, and `_remember()`, which returns a function that restores them.
"""

from __future__ import annotations

import builtins
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from types import FunctionType, ModuleType
from typing import Any
from weakref import ProxyTypes

import numpy as np

from .._core import Watch
from ..autograd.tape import Operator, watched_leaves
from ..tensor import Tensor
from ..tensor.keys import EXACT, Same, key_of
from .free_variables import (
    REFERENT,
    Read,
    asks_identity,
    classes,
    in_class,
    in_module,
    inside,
    is_open,
    is_open_key,
    makers,
    methods,
    outside,
)
from .items import Alias, Item, Kind
from .looks import LONGEST, is_looked_at, looks
from .memory import Memory, Spot, is_steady, memory
from .places import CONTAINERS, NOTHING, Slot, attributes_of, copied, in_slots
from .trees import OF_TENSORS, given_name
from .unseen import added, is_cache, is_generator

#: The prefix of the paths of arguments.
_GIVEN = "argument "
#: The flag of classes that are made at run time, Py_TPFLAGS_HEAPTYPE.
_HEAP_TYPE = 1 << 9
#: What is deeper than this in objects and containers is inspected after these.
_DEEPEST = 50
_Look = Callable[[str, Any], None]


class Snapshot:
    """The scalars and tensors in the attributes of `root` and of what is below it, by path; those
    in `given`, other objects that the program was called with; and those outside, which the code
    of the program reads in other ways.

    If it is `watched`, later changes to the attributes of its tensors are noted.
    """

    def __init__(self, root: Any, given: Sequence[Any] = (), watched: bool = False) -> None:
        self.items: dict[str, Item] = {}
        #: The tensors of the items that are tensors.
        self.tensors: dict[str, Tensor] = {}
        #: The inspected objects that have `_watched()`, except the root, with their paths.
        self.objects: list[tuple[str, Any]] = []
        #: The items that are neither attributes of layers, modules and optimizers nor below these.
        self.loose: set[str] = set()
        #: Of these, the ones outside.
        self.outside: set[str] = set()
        #: Mutable containers with copies of what they held; and owners, keys and values of places
        #: that are in no container.
        self.contents: list[tuple[Any, Any]] = []
        self.places: list[tuple[Any, Any, Any]] = []
        #: Places that are compared but never restored.
        self.fixtures: list[tuple[Any, Any, Any]] = []
        #: Mutable containers outside with copies of what they held, and caches of functions
        #: (`functools.lru_cache`) with how much was added to them.
        self.outer: list[tuple[Any, Any]] = []
        self.caches: list[tuple[Any, int]] = []
        #: Generators of random numbers by path, and the functions of the program.
        self.generators: dict[str, Any] = {}
        self.functions: list[FunctionType] = []
        #: Whether it keeps something alive to which the program has weak references alone.
        self.is_weak = False
        self._arrays: list[tuple[Any, Any]] = []
        self._lengths: list[tuple[Any, int]] = []
        #: The path at which each inspected object was found first.
        self._seen = {id(root): ""}
        self._reads: set[tuple[int, Any, int]] = set()
        self._known: frozenset[int] | None = None
        self._turning: list[Any] | None = None
        self._asks = False
        self._left, self._later = LONGEST, deque[tuple[str, Read]]()
        self._depth, self._deep = 0, deque[tuple[bool, _Look, str, Any]]()
        self._root, self._is_watched, self._is_loose, self._is_outside = root, watched, False, False
        self.items["__class__"] = Item(None, None, Kind(type(root)))
        self._attributes("", root)
        self._is_loose = True
        for index, value in enumerate(given):
            self._value(f"{_GIVEN}{index}", given, index, value)
        #: Arrays and the like that can be restored, with their bytes.
        known = ((one, found[-1]) for one, found in self._arrays)
        self.elements = [(one, held) for one, held in known if type(held) is bytes]
        self._look_outside()
        del self._root

    def _look_outside(self) -> None:
        self._is_outside, inside, places = True, len(self.contents), len(self.places)
        weak: list[tuple[str, Read]] = []  # last: what is found before is not held weakly alone
        while self._later or weak:
            path, read = self._later.popleft() if self._later else weak.pop()
            if read.name == REFERENT and self._later:
                weak.append((path, read))
            else:
                self._read(path, read)
        #: Detects changes that are made without being noted.
        fixed = self.places + self.fixtures
        rows = [one for one in self.contents if not isinstance(one[0], set)]
        self.watch = Watch(rows, fixed, self._arrays, self._lengths, looks, NOTHING)
        #: The copies that it compares containers with.
        self._copies = {id(one): copy for one, copy in self.contents}
        self.outer, self.contents = self.contents[inside:], self.contents[:inside]
        self.places = self.places[:places]

    def has_seen(self, value: Any) -> bool:
        """Whether a container is among what was inspected, which is kept alive."""
        return id(value) in self._seen

    def shares(self, array: np.ndarray) -> bool:
        """Whether an array may share memory with one that was inspected."""
        known = (one for one, _ in self._arrays if isinstance(one, np.ndarray))
        return any(np.may_share_memory(array, one) for one in known)

    def path_of(self, value: Any) -> str | None:
        """The path at which an object was found first."""
        return self._seen.get(id(value))

    @property
    def known(self) -> frozenset[int] | None:
        """By `id`, the tensors that the program may compare an argument with by `is`; None if it
        never does. Excludes those that graphs make."""
        if self._known is None and self._asks:
            found = (x for path, x in self.tensors.items() if not path.startswith(_GIVEN))
            self._known = frozenset(id(x) for x in found if is_steady(x))
        return self._known

    @property
    def turns(self) -> tuple[Hashable, ...]:
        """Where the objects are that do something else in each step of a cycle, and have `_turn()`:
        calls at different places have recordings of their own."""
        if self._turning is None:
            self._turning = [one for _, one in self.objects if hasattr(type(one), "_turn")]
        return tuple(one._turn() for one in self._turning)

    def spots(self) -> dict[str, Spot]:
        """The spots of the tensors, by path."""
        found = ((path, item.value) for path, item in self.items.items())
        return {path: value.spot for path, value in found if type(value) is Memory}

    def follow(self, owner: Any, key: Any, value: Any) -> None:
        """Adopts a value that a replay has written."""
        for one in (owner, getattr(owner, "__dict__", None)):
            if type(key) is not Slot and (copy := self._copies.get(id(one))) is not None:
                copy[key] = value
        self.watch.follow(owner, key, value)

    def let_go(self) -> None:
        """Forgets the tensors and all other objects, those that own the items, too."""
        self.items = {path: item.alone() for path, item in self.items.items()}
        self.tensors, self.objects, self.generators = {}, [], {}
        self.functions = []
        self.outer, self.caches = [], []
        self.contents, self.places, self.fixtures = [], [], []
        self.elements, self._arrays, self._lengths, self._copies = [], [], [], {}
        del self.watch

    # ---- objects --------------------------------------------------------------------------------

    def _attributes(self, path: str, watched: Any) -> None:
        owner = None if watched is self._root else watched
        prefix = f"{path}." if path else ""
        items = self.items
        for name, value in watched._watched():
            kind = type(value)
            if kind in EXACT and not self._is_loose:  # most are
                items[prefix + name] = Item(owner, name, (kind, value))
            else:
                self._value(prefix + name, owner, name, value)
        self._classes(type(watched))

    def _classes(self, kind: type) -> None:
        if id(kind) in self._seen:
            return
        for cls in (*classes(kind), *classes(type(kind))):
            if id(cls) not in self._seen:
                self._seen[id(cls)] = cls.__qualname__
                self._lengths.append((vars(cls), len(vars(cls))))
                self.fixtures += methods(cls)
                self._later.extend((cls.__qualname__, read) for read in in_class(cls))
        self._seen[id(kind)] = kind.__qualname__

    def _read(self, path: str, read: Read) -> None:
        place = (id(read.owner), read.key, id(read.value))
        if read.value is self._root or place in self._reads:
            return
        self._reads.add(place)
        if read.is_silent:
            self.places.append((read.owner, read.key, read.value))
        if read.value is NOTHING:
            return
        if read.name == REFERENT and read.value is not None and id(read.value) not in self._seen:
            self.is_weak = True
        is_global = read.name.startswith("global ")
        name = self._new(read.name if is_global else f"{path}.{read.name}")
        if read.is_opaque:
            self._put(name, Item(read.owner, read.key, key_of(read.value)))
        else:
            self._value(name, read.owner, read.key, read.value)

    def _object(self, path: str, value: Any) -> None:
        """Inspects an object of the program, and what it holds."""
        if isinstance(value, ModuleType):
            self._later.extend((path, read) for read in in_module(value))
        if self._left == 0 or not is_open(value):
            return
        self._left -= 1
        before, self._is_loose = self._is_loose, True
        attributes = attributes_of(value)
        is_seen = type(attributes) is dict and len(attributes) <= LONGEST
        if is_seen and not isinstance(value, Operator):
            self.contents.append((attributes, attributes.copy()))
            self.fixtures.append((value, "__dict__", attributes))
        if type(value).__flags__ & _HEAP_TYPE:  # objects of others cannot change their class
            self.fixtures.append((value, "__class__", type(value)))
        self._below(self._inside, path, value)
        self._later.extend((path, read) for read in outside(value))
        self._asks = self._asks or asks_identity(value)
        self._is_loose = before
        self._classes(type(value))

    def _inside(self, path: str, value: Any) -> None:
        for read in inside(value):
            self._read(path, read)

    def _below(self, look: _Look, path: str, value: Any) -> None:
        """Looks at what an object or container holds: at what is deep below others only once these
        are done, as a chain of objects may be longer than the stack."""
        if self._depth == _DEEPEST:
            self._deep.append((self._is_loose, look, path, value))
            return
        self._depth += 1
        look(path, value)
        self._depth -= 1
        while self._deep and self._depth == 0:
            self._depth, before = 1, self._is_loose
            self._is_loose, look, path, value = self._deep.popleft()
            look(path, value)
            self._depth, self._is_loose = 0, before

    # ---- values ---------------------------------------------------------------------------------

    def _put(self, path: str, item: Item) -> None:
        self.items[path] = item
        if self._is_loose:
            self.loose.add(path)
            if self._is_outside:
                self.outside.add(path)

    def _value(self, path: str, owner: Any, key: Any, value: Any) -> None:
        kind = type(value)
        if kind in EXACT:
            self._put(path, Item(owner, key, (kind, value)))
        elif kind in ProxyTypes:  # which all else takes for what it refers to
            self._put(path, Item(owner, key, Same(value)))
            self._later.extend((path, read) for read in outside(value))
        elif isinstance(value, Tensor):
            self._tensor(path, owner, key, value)
        elif hasattr(kind, "_watched"):
            if self._is_first(path, owner, key, value):
                self._put(path, Item(owner, key, Kind(kind)))
                self.objects.append((path, value))
                self._attributes(path, value)
        elif isinstance(value, CONTAINERS):
            self._container(path, owner, key, value)
        elif is_looked_at(value):
            self._looked_at(path, owner, key, value)
        else:
            self._put(path, Item(owner, key, key_of(value)))
            if isinstance(value, type):
                self._classes(value)
                self._later.extend(
                    (cls.__qualname__, made) for cls in classes(value) for made in makers(cls)
                )
            elif id(value) not in self._seen:
                self._seen[id(value)] = path
                if is_cache(value):
                    self.caches.append(added(value))
                if is_generator(value):
                    self.generators[path] = value
                elif kind is FunctionType:
                    self.functions.append(value)
                self._object(path, value)

    def _is_first(self, path: str, owner: Any, key: Any, value: Any) -> bool:
        """Whether an object was not inspected before; if it was, notes where."""
        known = self._seen.setdefault(id(value), path)
        if known is not path:
            self._put(path, Item(owner, key, Alias(known)))
        return known is path

    def _tensor(self, path: str, owner: Any, key: Any, value: Tensor) -> None:
        if self._is_watched:
            value._watch()
        self.tensors[path] = value
        is_first = self._is_first(f"{path} (which tensor)", None, None, value)
        self._put(path, Item(owner, key, memory(value)))
        grad = value.grad
        if value._stores_grad or grad is not None:
            if grad is not None:
                self.tensors[f"{path}.grad"] = grad
            value_of = key_of(None) if grad is None else memory(grad)
            self._put(f"{path}.grad", Item(value, "grad", value_of))
            if watchers := watched_leaves.get(id(value)):
                told = tuple(key_of(getattr(tell(), "__self__", None)) for tell in watchers)
                self._put(f"{path}.(taps)", Item(None, None, told))
        # Optimizers also know parameters by the names that come from their places.
        name = value._name if value._stores_grad else given_name(value)
        if name is not None:
            self._put(f"{path}.name", Item(value, "name", key_of(name)))
        if is_first and not (type(value) is Tensor and OF_TENSORS.issuperset(value.__dict__)):
            self._below(self._marks, path, value)

    def _marks(self, path: str, value: Tensor) -> None:
        for name in sorted(value.__dict__.keys() - OF_TENSORS):
            self._value(f"{path}.{name}", value, name, value.__dict__[name])
        for name, one in in_slots(value):
            self._read(path, Read(name, value, name, one, is_silent=True))

    def _looked_at(self, path: str, owner: Any, key: Any, value: Any) -> None:
        self._put(path, Item(owner, key, key_of(value)))
        found = looks(value)
        self._arrays.append((value, found))
        self._put(f"{path}.elements", Item(None, None, found))
        if id(value) not in self._seen:
            self._seen[id(value)] = path
            self._object(path, value)

    def _container(self, path: str, owner: Any, key: Any, value: Any) -> None:
        # Equal constants may or may not be one object.
        is_constant = isinstance(value, (tuple, frozenset)) and EXACT.issuperset(map(type, value))
        if not is_constant and not self._is_first(path, owner, key, value):
            return
        self._put(path, Item(owner, key, (type(value), len(value))))
        if hasattr(value, "__dict__") or type(value).__flags__ & _HEAP_TYPE:
            self._object(path, value)
        if isinstance(value, deque):
            self._value(f"{path}.maxlen", None, None, value.maxlen)
        elif isinstance(value, defaultdict):
            made = value.default_factory
            self.fixtures.append((value, "default_factory", made))
            self._value(self._new(f"{path}.default_factory"), None, None, made)
        if value is vars(builtins):
            return
        if len(value) > LONGEST:
            self._put(path, Item(owner, key, (type(value), len(value), id(value))))
            self._lengths.append((value, len(value)))
            return
        if not isinstance(value, (tuple, frozenset)):
            self.contents.append((value, copied(value)))
        if isinstance(value, (set, frozenset)):
            self._put(path, Item(owner, key, (type(value), tuple(map(key_of, value)))))
            self._arrays += [(value, looks(value))] * isinstance(value, set)
            for index, item in enumerate(list(value)):
                if is_open(item):
                    self._value(f"{path}.{index}", value, index, item)
            return
        if isinstance(value, dict):
            self._put(f"{path}.keys", Item(None, None, tuple(map(key_of, value))))
        self._below(self._contained, path, value)

    def _contained(self, path: str, value: Any) -> None:
        if isinstance(value, dict) and not EXACT.issuperset(map(type, value)):
            for n, one in enumerate(list(filter(is_open_key, value))):
                self._value(self._new(f"{path}.keys.{n}"), None, None, one)
        items: Iterable[Any] = value.items() if isinstance(value, dict) else enumerate(value)
        for index, item in list(items):
            self._value(self._new(f"{path}.{index}"), value, index, item)

    def _new(self, path: str) -> str:
        """A path that nothing has yet: keys may be alike as text, and names those of one thing in
        another module or class."""
        while path in self.items:
            path += "'"
        return path
