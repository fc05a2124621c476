-- Takes due notices for one route: what waits in its queue, reminders by sweeping each lead, cleanups by sweeping what has
-- expired. Moves the cursors, and only forward (C1 to C5, D1 to D4, Q1 to Q4).
--
-- ARGV[A + 1]  route           its number, from 1
-- ARGV[A + 2]  limit           at most this many; 0 only looks
-- ARGV[A + 3]  lease_ms
-- ARGV[A + 4]  max_poll_ms     how long a worker may sleep
-- ARGV[A + 5]  max_deliveries  lapses at which a notice becomes a dead letter; then triples of recurring ids by cron:
-- ARGV[A + 6]  id
-- ARGV[A + 7]  e               the expiry for which the next one was computed
-- ARGV[A + 8]  next_e          "" if there is none: the id no longer recurs
--
-- Publishes route, now, grace_ms, fence, again, first and payloads on {tag}:tail, if anything is handed out and somebody listens.
-- Returns {"ok", now, state, next due ("" if unknown), poll at, superseded, expired, coalesced, lead, quarantined, lapsed,
--   fence, again, first, payloads, crons} with state backlog | wait | paused;
--   again: of each re-claim its token, when it was ready ("" if handed out before), the JSON of its failures or "";
--   first: notices handed out first, their tokens are "<fence>:<notice>"; payloads: of again and first, false where none, or
--   empty; crons: id, e, spec of ids that wait for their next_e. Or {"reload"}, {"unconfigured"}
local refused = load_cursors()
if refused then return refused end
local route, limit, lease_ms = tonumber(ARGV[A + 1]), tonumber(ARGV[A + 2]), tonumber(ARGV[A + 3])
local max_poll_ms, max_deliveries = tonumber(ARGV[A + 4]), tonumber(ARGV[A + 5])
local queue, name = due(route), route_name(route)
local SMALL = 8                                            -- Q3: what may be poisonous goes out in small claims
local DEFERRED_MS = 1000                                   -- what is paused is looked at again after this
local FIRST_VALID, LAST_VALID, LONGEST_ID = 1e11, 1e14, 1024

-- What is paused. A class is swept unless the namespace pauses it, and handed out unless namespace or route pause it.
local said = call('HMGET', meta, 'claims', 'wake-at:' .. name, 'paused:reminders', 'paused:cleanups',
  'paused:' .. name .. ':reminders', 'paused:' .. name .. ':cleanups', 'catch-up')
local claims_before, wake_at = tonumber(said[1] or 0), tonumber(said[2] or nil)
local sweeps_reminders, sweeps_cleanups = not said[3], not said[4]
local hands_reminders, hands_cleanups = not said[3] and not said[5], not said[4] and not said[6]
local catch_up = said[7] and catching_up()                 -- R2
local slow = catch_up and catch_up.limits_of(said[7], name, hands_reminders, hands_cleanups) or {}

-- Read before the first write, and only if there is one: most claims find nothing.
local are_sizes_read = false
local function read_sizes_once()
  if are_sizes_read then return end
  are_sizes_read = true
  read_sizes()
  call('ZCARD', dead_at); call('HLEN', dead)
end

-- Scores that cannot be an expiry go to quarantine; at most `limit` of each kind.
local quarantined, unsorted, low_unsorted = 0, 0, 0
local function head_of(key) return tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2] or nil) or huge end
local function sort_out(low, high)
  local moved, left = quarantine(low, high, limit, read_sizes_once)
  quarantined, unsorted = quarantined + moved, unsorted + left
end
local bad_size, head, tail = call('ZCARD', bad), head_of(exp), tonumber(call('ZRANGE', exp, -1, -1, 'WITHSCORES')[2] or nil)
if head < FIRST_VALID then
  sort_out('(0', '(' .. text(FIRST_VALID))
  low_unsorted = unsorted
end
if tail and tail > LAST_VALID then sort_out('(' .. text(LAST_VALID), '+inf') end
if bad_size > 0 and limit > 0 then free_rearmed() end

-- Key-backed: first the keys behind what is due are looked at.
local due_limit, cleanup_limit = '(' .. text(now + 1), text(now - grace_ms)
if keyed then cleanup_limit = '(' .. cleanup_limit end     -- W4: at the very instant the key is still there
if low_unsorted > 0 then cleanup_limit = '0' end           -- quarantine still holding some back: only what stands before them
local seen, confirmed, foreign
if keyed and limit > 0 then
  read_sizes_once()
  seen, confirmed, foreign = keyed.look_at_due(queue, limit, due_limit, sweeps_cleanups and cleanup_limit, sweeps_reminders)
  quarantined = quarantined + foreign
end
-- How many of the swept may be taken: those that were seen, up to the first that was not.
local is_held_back = false
local function agreed(swept, count)
  for j = 1, seen and count or 0 do
    if not seen[swept[2 * j - 1]] then is_held_back = true; return j - 1 end
  end
  return count
end

-- How much is due of each class.
local hands_any, cursors_are_old = hands_reminders or hands_cleanups, false
local in_queue, in_leads, in_exp, queue_head = 0, 0, 0, hands_any and head_of(queue) or huge
if are_sizes_read then head = head_of(exp) end             -- something may have been moved
if queue_head < now + 1 then in_queue = call('ZCOUNT', queue, '-inf', due_limit) end
if sweeps_cleanups and head <= now - grace_ms then in_exp = call('ZCOUNT', exp, '-inf', cleanup_limit) end
for i = 1, lead_count do
  local lead = leads[i]
  local low = now + lead.next
  lead.high, lead.count = now + lead.ms, 0
  if sweeps_reminders then
    if lead.score < low or (lead.score == low and lead.member) then                        -- C2
      if history_limit > 0 then
        local count = count_upto(low) - rank_after(lead.score, lead.member)
        if count > 0 then
          read_sizes_once()
          call('XADD', history, 'MAXLEN', '~', text(history_limit), '*', 'at', text(now), 'passed', lead.text,
            'after', text(lead.score), 'upto', text(low), 'count', text(count))
          cursors_are_old = true                           -- or it would be told again
        end
      end
      lead.score, lead.member = low, nil
    end
    if not lead.member then                                -- what comes next says whether there is anything to count
      local following = call('ZRANGEBYSCORE', exp, '(' .. text(lead.score), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
      lead.following = tonumber(following[2] or nil) or huge
    end
    if lead.member and lead.score <= lead.high or lead.following and lead.following <= lead.high then
      lead.start = rank_after(lead.score, lead.member)
      lead.count = max(0, count_upto(lead.high) - lead.start)
      in_leads = in_leads + lead.count
    end
    if lead.rewound or lead.high - lead.stored >= 1000 then cursors_are_old = true end     -- Q4
  end
end

local picked
if slow.queue and in_queue > 0 then
  picked = catch_up.allowed_in(queue, due_limit, slow.queue)
  in_queue = #picked / 2
end
local wanted = { in_queue, in_leads, in_exp }
if catch_up then
  wanted[2], wanted[3] = catch_up.allowed(slow.reminders, in_leads), catch_up.allowed(slow.cleanups, in_exp)
end
local share = fair_shares(wanted, limit, claims_before)

local c
if share[1] + share[2] + share[3] > 0 then
  read_sizes_once()
  c = 1 + call('HINCRBY', meta, 'claims', 1) % 63
end
local counts = { superseded = 0, expired = 0, coalesced = 0, lead = 0, lapsed = 0, dead = 0 }
local again, first, payload_keys = {}, {}, {}
local leased_again, leased_first = {}, {}                  -- pairs for ZADD of this route's queue
local lease_end = {}                                       -- n -> score: the same for all that are handed out for the n-th time
local function lease(leased, notice, n, id)
  if not lease_end[n] then lease_end[n] = due_score(now + lease_ms, n, c) end
  local at = #leased
  leased[at + 1], leased[at + 2] = lease_end[n], notice
  if payload_size > 0 then payload_keys[#payload_keys + 1] = is_cleanup(notice) and notice or id end
end

-- 1. What waits in the queue: ready, retried, or lapsed because its worker vanished.
local left_for_small = 0
if share[1] > 0 then
  local found = picked and { unpack(picked, 1, 2 * share[1]) }
    or call('ZRANGEBYSCORE', queue, '-inf', due_limit, 'WITHSCORES', 'LIMIT', 0, share[1])
  local waiting, ids, fields = {}, {}, {}
  for j = 1, #found, 2 do
    if confirmed and not confirmed[found[j]] then is_held_back = true
    else
      local item = { notice = found[j], score = tonumber(found[j + 1]) }
      item.kind, item.e, item.id = split(item.notice)
      waiting[#waiting + 1] = item
      ids[#ids + 1] = item.id
      fields[#fields + 1] = name .. ':' .. item.notice
    end
  end
  local armed, entries = read_all('ZMSCORE', exp, ids), read_all('HMGET', open, ids)
  local stored = fail_size > 0 and read_all('HMGET', fail, fields) or {}
  local suspects = 0
  for j = 1, #waiting do
    local item, notice = waiting[j], waiting[j].notice
    local cleanup = is_cleanup(notice)
    local fence = fence_of(item.score)
    local n, has_lapsed = floor(fence / 64), fence % 64 ~= 0
    local state
    if cleanup then state = cleanup_state(item.kind, item.e, armed[j], entries[j])
    else state = reminder_state(item.kind, item.e, armed[j]) end
    local hands = hands_reminders
    if cleanup then hands = hands_cleanups end
    if state ~= 'ok' then
      counts[state] = counts[state] + 1
      void(route, notice, state)
      if cleanup then close_if_last(notice, item.id, entries[j]) end
    elseif not hands then
      call('ZADD', queue, text(now + DEFERRED_MS + fence / 1024), notice)
    elseif has_lapsed and n >= 2 and suspects >= SMALL then
      left_for_small = left_for_small + 1
    else
      local record = has_lapsed and failure_record(stored[j] or nil)
      if has_lapsed then
        if n >= 2 then suspects = suspects + 1 end
        record.lapses = record.lapses + 1
        counts.lapsed = counts.lapsed + 1
        add_failure(record, { at_ms = now, attempt = record.failures + record.lapses, stage = 'deliver', class = 'lapsed',
          summary = 'its worker did not settle it before the lease ended' })
      end
      if has_lapsed and record.lapses >= max_deliveries then
        counts.dead = counts.dead + 1
        call('ZREM', queue, notice)
        park(dead, dead_at, route, notice, record)
        if cleanup then close_if_last(notice, item.id, entries[j]) end
      else
        local json = stored[j] or ''
        if has_lapsed then
          json = cjson.encode(record)
          call('HSET', fail, fields[j], json)
        end
        lease(leased_again, notice, min(14, n) + 1, item.id)
        again[#again + 1] = text((min(14, n) + 1) * 64 + c) .. ':' .. notice
        again[#again + 1] = n == 0 and text(floor(item.score)) or ''
        again[#again + 1] = json
      end
    end
  end
end

-- 2. Reminders: sweep each lead, the most urgent first.
local others, mine = {}, {}                                -- pairs for ZADD: of the other queues, and of this one while it is paused
-- Delivers what a sweep has met, of one lead or of cleanups; shift_ms: from its expiry to when it is due.
local function delivery_of(what, hands, shift_ms)
  local is_mine, pairs_of = wants(route, what), {}
  if route_count > 1 then others[what] = pairs_of end
  return function(notice, id, e_text)
    if is_mine and hands then
      lease(leased_first, notice, 1, id)
      first[#first + 1] = notice
    elseif is_mine then
      mine[#mine + 1] = text(floor(tonumber(e_text)) + shift_ms)
      mine[#mine + 1] = notice
    end
    if route_count > 1 then
      pairs_of[#pairs_of + 1] = text(floor(tonumber(e_text)) + shift_ms)
      pairs_of[#pairs_of + 1] = notice
    end
  end
end
local unfit = {}                                           -- pairs for ZADD of bad: raw ids that no notice can carry
local function is_unfit(id, e_text)
  if id ~= '' and #id <= LONGEST_ID then return false end
  unfit[#unfit + 1] = e_text
  unfit[#unfit + 1] = id
  return true
end
local room_left = share[2]
for i = 1, lead_count do
  local lead = leads[i]
  local take = min(lead.count, room_left)
  if take > 0 then
    room_left = room_left - take
    local swept, marks, members = call('ZRANGE', exp, lead.start, lead.start + take - 1, 'WITHSCORES'), nil, {}
    take = agreed(swept, take)
    if skip_size > 0 then
      for j = 1, take do members[j] = lead.text .. ':' .. swept[2 * j - 1] end
      marks = read_all('ZMSCORE', skip, members)
    end
    local deliver, prefix = delivery_of(i, hands_reminders, -lead.ms), lead.text .. ':'
    for j = 1, take do
      local id, e_text = swept[2 * j - 1], canonical(swept[2 * j])
      local is_silent = marks and marks[j] and tonumber(marks[j]) == tonumber(e_text)
      if not is_unfit(id, e_text) and not is_silent then deliver(prefix .. e_text .. ':' .. id, id, e_text) end
    end
    cursors_are_old = true
    if take > 0 and take < lead.count then lead.score, lead.member = tonumber(swept[2 * take]), swept[2 * take - 1] end
  end
  if sweeps_reminders and take == lead.count and lead.score <= lead.high then lead.score, lead.member = lead.high, nil end
end

-- 3. Cleanups: disarm what has expired and open it.
local opened, copied, copied_gone, disarmed, recurring, crons = {}, {}, {}, {}, {}, {}
if share[3] > 0 then
  local wanted_by_any = false
  for r = 1, route_count do wanted_by_any = wanted_by_any or wants(r, CLEANUP) end
  local swept, ids = call('ZRANGE', exp, 0, share[3] - 1, 'WITHSCORES'), {}
  local take = agreed(swept, share[3])
  for j = 1, take do ids[j] = swept[2 * j - 1] end
  local periods = every_size > 0 and read_all('HMGET', every, ids)
  local bytes = payload_size > 0 and read_all('HMGET', payload, ids)
  local deliver, next_of = delivery_of(CLEANUP, hands_cleanups, grace_ms), {}
  for j = A + 6, #ARGV, 3 do next_of[ARGV[j + 1] .. ':' .. ARGV[j]] = ARGV[j + 2] end
  for j = 1, take do
    local id, e_text = ids[j], canonical(swept[2 * j])
    local e, period = tonumber(e_text), periods and periods[j]
    local next_e
    if period then
      local ms = tonumber(period)
      if ms and ms > 0 then next_e = text(floor(e) + ms * max(1, floor((now - floor(e)) / ms) + 1))
      else next_e = next_of[e_text .. ':' .. id] end
    end
    if is_unfit(id, e_text) then disarmed[#disarmed + 1] = id
    elseif period and not next_e then
      crons[#crons + 1] = id
      crons[#crons + 1] = e_text
      crons[#crons + 1] = period
    else
      local again_mark = ''
      if next_e and next_e ~= '' then
        recurring[#recurring + 1] = { id, next_e }
        again_mark = '+'
      else
        disarmed[#disarmed + 1] = id
        if period then call('HDEL', every, id) end
        if bytes and bytes[j] then copied_gone[#copied_gone + 1] = id end
      end
      if wanted_by_any then
        local notice = '0:' .. e_text .. ':' .. id
        deliver(notice, id, e_text)
        opened[#opened + 1] = id
        opened[#opened + 1] = '0:' .. e_text .. again_mark
        if bytes and bytes[j] then
          copied[#copied + 1] = notice
          copied[#copied + 1] = bytes[j]
        end
      end
    end
  end
end

-- D4: queues and open first, then exp, cursors last. An error in between repeats work and never loses it.
write_all('ZADD', queue, leased_again)
if add_new(queue, leased_first) < #first then
  local really_first, keys, is_known = {}, {}, {}
  for j = 1, #again / 3 do
    keys[j], is_known[leased_again[2 * j]] = payload_keys[j], true
  end
  for j = 1, #first do
    local score = leased_first[2 * j - 1]
    if not is_known[first[j]] and tonumber(call('ZSCORE', queue, first[j])) == tonumber(score) then
      really_first[#really_first + 1] = first[j]
      keys[#keys + 1] = payload_keys[#again / 3 + j]
    end
  end
  first, payload_keys = really_first, keys
end
add_new(queue, mine)
for what, list in pairs(others) do
  for r = 1, route_count do if r ~= route and wants(r, what) then add_new(due(r), list) end end
end
write_all('HSET', open, opened)
write_all('HSET', payload, copied)
for j = 1, #unfit, 2 do quarantined = quarantined + call('ZADD', bad, unfit[j], unfit[j + 1]) end
write_all('HDEL', payload, copied_gone)
for j = 1, #recurring do call('ZADD', exp, recurring[j][2], recurring[j][1]) end
if #disarmed > 0 and #crons == 0 then call('ZREMRANGEBYRANK', exp, 0, #disarmed - 1)
else write_all('ZREM', exp, disarmed) end
for j = 2, #unfit, 2 do call('ZREM', exp, unfit[j]) end
if #recurring > 0 then cursors_are_old = true end          -- the new life is judged by these cursors, so they must be kept
for j = 1, #recurring do set_leads(recurring[j][1], recurring[j][2]) end
if cursors_are_old then
  local fields, lowest = {}, now + (lead_count > 0 and leads[1].ms or 0)
  for i = 1, lead_count do
    lowest = min(lowest, leads[i].score)
    fields[#fields + 1] = leads[i].text
    fields[#fields + 1] = cursor_text(leads[i])
  end
  call('ZREMRANGEBYSCORE', skip, '-inf', '(' .. text(lowest))
  call('ZREMRANGEBYSCORE', crossed, '-inf', text(now))
  write_all('HSET', cur, fields)
end
if catch_up and limit > 0 then catch_up.charge(slow, share, picked or {}) end
for what, count in pairs(counts) do if count > 0 then call('HINCRBY', meta, 'count:' .. what, count) end end
if quarantined > 0 then call('HINCRBY', meta, 'count:quarantined', quarantined) end
local handed_out = #first + #again / 3
if handed_out > 0 then call('HINCRBY', meta, 'count:handed_out', handed_out) end

-- Q2: when the next thing is due, exactly; and until when this route is sure to be looked at.
local state, next_due = 'wait', huge
if wanted[1] + wanted[2] + wanted[3] + unsorted > share[1] + share[2] + share[3] or left_for_small > 0 or is_held_back
  or #crons > 0 then
  state = 'backlog'
else
  if are_sizes_read then                                   -- otherwise all stands as it was read
    head, queue_head = head_of(exp), hands_any and head_of(queue) or huge
  end
  if slow.queue and catch_up.holds_any(slow.queue) then queue_head = catch_up.first_from(queue, now + 1) end
  if queue_head < 8e15 then next_due = floor(queue_head) end
  next_due = min(next_due, catch_up and catch_up.goes_on_at(slow) or huge)
  if sweeps_cleanups and not (catch_up and catch_up.holds(slow.cleanups)) then
    next_due = min(next_due, keyed and floor(head + grace_ms) + 1 or head + grace_ms)
  end
  for i = 1, sweeps_reminders and not (catch_up and catch_up.holds(slow.reminders)) and lead_count or 0 do
    local lead = leads[i]
    local following
    if lead.member then                                    -- inside a tie: the rest of it is still to come
      local rank = rank_after(lead.score, lead.member)
      following = call('ZRANGE', exp, rank, rank, 'WITHSCORES')
    elseif are_sizes_read or not lead.following then following = call('ZRANGEBYSCORE', exp, '(' .. text(lead.score), '+inf', 'WITHSCORES', 'LIMIT', 0, 1) end
    if following then lead.following = tonumber(following[2] or nil) or huge end
    next_due = min(next_due, lead.following - lead.ms)
  end
  next_due = math.ceil(next_due)
  if not hands_any then state = 'paused' end
end
local poll_at = min(now + max_poll_ms, max(now, next_due))
if state ~= 'backlog' then
  if not wake_at or wake_at <= now or poll_at < wake_at then call('HSET', meta, 'wake-at:' .. name, text(poll_at))
  else poll_at = wake_at end
end

local payloads = {}
if #payload_keys > 0 then payloads = read_all('HMGET', payload, payload_keys) end
local observers = handed_out > 0 and observing()
if observers and observers.are_there() then
  observers.tell({ name, text(now), text(grace_ms), text(64 + c), again, first, payloads })
end
return { 'ok', text(now), state, next_due < huge and text(next_due) or '', text(poll_at), counts.superseded, counts.expired,
  counts.coalesced, counts.lead, quarantined, counts.dead, c and 64 + c or 0, again, first, payloads, crons }
