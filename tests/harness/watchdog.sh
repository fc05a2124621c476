# Runs a server for as long as the test process lives.
#
# $1      the server's directory
# $2…     the server's command line
# stdin   held open by the test process. When it closes, however that process ended, the server is killed by its
#         process id and its directory removed; after a line "keep" the directory stays, for a restart.
# stdout  "pid N" first, then what the server prints; it ends when the server has ended.

directory=$1
shift
"$@" </dev/null &
server=$!
echo "pid $server"
exec >/dev/null 2>&1
read -r word
kill -KILL "$server"
wait "$server"
[ "$word" = keep ] || rm -rf "$directory"
