-- Puts parked notices back, ready to be delivered again.
--
-- ARGV[A + 1]  shelf    dead | review; then
-- ARGV[A + 2]  members  "<route>:<notice>"
--
-- Returns {"ok", for each: requeued | superseded | unknown | no_route}, or {"reload"}, {"unconfigured"}
local refused = load_cursors()
if refused then return refused end
read_sizes()
local shelf, shelf_at = dead, dead_at
if ARGV[A + 1] == 'review' then shelf, shelf_at = review, review_at end
call('ZCARD', shelf_at); call('HLEN', shelf)
local route_of, answers = {}, {}
for route = 1, route_count do route_of[route_name(route)] = route end
for i = A + 2, #ARGV do
  local member = ARGV[i]
  local colon = find(member, ':', 1, true)
  local route, notice = route_of[sub(member, 1, colon - 1)], sub(member, colon + 1)
  local kind, e_text, id = split(notice)
  local json = call('HGET', shelf, member)
  local score, state = call('ZSCORE', exp, id), 'ok'
  if is_cleanup(notice) then
    if not delivers and (score or call('HEXISTS', open, id) == 1) then state = 'superseded' end
  else state = reminder_state(kind, e_text, score) end
  if not json then answers[#answers + 1] = 'unknown'
  elseif not route then answers[#answers + 1] = 'no_route'
  elseif state ~= 'ok' then answers[#answers + 1] = 'superseded'
  else
    if is_cleanup(notice) then
      if not score and call('HEXISTS', open, id) == 0 then call('HSET', open, id, kind .. ':' .. e_text) end
      local bytes = cjson.decode(json).payload
      if bytes then call('HSET', payload, notice, bytes) end
    end
    -- It was due when it was due: the lateness it will be sent with stays honest.
    local time = now
    if kind == '0' then time = min(now, floor(tonumber(e_text)) + grace_ms)
    elseif not is_cleanup(notice) then time = floor(tonumber(e_text)) - tonumber(kind) end
    call('ZADD', due(route), 'NX', text(time), notice)      -- in flight again already: it stays as it is
    call('HDEL', shelf, member)
    call('ZREM', shelf_at, member)
    comes_due(now)
    answers[#answers + 1] = 'requeued'
  end
end
wake()
return { 'ok', answers }
