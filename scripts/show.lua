-- Everything known of ids. Writes nothing.
--
-- ARGV[A + 1]  ids
--
-- Returns {"ok", {of each id {e, payload, open, bad score, every, deliveries: of each route number, notice, score, JSON of its
-- failures}}}, with false for what is not there, or {"reload"}, {"unconfigured"}
local refused = load_cursors()
if refused then return refused end
local ids = { unpack(ARGV, A + 1) }
local expiries, entries = read_all('ZMSCORE', exp, ids), read_all('HMGET', open, ids)
local payloads, reasons, periods = read_all('HMGET', payload, ids), read_all('ZMSCORE', bad, ids), read_all('HMGET', every, ids)

-- What may be in the queues, and whose it is.
local notices, owners, known = {}, {}, {}
local function ask_for(notice, k)
  notices[#notices + 1] = notice
  owners[#notices] = k
end
for k = 1, #ids do
  local id, e_text, entry = ids[k], canonical(expiries[k]), entries[k]
  local bytes = payloads[k]
  if e_text then
    for i = 1, lead_count do ask_for(leads[i].text .. ':' .. e_text .. ':' .. id, k) end
  end
  if entry then
    local cleanup = (sub(entry, -1) == '+' and sub(entry, 1, -2) or entry) .. ':' .. id
    ask_for(cleanup, k)
    bytes = bytes or call('HGET', payload, cleanup)
  end
  known[k] = { e_text, bytes, entry, canonical(reasons[k]), periods[k], {} }
end
for route = 1, route_count do
  local scores = read_all('ZMSCORE', due(route), notices)
  for i = 1, #notices do
    if scores[i] then
      local deliveries = known[owners[i]][6]
      deliveries[#deliveries + 1] = text(route)
      deliveries[#deliveries + 1] = notices[i]
      deliveries[#deliveries + 1] = scores[i]
      deliveries[#deliveries + 1] = call('HGET', fail, route_name(route) .. ':' .. notices[i])
    end
  end
end
return { 'ok', known }
