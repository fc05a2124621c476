-- Tracks deadlines: creates or moves each (W2, W3, replies of track).
--
-- ARGV[A + 1]  mode     upsert | create | extend_only; then triples:
-- ARGV[A + 2]  id
-- ARGV[A + 3]  e        in ms
-- ARGV[A + 4]  payload  "" not given, else "=" and the bytes
--
-- Returns {"ok", for each: created | moved | unchanged | exists | kept | no_key | foreign, with ":already_expired" where e is not after
-- now}, or {"reload"}, {"unconfigured"}
local refused = load_cursors()
if refused then return refused end
read_sizes()
local answers = set_deadlines(ARGV[A + 1], A + 2)
wake()
return { 'ok', answers }
