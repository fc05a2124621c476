-- Opening, voiding and closing cleanups (W4, W5).
local function bare(entry) return sub(entry, -1) == '+' and sub(entry, 1, -2) or entry end
local function names(entry, kind_e) return entry and bare(entry) == kind_e end

local function void_cleanup(id, entry)
  local notice = bare(entry) .. ':' .. id
  for route = 1, route_count do void(route, notice) end
  call('HDEL', open, id)
  if payload_size > 0 then call('HDEL', payload, notice) end
end

-- Creates the cleanup of a life that ends now; the caller disarms the id.
local function open_cleanup(kind, e_text, id, time)
  local notice, wanted = kind .. ':' .. e_text .. ':' .. id, false
  for route = 1, route_count do
    if wants(route, CLEANUP) then
      call('ZADD', due(route), 'NX', text(time), notice)       -- in flight already: two lives, one notice
      wanted = true
    end
  end
  if wanted then
    call('HSET', open, id, kind .. ':' .. e_text)
    local bytes = payload_size > 0 and call('HGET', payload, id)
    if bytes then call('HSET', payload, notice, bytes) end
    comes_due(time)
  end
  if payload_size > 0 then call('HDEL', payload, id) end
end

-- A route's delivery of this cleanup has just gone; the last one of all routes clears what belongs to it.
local function close_if_last(notice, id, entry)
  for route = 1, route_count do if call('ZSCORE', due(route), notice) then return end end
  if entry and bare(entry) .. ':' .. id == notice then call('HDEL', open, id) end
  if payload_size > 0 then call('HDEL', payload, notice) end
end
