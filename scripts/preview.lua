-- What applying settings would say at once. The common arguments carry the new settings. Writes nothing.
--
-- ARGV[A + 1]  first_start  speak | silent
--
-- Returns {"ok", for each lead how many reminders would speak, how many cleanups would open}
local counts = {}
for i = 1, lead_count do
  local ms, low = tonumber(lead_texts[i]), now + (i > 1 and tonumber(lead_texts[i - 1]) or 0)
  local cursor = planned_cursor(i, ARGV[A + 1]) or call('HGET', cur, lead_texts[i])
  local space = cursor and find(cursor, ' ', 1, true)
  local score = cursor and tonumber(space and sub(cursor, 1, space - 1) or cursor) or -huge
  local member = space and sub(cursor, space + 1)
  if score <= low then score, member = low, nil end
  counts[i] = max(0, count_upto(now + ms) - rank_after(score, member))
end
return { 'ok', counts, call('ZCOUNT', exp, '-inf', text(now - grace_ms)) }
