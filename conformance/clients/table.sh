# Sourced by the scripts that run every client against a server: prints a table with a row for each run.
# The script sets `here`, `base` and `query`, and `command` for a stdio server. It must remove `scratch`.

tools=$here/../.tools
# The timeout of a client in seconds. A client that hangs fails and does not block the others.
limit=60

if [[ ! -f $tools/stamp ]]; then
  echo "error: the clients are not installed" >&2
  echo "hint: run conformance/setup" >&2
  exit 2
fi

scratch=$(mktemp -d)
passed=0
failed=0

node_client() { "$tools/bin/node" "$here/$1.mjs" "${@:2}"; }
# The inspector keeps its catalogue in the home folder.
inspector() { HOME=$scratch "$tools/bin/node" "$here/inspector.mjs" "$@"; }
python_client() { PYTHONDONTWRITEBYTECODE=1 "$tools/python/${1#python-}/bin/python" "$here/$1.py" "${@:2}"; }
export -f node_client inspector python_client
export here tools scratch

# try <transport> <era> <path> <client function> [name]
try() {
  local transport=$1 era=$2 path=$3 target started=$SECONDS line status=0
  shift 3
  if [[ $transport == stdio ]]; then target=("${command[@]}"); else target=("$base$path"); fi
  # `timeout` runs programs, not functions, hence the inner shell.
  line=$(timeout -k 5 "$limit" bash -c '"$@"' client "$@" "$transport" "$era" "$query" "${target[@]}" \
    2>"$scratch/stderr" </dev/null | tail -n 1) || status=$?
  if [[ $status -eq 0 && $line == ok\ * ]]; then
    passed=$((passed + 1))
    row ok "$transport" "$era" "$path" $((SECONDS - started)) "$line"
    return
  fi
  failed=$((failed + 1))
  [[ $status -ne 124 && $status -ne 137 ]] || line="failed ${*: -1} $transport $era: no answer within $limit s"
  row FAILED "$transport" "$era" "$path" $((SECONDS - started)) "${line:-failed ${*: -1} $transport $era: exit $status}"
  tail -n 20 "$scratch/stderr" | sed 's/^/    /'
}

# row <verdict> <transport> <era> <path> <seconds> <the client's own line>
row() {
  local name
  name=$(cut -d' ' -f2 <<<"$6")
  printf '%-7s %-26s %-6s %-11s %-5s %3ss  %s\n' "$1" "$name" "$2" "$3" "$4" "$5" "$(note "$6")"
}

# The result of the client, or why it failed: the part of its line that is not in another column.
note() {
  if [[ $1 == ok\ * ]]; then cut -d' ' -f5- <<<"$1"; else sed 's/^[^:]*: //' <<<"$1"; fi
}

head_row() { printf '%-7s %-26s %-6s %-11s %-5s %4s  %s\n' verdict client over era path time found; }

summary() {
  echo "$passed passed, $failed failed"
  [[ $failed -eq 0 ]]
}
