-- Records failures: each claim is retried later, or parked (D1, attempts).
--
-- ARGV[A + 1]  route         its number, from 1; then tuples of nine:
-- ARGV[A + 2]  token
-- ARGV[A + 3]  verdict       backoff (a reminder's delay is cut to a quarter of its window) | retry | dead | review
-- ARGV[A + 4]  delay_ms
-- ARGV[A + 5]  max_failures  recorded failures at which it becomes a dead letter
-- ARGV[A + 6]  stage
-- ARGV[A + 7]  class
-- ARGV[A + 8]  summary
-- ARGV[A + 9]  due_at_ms     when the notice was due
-- ARGV[A + 10] on_set        1 if a set inside its lead caused it
--
-- Returns {"ok", for each: "retry:<ms>" | dead | review | stale | "dropped:<reason>"}, or {"reload"}, {"unconfigured"}
local refused = load_cursors()
if refused then return refused end
read_sizes()
call('ZCARD', dead_at); call('HLEN', dead); call('ZCARD', review_at); call('HLEN', review)
local route = tonumber(ARGV[A + 1])
local queue, name, WIDTH = due(route), route_name(route), 9
local tokens, answers, counts = {}, {}, { failed = 0, dead = 0, review = 0 }
for i = A + 2, #ARGV, WIDTH do tokens[#tokens + 1] = ARGV[i] end
local claims = read_tokens(route, tokens)
for k = 1, #claims do
  local claim, at = claims[k], A + 2 + (k - 1) * WIDTH
  local state = claim.is_current and claim_state(claim)
  if not claim.is_current then answers[k] = 'stale'
  elseif state ~= 'ok' then answers[k] = drop(route, claim, state)
  else
    local notice, verdict, delay = claim.notice, ARGV[at + 1], tonumber(ARGV[at + 2])
    local field = name .. ':' .. notice
    local record = failure_record(fail_size > 0 and call('HGET', fail, field) or nil)
    record.failures = record.failures + 1
    record.due_at_ms, record.on_set = ARGV[at + 7], ARGV[at + 8] == '1'
    local entry = { at_ms = now, attempt = record.failures + record.lapses, stage = ARGV[at + 4], class = ARGV[at + 5], summary = ARGV[at + 6] }
    add_failure(record, entry)
    if record.failures >= tonumber(ARGV[at + 3]) and verdict ~= 'review' then verdict = 'dead' end
    if verdict == 'backoff' and not is_cleanup(notice) then
      local next_lead = 0
      for i = 1, lead_count do if leads[i].text == claim.kind then next_lead = leads[i].next end end
      delay = min(delay, floor((tonumber(claim.e) - next_lead - now) / 4))
    end
    counts.failed = counts.failed + 1
    if verdict == 'dead' or verdict == 'review' then
      call('ZREM', queue, notice)
      if verdict == 'dead' then park(dead, dead_at, route, notice, record) else park(review, review_at, route, notice, record) end
      if is_cleanup(notice) then close_if_last(notice, claim.id, claim.entry) end
      counts[verdict] = counts[verdict] + 1
      answers[k] = verdict
    else
      local next_attempt = now + delay
      entry.next_attempt_at_ms = next_attempt
      call('ZADD', queue, due_score(next_attempt, claim.n, 0), notice)
      call('HSET', fail, field, cjson.encode(record))
      fail_size = fail_size + 1
      comes_due(next_attempt)
      answers[k] = 'retry:' .. text(next_attempt)
    end
  end
end
for what, count in pairs(counts) do if count > 0 then call('HINCRBY', meta, 'count:' .. what, count) end end
wake(route)
return { 'ok', answers }
