-- How much of what there is in this shard. Writes nothing.
--
-- Returns {"ok", armed, overdue, open, dead, review, quarantined, routes: of each pending, due, age of the oldest due in ms
-- or ""; counters: name, value, ...; what is catching up, as JSON or ""}
local routes, counters, catching_up = {}, {}, ''
for route = 1, route_count do
  local pending, limit = call('ZCOUNT', due(route), '-inf', '(8e15'), '(' .. text(now + 1)
  local oldest = call('ZRANGE', due(route), 0, 0, 'WITHSCORES')[2]
  routes[#routes + 1] = pending
  routes[#routes + 1] = call('ZCOUNT', due(route), '-inf', limit)
  routes[#routes + 1] = oldest and tonumber(oldest) < now + 1 and text(now - floor(tonumber(oldest))) or ''
end
local all = call('HGETALL', meta)
for j = 1, #all, 2 do
  if all[j] == 'catch-up' then catching_up = all[j + 1] end
  if sub(all[j], 1, 6) == 'count:' then
    counters[#counters + 1] = sub(all[j], 7)
    counters[#counters + 1] = all[j + 1]
  end
end
local overdue = call('ZCOUNT', exp, '-inf', text(now - grace_ms))
local unsettled = call('HLEN', open) - call('HEXISTS', open, string.rep('~', 1025))
return { 'ok', call('ZCARD', exp), overdue, unsettled, call('HLEN', dead), call('HLEN', review), call('ZCARD', bad), routes, counters, catching_up }
