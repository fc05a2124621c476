-- Applies settings and routes under a new version (C5, C6, R1). The common keys and arguments carry the new ones.
--
-- ARGV[A + 1]  expected     the version to replace; "" if there must be none; "*" any
-- ARGV[A + 2]  settings     JSON
-- ARGV[A + 3]  routes       JSON
-- ARGV[A + 4]  first_start  speak | silent
-- ARGV[A + 5]  id_key       the key of handles, kept if there is none yet; "" on all shards but the first
--
-- Touches also due:<route> of routes that are removed, built from the tag of exp.
-- Returns {"ok"}, {"conflict"}
local expected = ARGV[A + 1]
local present = call('HGET', meta, 'version')
if expected ~= '*' and (present or '') ~= expected then return { 'conflict' } end
read_sizes()
call('ZCARD', bad); call('ZCARD', dead_at); call('ZCARD', review_at); call('HLEN', dead); call('HLEN', review)

for i = 1, lead_count do
  local cursor = planned_cursor(i, ARGV[A + 4])
  if cursor then call('HSET', cur, lead_texts[i], cursor) end
end
local is_removed = {}
for _, lead in ipairs(removed_leads) do
  is_removed[lead] = true
  call('HDEL', cur, lead)
end
local function forget_lead(key)                            -- members "<lead>:..."
  for _, member in ipairs(call('ZRANGE', key, 0, -1)) do
    if is_removed[member:match('^[^:]*')] then call('ZREM', key, member) end
  end
end
if #removed_leads > 0 then
  forget_lead(skip)
  forget_lead(crossed)
  for route = 1, route_count do
    for _, notice in ipairs(call('ZRANGE', due(route), 0, -1)) do
      if is_removed[notice:match('^[^:]*')] then void(route, notice, 'lead') end
    end
  end
end

-- A removed route: its cleanups are settled, its queue goes.
local stays, stem = {}, sub(exp, 1, -4)
for route = 1, route_count do stays[route_name(route)] = true end
local catch_up = catching_up()
catch_up.load(call('HGET', meta, 'catch-up'))
local stored_routes = call('HGET', meta, 'routes')
for _, old in ipairs(stored_routes and cjson.decode(stored_routes) or {}) do
  if not stays[old.name] then
    local key = stem .. 'due:' .. old.name
    local queue = call('ZRANGE', key, 0, -1)
    call('DEL', key)
    for _, notice in ipairs(queue) do
      local kind, _, id = split(notice)
      if kind then
        if fail_size > 0 then call('HDEL', fail, old.name .. ':' .. notice) end
        if is_cleanup(notice) then close_if_last(notice, id, call('HGET', open, id)) end
      end
    end
    call('HDEL', meta, 'wake-at:' .. old.name, 'paused:' .. old.name .. ':reminders', 'paused:' .. old.name .. ':cleanups')
    for _, class in ipairs({ 'reminders', 'cleanups' }) do catch_up.set(old.name .. ':' .. class, nil) end
  end
end

catch_up.save()

-- P1: one sentinel keeps these two out of the small-collection encoding.
for route = 1, route_count do call('ZADD', due(route), '8e15', string.rep('~', 65)) end
call('HSET', open, string.rep('~', 1025), '')
call('HSET', meta, 'settings', ARGV[A + 2], 'routes', ARGV[A + 3], 'version', version)
if ARGV[A + 5] ~= '' and not call('HGET', meta, 'id_key') then call('HSET', meta, 'id_key', ARGV[A + 5]) end
call('HSET', cur, 'v', version)
if history_limit == 0 then call('DEL', history) end
comes_due(now)
wake()
return { 'ok' }
