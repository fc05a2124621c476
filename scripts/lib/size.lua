-- The sizes of the keys a write may follow on: an empty key need not be written to. To be read before the first write: a key
-- of the wrong type stops the script there (P2).
local skip_size, crossed_size, open_size, payload_size, fail_size, every_size
local function read_sizes()
  skip_size, crossed_size, open_size = call('ZCARD', skip), call('ZCARD', crossed), call('HLEN', open)
  payload_size, fail_size, every_size = call('HLEN', payload), call('HLEN', fail), call('HLEN', every)
  for route = 1, route_count do call('ZCARD', due(route)) end
  call('HLEN', meta)
end
