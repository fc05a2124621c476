-- Taking a delivery out of a route's queue, with what was recorded of it.
local function forget_failures(route, notice)
  if fail_size > 0 then call('HDEL', fail, route_name(route) .. ':' .. notice) end
end

-- Returns whether it was there and had never been handed out (n = 0). ending: for the history; superseded, if not given.
local function void(route, notice, ending)
  local score = call('ZSCORE', due(route), notice)
  if not score then return false end
  call('ZREM', due(route), notice)
  forget_failures(route, notice)
  remember(ending or 'superseded', route, notice)
  return fence_of(tonumber(score)) == 0
end
