-- Looks again at the keys of the armed ids inside the largest lead: a key that was renewed after a lead had spoken may cross
-- that lead again before its score comes up. And of those in their grace time, whose cleanup may not be due for long yet. One
-- pass an interval, by whichever caller comes first.
--
-- ARGV[A + 1]  interval_ms
-- ARGV[A + 2]  limit        at most this many ids a call
--
-- Returns {"ok", ms until the next call is wanted}, or {"reload"}, {"unconfigured"}
local refused = load_cursors()
if refused then return refused end
read_sizes()
local interval_ms, limit = tonumber(ARGV[A + 1]), tonumber(ARGV[A + 2])
-- meta holds "<when the next pass begins>", and during a pass " <score> <member>" of the last id seen.
local stored = call('HGET', meta, 'resync')
local begins, score, member
if stored then begins, score, member = stored:match('^(%S+) ?(%S*) ?(.*)$') end
begins, score = tonumber(begins or nil), tonumber(score or nil)
if begins and begins > now + interval_ms then begins = nil end                 -- the clock stepped back
if begins and not score and begins > now then return { 'ok', begins - now } end
if lead_count == 0 and grace_ms == 0 then return { 'ok', interval_ms } end
local paused = call('HMGET', meta, 'paused:reminders', 'paused:cleanups')
if paused[1] and paused[2] then return { 'ok', interval_ms } end               -- nothing is to be made
local low, high = now - grace_ms - 1, now + (lead_count > 0 and leads[lead_count].ms or 0)
if not score or score < low then score, member = low, nil end
if not (begins and begins > now) then begins = now + interval_ms end
save_rewound()
local first, count = rank_after(score, member), count_upto(high)
local found = count > first and call('ZRANGE', exp, first, min(count, first + limit) - 1, 'WITHSCORES') or {}
for j = 1, #found, 2 do
  local id = found[j]
  if id ~= '' and #id <= 1024 and not keyed.is_foreign(id) then keyed.look(id, canonical(found[j + 1])) end
end
local is_done = #found < 2 * limit
call('HSET', meta, 'resync', is_done and text(begins) or text(begins) .. ' ' .. found[#found] .. ' ' .. found[#found - 1])
wake()
return { 'ok', is_done and max(0, begins - now) or 0 }
