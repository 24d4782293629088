"""A model of a loss of power: the record of what a command did to a folder (`faults.c`) is replayed up to a point, of which only what was
synced is certain. POSIX promises the content of a file that was synced, and the names in a folder that was synced. Of the rest anything
may be there, in any order: a write whole, torn at a sector, or not at all; the length of a file without its bytes, which are zero then; a
name without its file's content. Only a rename takes place wholly or not at all."""

import os
import pathlib
import random
import shutil

SECTOR = 512
EXCHANGE = 2
GONE = " (deleted)"
# A loss of power keeps, of the names and of the contents that are not certain, `none`, `all`, or (of contents) the lengths alone, `zeros`.
# SEEDS are those of the random losses after one operation.
EXTREMES = (("none", "none"), ("none", "all"), ("all", "none"), ("all", "zeros"))
SEEDS = range(6)


class File:
    """A file: the bytes that are certain, and the changes since, each (offset, bytes) or a length."""

    def __init__(self, certain=b""):
        self.certain = certain
        self.content = bytearray(certain)
        self.changes = []

    def change(self, change):
        self.changes.append(change)
        apply(self.content, change)

    def sync(self):
        self.certain, self.changes = bytes(self.content), []

    def see(self, content):
        """Takes note of the file's bytes. What differs from what is known was written through a map."""
        if len(content) != len(self.content):
            self.change(len(content))
        differ = [at for at in range(0, len(content), SECTOR) if content[at:at + SECTOR] != self.content[at:at + SECTOR]]
        while differ:
            count = next((i for i, at in enumerate(differ) if at != differ[0] + i * SECTOR), len(differ))
            self.change((differ[0], content[differ[0]:differ[0] + count * SECTOR]))
            differ = differ[count:]

    def left(self, how, rng):
        """Returns the bytes that a loss of power leaves: of the changes `none`, `all`, only the lengths (`zeros`), or `some`."""
        if not self.changes:
            return self.certain
        content = bytearray(self.certain)
        for change in self.changes:
            fate = {"none": 0, "zeros": 1, "all": 3}.get(how)
            fate = rng.randrange(4) if fate is None else fate
            if fate and isinstance(change, int):
                apply(content, change)
            elif fate == 3:
                apply(content, change)
            elif fate == 1 or fate == 2 and rng.randrange(2):
                apply(content, max(len(content), change[0] + len(change[1])))
            if fate == 2 and not isinstance(change, int):
                at, new = change
                for start in range(0, len(new), SECTOR):
                    if rng.randrange(2):
                        apply(content, (at + start, new[start:start + SECTOR]))
        return bytes(content)


def apply(content, change):
    """Writes bytes, or sets a length."""
    if isinstance(change, int):
        del content[change:]
        content.extend(bytes(change - len(content)))
    else:
        at, new = change
        content.extend(bytes(max(0, at - len(content))))
        content[at:at + len(new)] = new


class Folder:
    """A folder: the names that are certain, and those that there are."""

    def __init__(self, certain=None):
        self.certain = certain or {}
        self.names = dict(self.certain)


class Naming:
    """A change of names that takes place wholly or not at all: pairs (folder, name, file or None)."""

    def __init__(self, sets, needs):
        self.sets = sets
        # Earlier changes, without which this one cannot be: those that gave a file the name that it has here no more.
        self.needs = needs

    def shares(self, other):
        return any(own is folder and name == known for own, name, _ in self.sets for folder, known, _ in other.sets)


class Disk:
    """A folder with its files, in memory."""

    def __init__(self, root):
        """Reads a folder as it is before the command, which is certain."""
        self.root = pathlib.Path(root)
        self.files = {}
        self.top = self.read(self.root)
        self.namings = []

    def read(self, path):
        if path.is_dir():
            return Folder({entry.name: self.read(entry) for entry in path.iterdir()})
        found = path.stat()
        return self.files.setdefault((found.st_dev, found.st_ino), File(path.read_bytes()))

    def place(self, path):
        """Returns the folder and the name of a path."""
        *folders, name = pathlib.Path(os.path.normpath(path)).relative_to(self.root).parts
        folder = self.top
        for each in folders:
            folder = folder.names[each]
        return folder, name

    def find(self, path):
        if pathlib.Path(path) == self.root:
            return self.top
        folder, name = self.place(path)
        return folder.names.get(name)

    def name(self, *sets):
        """Changes names. A name that is taken from a file needs the change that gave it."""
        needs = []
        for folder, name, to in sets:
            was = folder.names.get(name)
            giving = [each for each in self.namings if (folder, name, was) in each.sets and was is not None]
            if giving and any(other is was for _, _, other in sets):
                needs.append(giving[-1])
            put(folder.names, name, to)
        self.namings.append(Naming(list(sets), needs))

    def do(self, kind, path, to, number, content):
        """Does an operation of the record."""
        if kind == "unknown":
            raise AssertionError(f"the system call {number} on {path} is not in the model")
        if path.endswith(GONE):
            return
        if kind in ("create", "mkdir"):
            folder, name = self.place(path)
            self.name((folder, name, File() if kind == "create" else Folder()))
        elif kind == "unlink":
            self.name((*self.place(path), None))
        elif kind == "link":
            self.name((*self.place(to), self.find(path)))
        elif kind == "rename":
            one, other = self.find(path), self.find(to) if number == EXCHANGE else None
            self.name((*self.place(path), other), (*self.place(to), one))
        elif kind == "write":
            self.find(path).change((number, content))
        elif kind == "length":
            self.find(path).change(number)
        elif kind == "allocate":
            file = self.find(path)
            if number > len(file.content):
                file.change(number)
        elif kind == "sync" and isinstance(found := self.find(path), Folder):
            self.sync_names(found)
        elif kind == "sync":
            found.sync()
        elif kind == "see":
            self.find(path).see(content)

    def end(self):
        """Takes note of what the folder has at the end, in which the names must be those of the model."""
        def walk(folder, path):
            assert {entry.name for entry in path.iterdir()} == set(folder.names), path
            for name, one in folder.names.items():
                if isinstance(one, Folder):
                    walk(one, path / name)
                else:
                    one.see((path / name).read_bytes())
        walk(self.top, self.root)

    def sync_names(self, folder):
        """Makes the names of a folder certain, with all that they need, and what came before at the same names."""
        certain = []
        for naming in reversed(self.namings):
            is_here = any(own is folder for own, _, _ in naming.sets)
            if is_here or any(naming in later.needs or naming.shares(later) for later in certain):
                certain.append(naming)
        for naming in reversed(certain):
            for own, name, to in naming.sets:
                put(own.certain, name, to)
        self.namings = [naming for naming in self.namings if naming not in certain]

    def left(self, names, contents, rng):
        """Returns what a loss of power leaves now, as {path: bytes, or None for a folder}, and the paths of the same file. Of `names`,
        which are not certain, there are `none`, `all` or `some`; `contents` as `File.left` has it."""
        kept = []
        for naming in self.namings:
            keeps = {"none": False, "all": True}.get(names)
            if rng.randrange(2) if keeps is None else keeps:
                kept += [need for need in all_needs(naming) if need not in kept] + [naming]
        entries = {}
        for naming in sorted(kept, key=self.namings.index):
            for folder, name, to in naming.sets:
                put(entries.setdefault(folder, dict(folder.certain)), name, to)
        found, bytes_of, links = {}, {}, {}

        def walk(folder, path):
            for name, one in sorted(entries.get(folder, folder.certain).items()):
                own = f"{path}{name}"
                if isinstance(one, Folder):
                    found[own] = None
                    walk(one, own + "/")
                else:
                    if one not in bytes_of:
                        bytes_of[one] = one.left(contents, rng), own
                    found[own], links[own] = bytes_of[one]

        walk(self.top, "")
        return found, links


def all_needs(naming):
    """Returns what a change of names needs that is not certain, the first before."""
    return [each for need in naming.needs for each in [*all_needs(need), need]]


def put(names, name, to):
    if to is None:
        names.pop(name, None)
    else:
        names[name] = to


def steps_of(record):
    """Returns the operations that `faults.c` recorded. What a file has when it is synced, if there was a map, is seen before the sync."""
    data = pathlib.Path(f"{record}.data").read_bytes()
    steps = []
    for line in record.read_text().splitlines():
        kind, path, to, number, at, length = line.split("\t")
        content = data[int(at):int(at) + max(0, int(length))]
        if kind == "sync" and int(length) >= 0:
            steps.append(("see", path, "", 0, content))
        steps.append((kind, path, to, int(number), content))
    return steps


def losses(disk, steps):
    """Does the operations. Yields what losses of power leave after each: how, the files and links, and whether it is after the last one.
    What was left before is left out, but after the last one."""
    seen = set()
    for at in range(len(steps) + 1):
        is_end = at == len(steps)
        if is_end:
            disk.end()
        for names, contents, seed in [(*way, 0) for way in EXTREMES] + [("some", "some", seed) for seed in SEEDS]:
            found, links = disk.left(names, contents, random.Random(f"{at} {seed}"))
            state = frozenset(found.items())
            if is_end or state not in seen:
                yield f"{at} of {len(steps)}, names {names}, contents {contents} {seed}", found, links, is_end
            seen.add(state)
        if not is_end:
            disk.do(*steps[at])


def write(root, found, links):
    """Makes the folder `root` what a loss of power left."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for path, content in found.items():
        if content is None:
            (root / path).mkdir(mode=0o755)
        elif links[path] != path:
            os.link(root / links[path], root / path)
        else:
            (root / path).write_bytes(content)
