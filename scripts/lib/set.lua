-- Sets deadlines: the body of track, renew and replace. From ARGV[first] on stand triples id, e, payload.
local function set_deadlines(mode, first)
  local ids, answers, seen, moves = {}, {}, {}, {}
  for i = first, #ARGV, 3 do ids[#ids + 1] = ARGV[i] end
  save_rewound()
  if keyed then keyed.look_at(ids) end                     -- what counts is what the keys say
  local scores, paused = read_all('ZMSCORE', exp, ids), nil
  for k = 1, #ids do
    local id, e_text, bytes = ids[k], ARGV[first + 3 * k - 2], ARGV[first + 3 * k - 1]
    local old_text = seen[id] or canonical(scores[k])
    local e, old = tonumber(e_text), old_text and tonumber(old_text)
    -- No worker has swept it yet. A key is still there at its very expiry.
    local overdue = old and (old + grace_ms < now or not keyed and old + grace_ms == now)
    local living = old and not overdue
    if mode == 'renew' and overdue then                    -- W9: an operator pauses cleanups to save people
      if paused == nil then paused = call('HEXISTS', meta, 'paused:cleanups') == 1 end
      living = paused
    end
    local is_foreign = keyed and keyed.is_foreign(id)
    local is_keyless = keyed and not is_foreign and call('PEXPIRETIME', id) == -2
    if is_foreign then answers[k] = 'foreign'
    elseif is_keyless and mode ~= 'renew' then answers[k] = 'no_key'
    elseif mode == 'renew' and (is_keyless or not living) then
      answers[k] = (old or call('HEXISTS', open, id) == 1) and 'expired' or 'unknown'
    elseif old == e then answers[k] = mode == 'create' and 'exists' or 'unchanged'       -- W2
    elseif mode == 'create' and living then answers[k] = 'exists'
    elseif mode == 'extend_only' and living and e < old then answers[k] = 'kept'
    else
      if living then answers[k] = mode == 'renew' and 'renewed' or 'moved'
      else                                                 -- a new life
        local entry = call('HGET', open, id)
        if entry and not delivers then void_cleanup(id, entry) end
        if overdue and delivers then open_cleanup('0', old_text, id, floor(old) + grace_ms) end
        if payload_size > 0 then call('HDEL', payload, id) end
        if every_size > 0 then call('HDEL', every, id) end
        answers[k] = 'created'
      end
      if e <= now and mode ~= 'renew' then answers[k] = answers[k] .. ':already_expired' end
      if bytes ~= '' then
        call('HSET', payload, id, sub(bytes, 2))
        payload_size = payload_size + 1
      end
      set_leads(id, e_text, old_text)
      if keyed then call('PEXPIREAT', id, e_text) end
      seen[id] = e_text
      moves[#moves + 1] = e_text
      moves[#moves + 1] = id
    end
  end
  if #moves > 0 then write_all('ZADD', exp, moves) end
  return answers
end
