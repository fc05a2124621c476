-- Taking a delivery out of a route's queue, with what was recorded of it.
local function forget_failures(route, notice)
  if fail_size > 0 then call('HDEL', fail, route_name(route) .. ':' .. notice) end
end

-- Returns whether it was there and had never been handed out (n = 0).
local function void(route, notice)
  local score = call('ZSCORE', due(route), notice)
  if not score then return false end
  call('ZREM', due(route), notice)
  forget_failures(route, notice)
  return fence_of(tonumber(score)) == 0
end
