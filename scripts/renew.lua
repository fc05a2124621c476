-- Renews armed deadlines; never creates one, so it may run when memory is full.
--
-- ARGV[A + 1]  mode     renew; then triples:
-- ARGV[A + 2]  id
-- ARGV[A + 3]  e        in ms
-- ARGV[A + 4]  payload  "" not given, else "=" and the bytes
--
-- Returns {"ok", for each: renewed | unchanged | expired | unknown | foreign}, or {"reload"}, {"unconfigured"}
local refused = load_cursors()
if refused then return refused end
read_sizes()
local answers = set_deadlines(ARGV[A + 1], A + 2)
wake()
return { 'ok', answers }
