-- P0, the common renewal: every id alive, old and new e outside every lead and ahead of every cursor, and none earlier
-- than before, which might have to wake somebody. Then a set is a ZADD. Anything else goes on to the rest of the script; nothing is written yet. Stands before any further closure.
-- ARGV[A + 1] mode, then triples id, e, payload
do
  local mode, read = ARGV[A + 1], call('HMGET', cur, 'v', unpack(lead_texts))
  local plain = read[1] == version and (mode == 'renew' or mode == 'upsert')
  local far = now + (lead_count > 0 and tonumber(lead_texts[lead_count]) or 0) + tolerance_ms
  for i = 1, plain and lead_count or 0 do                  -- a cursor beyond this: the clock stepped back (C4)
    local stored = read[i + 1]
    local score = stored and (tonumber(stored) or tonumber(stored:match('^%S+')))
    if score and score > now + tonumber(lead_texts[i]) + tolerance_ms then plain = false end
  end
  if plain then
    local ids, seen, answers, moves = {}, {}, {}, {}
    for i = A + 2, #ARGV, 3 do
      local id = ARGV[i]
      if seen[id] then plain = false end
      seen[id] = true
      ids[#ids + 1] = id
    end
    local scores, moved = plain and call('ZMSCORE', exp, unpack(ids)), mode == 'renew' and 'renewed' or 'moved'
    for k = 1, plain and #ids or 0 do
      local e_text, old = ARGV[A + 3 * k], tonumber(scores[k] or 0)
      local e = tonumber(e_text)
      if old <= far or e < old or ARGV[A + 3 * k + 1] ~= '' then plain = false; break end
      if e == old then answers[k] = 'unchanged'
      else
        answers[k] = moved
        moves[#moves + 1] = e_text
        moves[#moves + 1] = ids[k]
      end
    end
    if plain then
      if #moves > 0 then call('ZADD', exp, unpack(moves)) end
      return { 'ok', answers }
    end
  end
end
