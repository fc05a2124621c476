-- Ends deadlines now: disarms each and opens its cleanup with reason ended, in one step (W6).
--
-- ARGV[A + 1]  ids
--
-- Returns {"ok", for each: ended | open | unknown | foreign}, or {"reload"}, {"unconfigured"}
local refused = load_cursors()
if refused then return refused end
read_sizes()
local answers = {}
for i = A + 1, #ARGV do
  local id = ARGV[i]
  local is_foreign = keyed and keyed.is_foreign(id)
  if keyed and not is_foreign then keyed.look_at({ id }) end
  local e_text, entry = canonical(call('ZSCORE', exp, id)), call('HGET', open, id)
  if is_foreign then answers[#answers + 1] = 'foreign'
  elseif e_text then
    void_reminders(id, e_text)
    if entry and not delivers then void_cleanup(id, entry) end
    open_cleanup('0x', e_text, id, now)
    call('ZREM', exp, id)
    if keyed then call('UNLINK', id) end
    if every_size > 0 then call('HDEL', every, id) end
    answers[#answers + 1] = 'ended'
  else answers[#answers + 1] = entry and 'open' or 'unknown' end
end
wake()
return { 'ok', answers }
