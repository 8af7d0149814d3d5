#!/bin/sh
# Touché, task 1, as TIRA runs it: sh touche.sh -i INPUT-DIRECTORY -o OUTPUT-DIRECTORY
# Bad arguments are listed and left out, so that one of them does not cost the run.
set -eu
for argument do
    shift
    [ "$argument" = -i ] && argument=--input  # elsewhere -i is an index
    set -- "$@" "$argument"
done
exec convagent touche --on-error skip --overwrite "$@"
