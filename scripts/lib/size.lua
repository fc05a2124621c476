-- The sizes of the keys a write may follow on. A key of the wrong type stops the script here, while nothing is written;
-- an empty key need not be written to.
local skip_size, crossed_size = call('ZCARD', skip), call('ZCARD', crossed)
local open_size, payload_size, fail_size, every_size = call('HLEN', open), call('HLEN', payload), call('HLEN', fail), call('HLEN', every)
for route = 1, route_count do call('ZCARD', due(route)) end
call('HLEN', meta)
