#!/bin/sh
# SCAI-QReCC as TIRA runs it: sh qrecc.sh -i INPUT-DIRECTORY -o OUTPUT-DIRECTORY [--index INDEX-DIRECTORY]
# The input holds questions.json, the output gets run.json. Without --index the index is that of CONVAGENT_INDEX.
set -eu
fail() {
  echo "qrecc.sh: $1; usage: qrecc.sh -i INPUT-DIRECTORY -o OUTPUT-DIRECTORY [--index INDEX-DIRECTORY]" >&2
  exit 2
}
input='' output=''
while [ $# -gt 0 ]; do
  [ $# -gt 1 ] || fail "$1 has no value, or is not known"
  case $1 in
    -i | --input) input=$2 ;;
    -o | --output) output=$2 ;;
    --index) export CONVAGENT_INDEX="$2" ;;
    *) fail "$1 is not known" ;;
  esac
  shift 2
done
[ -n "$input" ] || fail "-i is missing"
[ -n "$output" ] || fail "-o is missing"
mkdir -p "$output"
exec convagent answer "$input/questions.json" --output "$output/run.json" --overwrite
