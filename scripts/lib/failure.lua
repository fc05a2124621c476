-- What is recorded of failures, and parking. A record: {failures, lapses, due_at_ms, on_set, last = the last 10}.
local function failure_record(stored)
  return stored and cjson.decode(stored) or { failures = 0, lapses = 0, last = {} }
end
local function add_failure(record, entry)
  record.last[#record.last + 1] = entry
  if #record.last > 10 then table.remove(record.last, 1) end
end

-- Parks a delivery that is already out of its queue; shelf and shelf_at are dead and dead_at, or review and review_at.
local function park(shelf, shelf_at, route, notice, record)
  local kind, e_text, id = split(notice)
  local member = route_name(route) .. ':' .. notice
  local bytes = payload_size > 0 and call('HGET', payload, is_cleanup(notice) and notice or id)
  record.kind, record.e, record.payload = kind, e_text, bytes or nil
  call('HSET', shelf, member, cjson.encode(record))
  call('ZADD', shelf_at, text(now), member)
  if fail_size > 0 then call('HDEL', fail, member) end
  remember(shelf == dead and 'dead' or 'review', route, notice)
end
