-- Wakes sleeping workers. meta holds wake-at:<route>, the instant by which a worker of that route will claim again;
-- whatever becomes due earlier is published on {tag}:wake.
local earliest = huge
local function comes_due(at) if at < earliest then earliest = at end end

-- Call once, after everything else is written; only_route limits it to one route.
local function wake(only_route)
  if earliest == huge then return end
  local fields = {}
  for route = only_route or 1, only_route or route_count do fields[#fields + 1] = 'wake-at:' .. route_name(route) end
  local stored, earlier, at = call('HMGET', meta, unpack(fields)), false, max(now, floor(earliest))
  for i = 1, #fields do
    if stored[i] and at < tonumber(stored[i]) then
      call('HSET', meta, fields[i], text(at))
      earlier = true
    end
  end
  if earlier then call('PUBLISH', sub(exp, 1, -4) .. 'wake', text(at)) end
end
