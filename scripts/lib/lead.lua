-- The leads' side of a set, a removal or an early end (W3).
local function is_ahead(lead, e, id) -- will the sweep still meet (id, e)?
  return e > lead.score or (e == lead.score and lead.member and is_after(id, lead.member))
end
local function unmark(lead, id) if skip_size > 0 then call('ZREM', skip, lead.text .. ':' .. id) end end
local function mark(lead, e_text, id)
  call('ZADD', skip, e_text, lead.text .. ':' .. id)
  skip_size = skip_size + 1
end
local function is_marked(lead, e, id)
  local score = skip_size > 0 and call('ZSCORE', skip, lead.text .. ':' .. id)
  return score and tonumber(score) == e
end

-- Deliveries of (id, e) exist for the leads it is inside of; within the tolerance also scheduled ones, after a step back.
local function may_have_deliveries(lead, e) return e - now <= lead.ms + tolerance_ms end

local function void_reminders(id, e_text)
  for i = 1, lead_count do
    local lead = leads[i]
    if may_have_deliveries(lead, tonumber(e_text)) then
      for route = 1, route_count do void(route, lead.text .. ':' .. e_text .. ':' .. id) end
      unmark(lead, id)
    end
  end
end

local function schedule(i, e_text, id, time, routes)
  for route = 1, route_count do
    if wants(route, i) and (not routes or routes[route]) then
      call('ZADD', due(route), text(time), leads[i].text .. ':' .. e_text .. ':' .. id)
    end
  end
  comes_due(time)
end

-- At most one crossing in min_repeat.
local function may_cross(lead, id)
  local member = lead.text .. ':' .. id
  local until_ms = crossed_size > 0 and call('ZSCORE', crossed, member)
  if until_ms and tonumber(until_ms) > now then return false end
  call('ZADD', crossed, text(now + (min_repeat_ms < 0 and lead.ms or min_repeat_ms)), member)
  crossed_size = crossed_size + 1
  return true
end

-- The score of id becomes e; old_text is the score before, if there was one. continues: its life goes on even over an
-- expiry that has passed.
local function set_leads(id, e_text, old_text, continues)
  local e, old = tonumber(e_text), old_text and tonumber(old_text)
  local alive, tightest = old and (continues or old > now), e > now
  for i = 1, lead_count do
    local lead = leads[i]
    local was_inside = alive and old - now <= lead.ms
    local keeps = was_inside and late == 'crossing'        -- what has not spoken for the old e is owed for the new one
    local owed_by_sweep = keeps and is_ahead(lead, old, id) and not is_marked(lead, old, id)
    local owed_routes
    for route = 1, route_count do
      local ready = old and may_have_deliveries(lead, old) and void(route, lead.text .. ':' .. old_text .. ':' .. id)
      ready = void(route, lead.text .. ':' .. e_text .. ':' .. id) or ready      -- left over by raw writers
      if ready and keeps then owed_routes = owed_routes or {}; owed_routes[route] = true end
    end
    local ahead = is_ahead(lead, e, id)
    if e - now > lead.ms then
      if ahead then unmark(lead, id); comes_due(e - lead.ms) else schedule(i, e_text, id, e - lead.ms) end
    else
      -- What a set makes speak is scheduled, never left to the sweep: its time tells that a set caused it.
      if ahead then mark(lead, e_text, id) end
      if tightest and (owed_by_sweep or late == 'fire'
        or late == 'crossing' and alive and not was_inside and may_cross(lead, id)) then schedule(i, e_text, id, now)
      elseif tightest and owed_routes then schedule(i, e_text, id, now, owed_routes)
      elseif e > now and not was_inside then
        call('HINCRBY', meta, 'count:skipped', 1)
        remember('skipped', nil, lead.text .. ':' .. e_text .. ':' .. id)
      end
      tightest = false
    end
  end
  comes_due(e + grace_ms)
end
