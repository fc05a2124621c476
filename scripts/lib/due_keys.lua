-- Looks at the keys behind all that a claim may hand out, before anything is swept. A resync may move what is due, so the
-- sweeps count afterwards, and take only what was seen here.

-- Returns the ids that were seen and agree, and how many ids that match no pattern went to quarantine.
-- cleanup_limit: up to where cleanups are due, or nothing.
function keyed.look_at_due(queue, limit, due_limit, cleanup_limit, sweeps_reminders)
  local seen, found, foreign = {}, {}, {}
  local function collect(list)
    for j = 1, #list, 2 do
      local id = list[j]
      if id ~= '' and #id <= 1024 and keyed.is_foreign(id) then
        foreign[#foreign + 1] = list[j + 1]
        foreign[#foreign + 1] = id
      else found[#found + 1] = { id, list[j + 1] } end
    end
  end
  if cleanup_limit then collect(call('ZRANGEBYSCORE', exp, '-inf', cleanup_limit, 'WITHSCORES', 'LIMIT', 0, limit)) end
  for i = 1, sweeps_reminders and lead_count or 0 do
    local lead, low = leads[i], now + leads[i].next
    local score, member = lead.score, lead.member
    if score < low or (score == low and member) then score, member = low, nil end          -- C2
    local first, count = rank_after(score, member), count_upto(now + lead.ms)
    if count > first then collect(call('ZRANGE', exp, first, min(count, first + limit) - 1, 'WITHSCORES')) end
  end
  for j = 1, #foreign, 2 do call('ZADD', bad, foreign[j], foreign[j + 1]) end
  for j = 2, #foreign, 2 do call('ZREM', exp, foreign[j]) end
  for j = 1, #found do
    local id, e_text = found[j][1], canonical(found[j][2])
    local state = (id == '' or #id > 1024) and 'same' or keyed.look(id, e_text)
    if state == 'same' or state == 'over' then seen[id] = true end
  end
  local waiting = call('ZRANGEBYSCORE', queue, '-inf', due_limit, 'WITHSCORES', 'LIMIT', 0, limit)
  for j = 1, #waiting, 2 do
    local kind, e_text, id = split(waiting[j])
    local armed, entry, state = call('ZSCORE', exp, id), call('HGET', open, id), nil
    if is_cleanup(waiting[j]) then state = cleanup_state(kind, e_text, armed, entry)
    else state = reminder_state(kind, e_text, armed) end
    if state == 'ok' then keyed.confirms(waiting[j], id, floor(fence_of(tonumber(waiting[j + 1])) / 64), armed, entry) end
  end
  return seen, #foreign / 2
end
