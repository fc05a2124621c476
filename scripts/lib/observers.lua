-- Telling observers what a claim has handed out, on {tag}:tail. Nothing is kept: who does not listen hears nothing.
local function observing()
  local observers = {}
  local channel = sub(exp, 1, -4) .. 'tail'

  -- A user that may not ask goes on, unheard: this comes after the writes.
  function observers.are_there()
    local listening = redis.pcall('PUBSUB', 'NUMSUB', channel)
    return not listening.err and listening[2] > 0
  end

  -- A value as the server's own protocol writes it, which takes any bytes: text, false for nothing, or a list.
  local function write_value(parts, value)
    local at = #parts + 1
    if not value then parts[at] = '$-1\r\n'
    elseif type(value) == 'table' then
      parts[at] = '*' .. #value .. '\r\n'
      for j = 1, #value do write_value(parts, value[j]) end
    else parts[at] = '$' .. #value .. '\r\n' .. value .. '\r\n' end
  end

  function observers.tell(fields)
    local parts = {}
    write_value(parts, fields)
    call('PUBLISH', channel, table.concat(parts))
  end
  return observers
end
