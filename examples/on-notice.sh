#!/bin/sh
# A command for `forewarn work NS --exec examples/on-notice.sh`: it is run once for each notice.
#
# The event comes on standard input, its parts in the environment, and the exit status is the outcome. The same notice
# may come twice, so it must be safe to run again.
set -eu

# An id comes from outside and may hold anything, a slash too. In base64 it is a safe file name.
upload="${UPLOADS:-/var/tmp/uploads}/$FOREWARN_ID_BASE64"

case "$FOREWARN_KIND" in
reminder)
    # Whoever uses the event finds everything in it; here it only goes on to a log.
    cat
    ;;
cleanup)
    if [ ! -e "$upload" ]; then
        echo "$upload is gone already" >&2
        exit 80 # done, with a note
    fi
    if [ ! -w "$(dirname "$upload")" ]; then
        echo "no right to delete in $(dirname "$upload")" >&2
        exit 77 # denied: trying again would not help, so it becomes a dead letter
    fi
    # Should this fail, set -e ends the script with its exit status: tried again later, its words on record.
    rm -r "$upload"
    ;;
esac
