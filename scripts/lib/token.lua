-- Reads a batch of tokens "<n*64+c>:<notice>" and what the store says of each.
local function read_tokens(route, tokens)
  local claims, notices, ids = {}, {}, {}
  for i = 1, #tokens do
    local colon = find(tokens[i], ':', 1, true)
    local claim = { fence = tonumber(sub(tokens[i], 1, colon - 1)), notice = sub(tokens[i], colon + 1) }
    claim.kind, claim.e, claim.id = split(claim.notice)
    claims[i], notices[i], ids[i] = claim, claim.notice, claim.id
  end
  local scores, armed, entries = read_all('ZMSCORE', due(route), notices), read_all('ZMSCORE', exp, ids), read_all('HMGET', open, ids)
  for i = 1, #claims do
    local claim, score = claims[i], scores[i] and tonumber(scores[i])
    claim.score, claim.armed, claim.entry = score, armed[i], entries[i]
    claim.is_current = score and claim.fence % 64 ~= 0 and fence_of(score) == claim.fence
    claim.n = floor(claim.fence / 64)
  end
  return claims
end
local function claim_state(claim)
  if is_cleanup(claim.notice) then return cleanup_state(claim.kind, claim.e, claim.armed, claim.entry) end
  return reminder_state(claim.kind, claim.e, claim.armed)
end
local function drop(route, claim, reason)
  void(route, claim.notice, reason)
  if is_cleanup(claim.notice) then close_if_last(claim.notice, claim.id, claim.entry) end
  call('HINCRBY', meta, 'count:' .. reason, 1)
  return 'dropped:' .. reason
end
