"""Prints the licences of all packages that are linked into docent. The text is shipped with every release."""

import json
import pathlib
import subprocess
import sys

# A licence file is not longer than this.
MOST = 200_000
NAMES = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")


def linked(metadata):
    """Packages that are linked into the program, by their ids: the normal dependencies of docent."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    packages = {package["id"]: package for package in metadata["packages"]}
    waiting = [id for id, package in packages.items() if package["name"] == "docent"]
    found = set()
    while waiting:
        id = waiting.pop()
        if id in found:
            continue
        found.add(id)
        for dependency in nodes[id]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    return sorted((packages[id] for id in found), key=lambda p: (p["name"], p["version"]))


def texts(package):
    """The licence files of a package, verbatim."""
    folder = pathlib.Path(package["manifest_path"]).parent
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name.upper().startswith(NAMES):
            yield path.name, path.read_bytes()[:MOST].decode("utf-8", "replace").strip()


def main():
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", "x86_64-unknown-linux-gnu"]
    metadata = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    seen = {}
    print("Docent is made with the work of others. These are the packages in it and their licences.\n")
    for package in linked(metadata):
        if package["source"] is None:
            continue
        print(f"{package['name']} {package['version']}: {package['license'] or 'see its licence file'}")
        for name, text in texts(package):
            seen.setdefault(text, []).append(f"{package['name']} {package['version']} ({name})")
    if len(seen) < 20:
        sys.exit("error: hardly any licence was found")
    for text, owners in seen.items():
        print("\n" + "-" * 100)
        print("\n".join(owners))
        print("-" * 100 + "\n")
        print(text)


main()
