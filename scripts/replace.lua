-- Tracks one id in place of another of the same shard, in one step.
--
-- ARGV[A + 1]  old      the id to remove
-- ARGV[A + 2]  mode     upsert | create | extend_only
-- ARGV[A + 3]  id
-- ARGV[A + 4]  e        in ms
-- ARGV[A + 5]  payload  "" not given: that of the old id goes on; else "=" and the bytes
--
-- Returns {"ok", the reply of track, 1 if the old id was armed and is removed, else 0}, or {"reload"}, {"unconfigured"}
local refused = load_cursors()
if refused then return refused end
read_sizes()
call('ZCARD', bad)
local old = ARGV[A + 1]
if keyed and keyed.is_foreign(old) then return { 'ok', 'foreign', 0 } end
if keyed then keyed.look_at({ old }) end
if ARGV[A + 5] == '' and payload_size > 0 and call('ZSCORE', exp, old) then
  local bytes = call('HGET', payload, old)
  if bytes then ARGV[A + 5] = '=' .. bytes end
end
local answer = set_deadlines(ARGV[A + 2], A + 3)[1]
local removed = answer ~= 'exists' and answer ~= 'no_key' and answer ~= 'foreign' and remove_deadline(old) == 'removed'
wake()
return { 'ok', answer, removed and 1 or 0 }
