"""A bill of materials as cargo-cyclonedx writes it into one that is the same for every build of a commit and names no
place of the building machine.

    release/bill.py <written> <folder of the sources> <seconds since 1970>
"""

import datetime
import json
import pathlib
import sys
import uuid

written, root, seconds = sys.argv[1:]
text = pathlib.Path(written).read_text().replace(f"file://{root}/", "file:///docent/")
bill = json.loads(text)
when = datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc)
bill["metadata"]["timestamp"] = when.isoformat().replace("+00:00", "Z")
# The same materials have the same number.
bill["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bill["components"], sort_keys=True)).urn
if root in json.dumps(bill):
    sys.exit("error: the bill of materials names a place of this machine")
json.dump(bill, sys.stdout, indent=1)
print(f"{len(bill['components'])} components", file=sys.stderr)
