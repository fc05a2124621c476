-- Key-backed ids: each id is a key of somebody else's, and that key's own TTL is the truth. What its score says is
-- compared with the key before anything is handed out and corrected where it differs: a resync, which is a renewal (W3).
-- The keys are not declared, which a single server allows.
local keyed = {}
do
  local rules = cjson.decode(keyed_rules)                  -- on_gone, then the patterns, each a list of what follows on each other
  local own, registry = sub(exp, 1, find(exp, ':', 1, true)), sub(exp, 2, find(exp, ':', 1, true)) .. 'namespaces'
  local LAST_EXPIRY = 1e14                                 -- what is later would be quarantined, and its id forgotten
  local SEEN_GONE_MS = 1000                                -- a key that is only being rewritten is back by then

  -- Only ids that match a pattern are ever read, and never keys of our own.
  function keyed.is_foreign(id)
    if sub(id, 1, #own) == own or id == registry then return true end
    for i = 2, #rules do
      local segments, at = rules[i], 1
      for k = 1, #segments do
        local first, last = find(id, segments[k], at)
        at = first and last + 1
        if not first then break end
      end
      if at then return false end
    end
    return #rules > 1
  end

  -- Whose rights do not reach to a key learns nothing of it, and nothing is guessed or half done.
  local function expiry_of(id)
    local at = redis.pcall('PEXPIRETIME', id)
    if type(at) ~= 'number' then
      error({ err = 'NOPERM no right to read the keys behind the ids: grant +pexpiretime and %R~ with their pattern' })
    end
    return at
  end
  function keyed.check_rights(ids)
    for k = 1, #ids do
      -- A foreign id is refused for what it is, whatever the rights.
      local may = keyed.is_foreign(ids[k]) or redis.acl_check_cmd('PEXPIREAT', ids[k], '1') and redis.acl_check_cmd('UNLINK', ids[k])
      if not may then
        error({ err = 'NOPERM no right to change the keys behind the ids: grant +pexpireat +unlink and ~ with their pattern' })
      end
    end
  end

  local function count(what) call('HINCRBY', meta, 'count:' .. what, 1) end
  -- What ends here was a life, so what an earlier one left open is void (W5).
  local function void_earlier(id)
    local entry = call('HGET', open, id)
    if entry and not delivers then void_cleanup(id, entry) end
  end
  local function disarm(id, e_text)
    void_reminders(id, e_text)
    call('ZREM', exp, id)
    if every_size > 0 then call('HDEL', every, id) end
  end

  local function set(id, at, old_text)
    at = min(at, LAST_EXPIRY)
    save_rewound()
    set_leads(id, text(at), old_text, true)
    call('ZADD', exp, text(at), id)
  end

  -- Compares the score of an armed id with its key. Returns
  --   same   nothing to correct          over       the key is away as it should be: its cleanup is due
  --   moved  the score was corrected     persisted  the key has no TTL: disarmed
  --   gone   it vanished early: disarmed, its cleanup opened
  --   held   its cleanup is due, and the key is still there for this millisecond
  function keyed.look(id, e_text)
    local e, at = tonumber(e_text), expiry_of(id)
    local is_due = e + grace_ms < now
    if at == e then return is_due and 'held' or 'same' end
    if at >= 0 then
      set(id, at, e_text)
      count('resynced')
      return 'moved'
    elseif at == -1 then
      void_earlier(id)
      if payload_size > 0 then call('HDEL', payload, id) end
      disarm(id, e_text)
      count('persisted')
      return 'persisted'
    elseif is_due then return 'over'
    elseif e <= now then return 'same' end                 -- in its grace
    void_earlier(id)
    if rules[1] == 'cleanup' then open_cleanup('0g', e_text, id, now + max(grace_ms, SEEN_GONE_MS))
    elseif payload_size > 0 then call('HDEL', payload, id) end
    disarm(id, e_text)
    count('gone')
    return 'gone'
  end

  -- Before a command of the caller's: what the keys of these ids say counts.
  function keyed.look_at(ids)
    keyed.check_rights(ids)
    for k = 1, #ids do
      local e_text = not keyed.is_foreign(ids[k]) and canonical(call('ZSCORE', exp, ids[k]))
      if e_text then keyed.look(ids[k], e_text) end
    end
  end

  local function was_handed_to_somebody(notice)
    for route = 1, route_count do
      if wants(route, CLEANUP) then
        local score = call('ZSCORE', due(route), notice)
        if not score or fence_of(tonumber(score)) > 0 then return true end             -- not there: settled already
      end
    end
    return false
  end

  -- A notice that is to be handed out, and is valid by what the store knows. Returns whether its key agrees; where not, it
  -- has been taken out. armed: the score of its id, entry: what open holds for it.
  function keyed.confirms(notice, id, armed, entry)
    local kind, e_text = split(notice)
    if keyed.is_foreign(id) then return true end           -- the patterns have changed since it was created
    if not is_cleanup(notice) then return keyed.look(id, canonical(armed)) == 'same' end
    local at = expiry_of(id)
    -- Where lives own resources of their own, the key of a new life says nothing of an old one, unless that only seemed gone.
    if at == -2 or delivers and (kind ~= '0g' or was_handed_to_somebody(notice)) then return true end
    for route = 1, route_count do void(route, notice) end
    if names(entry, kind .. ':' .. e_text) then call('HDEL', open, id) end
    if payload_size > 0 then call('HDEL', payload, notice) end
    if at >= 0 and not armed then set(id, at) end
    return false
  end
end
