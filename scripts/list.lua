-- Armed deadlines by expiry, then id. Writes nothing.
--
-- ARGV[A + 1]  within_ms  "" for all
-- ARGV[A + 2]  after_e    "" to begin at the start
-- ARGV[A + 3]  after_id
-- ARGV[A + 4]  limit
--
-- Returns {"ok", id, e, id, e, ...}
local within_ms, after_e, after_id, limit = tonumber(ARGV[A + 1]), tonumber(ARGV[A + 2]), ARGV[A + 3], tonumber(ARGV[A + 4])
local start = after_e and rank_after(after_e, after_id ~= '' and after_id or nil) or 0
local found, answer = call('ZRANGE', exp, start, start + limit - 1, 'WITHSCORES'), { 'ok' }
for j = 1, #found, 2 do
  if within_ms and tonumber(found[j + 1]) > now + within_ms then break end
  answer[#answer + 1] = found[j]
  answer[#answer + 1] = canonical(found[j + 1])
end
return answer
