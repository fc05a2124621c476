-- The history: how notices ended, in a capped stream. Off where history_limit is 0. Touches also history, built from the tag
-- of exp: it is no key of the calls, most of which do not need it.
local history = sub(exp, 1, -4) .. 'history'
if history_limit > 0 then call('XLEN', history) end        -- of the wrong type: stops here, while nothing is written
-- route: its number, or nothing where no route had it
local function remember(ending, route, notice)
  if history_limit == 0 then return end
  call('XADD', history, 'MAXLEN', '~', text(history_limit), '*', 'at', text(now), 'ending', ending,
    'route', route and route_name(route) or '', 'notice', notice)
end
