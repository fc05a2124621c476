-- Looks at the keys behind all that a claim may hand out, before anything is swept. A resync may move what is due, so the
-- claim counts afterwards, and takes only what was seen here.

-- Returns the ids whose keys agree, the waiting notices that may go, and how many ids that match no pattern went to quarantine.
-- Of each sort up to `limit` that agree. cleanup_limit: up to where cleanups are due, or nothing.
function keyed.look_at_due(queue, limit, due_limit, cleanup_limit, sweeps_reminders)
  local lists, seen, confirmed, foreign = {}, {}, {}, 0
  local most = limit + 100                                 -- keys that do not agree cost no claim of their own
  if cleanup_limit then
    lists[1] = call('ZRANGEBYSCORE', exp, '-inf', cleanup_limit, 'WITHSCORES', 'LIMIT', 0, most)
  end
  for i = 1, sweeps_reminders and lead_count or 0 do
    local lead, low = leads[i], now + leads[i].next
    local score, member = lead.score, lead.member
    if score < low or (score == low and member) then score, member = low, nil end          -- C2
    local first, count = rank_after(score, member), count_upto(now + lead.ms)
    if count > first then lists[#lists + 1] = call('ZRANGE', exp, first, min(count, first + most) - 1, 'WITHSCORES') end
  end
  for l = 1, #lists do
    local list, agreeing = lists[l], 0
    for j = 1, #list, 2 do
      if agreeing == limit then break end
      local id, score = list[j], list[j + 1]
      if id == '' or #id > 1024 then                       -- no key; the sweep takes it to quarantine
        seen[id], agreeing = true, agreeing + 1
      elseif keyed.is_foreign(id) then
        call('ZADD', bad, score, id)
        call('ZREM', exp, id)
        foreign = foreign + 1
      else
        local state = keyed.look(id, canonical(score))
        if state == 'same' or state == 'over' then seen[id], agreeing = true, agreeing + 1 end
      end
    end
  end
  local waiting, agreeing = call('ZRANGEBYSCORE', queue, '-inf', due_limit, 'LIMIT', 0, most), 0
  for j = 1, #waiting do
    if agreeing == limit then break end
    local notice = waiting[j]
    local kind, e_text, id = split(notice)
    local armed, entry, state = call('ZSCORE', exp, id), call('HGET', open, id), nil
    if is_cleanup(notice) then state = cleanup_state(kind, e_text, armed, entry)
    else state = reminder_state(kind, e_text, armed) end
    if state ~= 'ok' or keyed.confirms(notice, id, armed, entry) then
      confirmed[notice], agreeing = true, agreeing + 1     -- what is void otherwise is dropped by the claim
    end
  end
  return seen, confirmed, foreign
end
