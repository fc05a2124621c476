-- What a resume with a rate holds back, until what gathered during the pause is worked off (R2). catch-up in meta is JSON: for
-- "<class>" of the namespace and "<route>:<class>" of a queue the texts of the rate a second, of the instant up to which it is
-- used, and of that before which it does not end.
-- Made only where it is needed: most claims find no limit, and functions cost time to make.
local function catching_up()
  local catch_up = {}
  catch_up.SAVED_MS = 1000                                 -- what is not used so long lapses; workers look that often
  local STEP_MS = 50                                         -- a worker need not come for less than goes in this time
  local LOOKED_AT = 1000                                     -- entries of a queue from which those are picked that may go
  local limits, are_limits_old = {}, false
  function catch_up.load(json) if json then limits = cjson.decode(json) end end

  -- The limit of a class, or nothing; room: how many may go now; left: how many must wait.
  local function limit_of(scope)
    local stored = limits[scope]
    if not stored then return nil end
    local rate, used = tonumber(stored[1]), min(now, max(tonumber(stored[2]), now - catch_up.SAVED_MS))
    local ends = tonumber(stored[3])
    return { scope = scope, rate = rate, used = used, room = floor((now - used) * rate / 1000 + 0.001), left = 0,
      may_end = ends <= now or ends > now + catch_up.SAVED_MS, has_stepped_back = tonumber(stored[2]) > now }
  end

  -- The limits of a claim: of what is swept, and of the queue where one of its classes has any and is not paused.
  function catch_up.limits_of(json, route, hands_reminders, hands_cleanups)
    catch_up.load(json)
    local slow = { reminders = limit_of('reminders'), cleanups = limit_of('cleanups') }
    local queue = { reminders = hands_reminders and limit_of(route .. ':reminders'),
      cleanups = hands_cleanups and limit_of(route .. ':cleanups') }
    if queue.reminders or queue.cleanups then slow.queue = queue end
    return slow
  end

  -- How many of `count` may go.
  function catch_up.allowed(limit, count)
    if not limit then return count end
    limit.left = max(0, count - limit.room)
    return count - limit.left
  end

  local function class_of(slow, notice)
    if is_cleanup(notice) then return slow.cleanups end
    return slow.reminders
  end

  -- What of a queue may go, of what is due: notices and scores in turn.
  function catch_up.allowed_in(queue, due_limit, slow)
    local found, kept = call('ZRANGEBYSCORE', queue, '-inf', due_limit, 'WITHSCORES', 'LIMIT', 0, LOOKED_AT), {}
    for j = 1, #found, 2 do
      local limit = class_of(slow, found[j])
      if limit and limit.room < 1 then limit.left = limit.left + 1
      else
        if limit then limit.room = limit.room - 1 end
        kept[#kept + 1] = found[j]
        kept[#kept + 1] = found[j + 1]
      end
    end
    local is_all = #found < 2 * LOOKED_AT
    for _, class in ipairs({ 'reminders', 'cleanups' }) do
      if slow[class] then slow[class].may_end = slow[class].may_end and is_all end
    end
    return kept
  end

  function catch_up.set(scope, stored)
    limits[scope], are_limits_old = stored, true
  end
  function catch_up.save()
    if not are_limits_old then return end
    if next(limits) then call('HSET', meta, 'catch-up', cjson.encode(limits)) else call('HDEL', meta, 'catch-up') end
  end

  -- So many went: a limit that holds nothing back is over.
  local function charge(limit, taken)
    if not limit then return end
    limit.used = limit.used + taken * 1000 / limit.rate
    if limit.left == 0 and limit.may_end then catch_up.set(limit.scope, nil)
    elseif taken > 0 or limit.has_stepped_back then
      catch_up.set(limit.scope, { text(limit.rate), text(limit.used), limits[limit.scope][3] })
    end
  end
  -- A claim has taken its shares, and of the queue the first of those that were picked.
  function catch_up.charge(slow, share, picked)
    charge(slow.reminders, share[2])
    charge(slow.cleanups, share[3])
    if slow.queue then
      local cleanups, all = 0, min(share[1], #picked / 2)
      for j = 1, 2 * all, 2 do if is_cleanup(picked[j]) then cleanups = cleanups + 1 end end
      charge(slow.queue.reminders, all - cleanups)
      charge(slow.queue.cleanups, cleanups)
    end
    catch_up.save()
  end

  function catch_up.holds(limit) return limit and limit.left > 0 end
  function catch_up.holds_any(slow) return catch_up.holds(slow.reminders) or catch_up.holds(slow.cleanups) end
  function catch_up.first_from(queue, score)
    return tonumber(call('ZRANGEBYSCORE', queue, text(score), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or nil) or huge
  end

  -- When the next of those that are held back may go, together with as many as go in STEP_MS.
  function catch_up.goes_on_at(slow)
    local earliest = slow.queue and catch_up.goes_on_at(slow.queue) or huge
    for _, limit in ipairs({ slow.reminders or {}, slow.cleanups or {} }) do
      if limit.left and limit.left > 0 then
        local step = min(limit.left, max(1, floor(limit.rate * STEP_MS / 1000)))
        earliest = min(earliest, math.ceil(limit.used + step * 1000 / limit.rate))
      end
    end
    return earliest
  end
  return catch_up
end
