"""Makes the bill of materials of cargo-cyclonedx reproducible: the same for every build of a commit, and without paths
of the build machine.

    release/bill.py <bill of materials> <folder of the sources> <Unix time in seconds>
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
# The same components give the same serial number.
bill["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bill["components"], sort_keys=True)).urn
if root in json.dumps(bill):
    sys.exit("error: the bill of materials contains a path of this machine")
json.dump(bill, sys.stdout, indent=1)
print(f"{len(bill['components'])} components", file=sys.stderr)
