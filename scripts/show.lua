-- Everything known of one id. Writes nothing.
--
-- ARGV[A + 1]  id
--
-- Returns {"ok", e, payload, open, bad score, every, deliveries: of each route number, notice, score, JSON of its failures},
-- with false for what is not there, or {"reload"}, {"unconfigured"}
local refused = load_cursors()
if refused then return refused end
local id = ARGV[A + 1]
local e_text, entry = canonical(call('ZSCORE', exp, id)), call('HGET', open, id)
local bare_entry = entry and (sub(entry, -1) == '+' and sub(entry, 1, -2) or entry)
local bytes = call('HGET', payload, id) or bare_entry and call('HGET', payload, bare_entry .. ':' .. id)
local notices, deliveries = {}, {}
if e_text then
  for i = 1, lead_count do notices[#notices + 1] = leads[i].text .. ':' .. e_text .. ':' .. id end
end
if bare_entry then notices[#notices + 1] = bare_entry .. ':' .. id end
for route = 1, route_count do
  local scores = read_all('ZMSCORE', due(route), notices)
  for i = 1, #notices do
    if scores[i] then
      deliveries[#deliveries + 1] = text(route)
      deliveries[#deliveries + 1] = notices[i]
      deliveries[#deliveries + 1] = scores[i]
      deliveries[#deliveries + 1] = call('HGET', fail, route_name(route) .. ':' .. notices[i])
    end
  end
end
return { 'ok', e_text, bytes or false, entry, canonical(call('ZSCORE', bad, id)), call('HGET', every, id), deliveries }
