-- Removing one deadline (W5, W8). Returns removed | voided | unknown | foreign.
local function remove_deadline(id)
  if keyed and keyed.is_foreign(id) then return call('ZREM', bad, id) == 1 and 'removed' or 'foreign' end
  local e_text, entry = canonical(call('ZSCORE', exp, id)), call('HGET', open, id)
  local answer = e_text and 'removed' or entry and 'voided' or 'unknown'
  if e_text then
    call('ZREM', exp, id)
    if payload_size > 0 then call('HDEL', payload, id) end
    if every_size > 0 then call('HDEL', every, id) end
    void_reminders(id, e_text)
  end
  if entry and not (e_text and delivers) then void_cleanup(id, entry) end
  if keyed and call('UNLINK', id) == 1 and answer == 'unknown' then answer = 'removed' end
  if call('ZREM', bad, id) == 1 and answer == 'unknown' then
    if payload_size > 0 then call('HDEL', payload, id) end
    answer = 'removed'
  end
  return answer
end
