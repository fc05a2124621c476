-- Settles claims as done. The hottest script: it stands alone and binds only what it uses.
--
-- KEYS[2]      cur      HASH  version of the settings
-- KEYS[3]      open     HASH  id -> "<kind>:<e>" of its unsettled cleanup
-- KEYS[6]      payload  HASH  the payload of a cleanup under its notice
-- KEYS[7]      fail     HASH  "<route>:<notice>" -> JSON of its failures
-- KEYS[8]      meta     HASH  counters
-- KEYS[15]     due      ZSET  notice -> time + (n*64 + c)/1024; one such key for each route, in order
-- ARGV[1]      version    of the settings the caller knows
-- ARGV[2]      on_rearm   supersede | deliver
-- ARGV[3]      route      its number, from 1
-- ARGV[4]      history_limit  about how many ended notices are remembered; 0: none
-- ARGV[5]      now_ms     for the history; empty: the server's clock; then
-- ARGV[6]      tokens     in groups: the fence they share, how many notices, the notices
--
-- Touches also history, built from the tag of due.
--
-- Returns {"ok", for each: 1 settled, 0 stale}, or {"reload"}, {"unconfigured"}
local cur, open, payload, fail, meta = KEYS[2], KEYS[3], KEYS[6], KEYS[7], KEYS[8]
local version, delivers, route = ARGV[1], ARGV[2] == 'deliver', tonumber(ARGV[3])
local history_limit, now_ms = tonumber(ARGV[4]), ARGV[5]
local call, find, sub, byte = redis.call, string.find, string.sub, string.byte
local queue = KEYS[14 + route]
local known = call('HGET', cur, 'v')
if known ~= version then return { known and 'reload' or 'unconfigured' } end
local answers, settled, cleanups, at, ids = {}, {}, {}, {}, {}
local from = 6
local count, done = 0, 0
while ARGV[from] do
  local fence, last = tonumber(ARGV[from]), from + 1 + tonumber(ARGV[from + 1])
  local fraction = fence % 64 ~= 0 and fence / 1024 or -1
  local scores = call('ZMSCORE', queue, unpack(ARGV, from + 2, last))
  for j = 1, #scores do
    local score = scores[j]
    count = count + 1
    answers[count] = 0
    if score and tonumber(score) % 1 == fraction then
      local notice = ARGV[from + 1 + j]
      done = done + 1
      settled[done], answers[count] = notice, 1
      if byte(notice, 1) == 48 then
        local k = #cleanups + 1
        cleanups[k], at[k] = notice, count
        ids[k] = sub(notice, find(notice, ':', find(notice, ':', 1, true) + 1, true) + 1)
      end
    end
  end
  from = last + 1
end
if done == 0 then return { 'ok', answers } end
-- Reads first: a key of the wrong type stops the script here, while nothing is written.
local has_failures, has_payloads = call('HLEN', fail) > 0, call('HLEN', payload) > 0
call('HLEN', meta)
local name = queue:match('[^:]*$')
local history = sub(queue, 1, -#name - 5) .. 'history'
if history_limit > 0 then call('XLEN', history) end
local entries, others = #cleanups > 0 and call('HMGET', open, unpack(ids)), {}
for r = 15, #KEYS do
  if #cleanups > 0 and KEYS[r] ~= queue then others[#others + 1] = call('ZMSCORE', KEYS[r], unpack(cleanups)) end
end
local acked, is_void = done, {}
call('ZREM', queue, unpack(settled))
if has_failures then
  local fields = {}
  for i = 1, #settled do fields[i] = name .. ':' .. settled[i] end
  call('HDEL', fail, unpack(fields))
end
if #cleanups > 0 then
  local closed, payloads = {}, {}
  for k = 1, #cleanups do
    local notice, entry = cleanups[k], entries[k]
    local kind_e = sub(notice, 1, #notice - #ids[k] - 1)
    local is_named, is_last = entry and (entry == kind_e or entry == kind_e .. '+'), true
    if not is_named and not delivers then answers[at[k]], acked, is_void[notice] = 0, acked - 1, true end
    for o = 1, #others do if others[o][k] then is_last = false end end
    if is_last then
      if is_named then closed[#closed + 1] = ids[k] end
      payloads[#payloads + 1] = notice
    end
  end
  if #closed > 0 then call('HDEL', open, unpack(closed)) end
  if has_payloads and #payloads > 0 then call('HDEL', payload, unpack(payloads)) end
end
if acked > 0 then call('HINCRBY', meta, 'count:acked', acked) end
if history_limit > 0 then
  if now_ms == '' then
    local time = call('TIME')
    now_ms = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
  end
  for i = 1, done do
    call('XADD', history, 'MAXLEN', '~', history_limit, '*', 'at', now_ms, 'ending', is_void[settled[i]] and 'superseded' or 'delivered',
      'route', name, 'notice', settled[i])
  end
end
return { 'ok', answers }
