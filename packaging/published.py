"""Checks that the crates in TARGET/package have each file that the last build in TARGET/debug made them of.

    python3 packaging/published.py TARGET

What a crate was made of is in the compiler's list of dependencies beside it (*.d), with folders as in the workspace. Of
crates that were built twice, all lists count, but for those that packaging/crates has built as published.
"""

import pathlib
import posixpath
import sys
import tarfile

target = pathlib.Path(sys.argv[1])
published, unpacked = {}, set()
for crate in (target / "package").glob("*.crate"):
    with tarfile.open(crate) as archive:
        names = [name.partition("/") for name in archive.getnames()]
    published[names[0][0].rpartition("-")[0]] = {path for _, _, path in names}
    unpacked.add(names[0][0])

seen, missing = set(), []
for listing in (target / "debug/deps").glob("isobench*.d"):
    name = listing.stem.rpartition("-")[0].replace("_", "-")
    # A test by itself, or a crate that isn't published.
    if name not in published:
        continue
    seen.add(name)
    rules = [line.partition(": ") for line in listing.read_text().splitlines()]
    files = {posixpath.normpath(file) for _, _, files in rules for file in files.split()}
    # Unit tests use files of tests/, too. The program's list looks like theirs.
    is_library = any(made.endswith(".rlib") for made, _, _ in rules)
    for path in files:
        # What clippy reads has no folder.
        folder, _, rest = path.partition("/")
        if not folder or not rest or folder in unpacked or (not is_library and "/tests/" in path):
            continue
        inside = path.removeprefix(f"crates/{name}/")
        if inside not in published[name]:
            missing.append(f"{path}, by {name}")

if seen != set(published):
    sys.exit(f"packaging/published.py: not built: {', '.join(sorted(set(published) - seen))}")
if missing:
    sys.exit("packaging/published.py: used, but not published:\n  " + "\n  ".join(sorted(set(missing))))
print(f"packaging/crates: {len(published)} crates have all the files that they were built of")
