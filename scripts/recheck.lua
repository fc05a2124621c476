-- Checks claims once more before their handlers run; what is no longer valid is dropped (W8, D3).
--
-- ARGV[A + 1]  route   its number, from 1; then
-- ARGV[A + 2]  tokens
--
-- Returns {"ok", for each: current | stale | "dropped:<reason>"}, or {"reload"}, {"unconfigured"}
local refused = load_cursors()
if refused then return refused end
read_sizes()
local route, tokens, answers = tonumber(ARGV[A + 1]), {}, {}
for i = A + 2, #ARGV do tokens[#tokens + 1] = ARGV[i] end
local claims = read_tokens(route, tokens)
for k = 1, #claims do
  local claim = claims[k]
  local state = claim.is_current and claim_state(claim)
  if keyed and state == 'ok' and not keyed.confirms(claim.notice, claim.id, claim.armed, claim.entry) then state = 'superseded' end
  if not claim.is_current then answers[k] = 'stale'
  elseif state ~= 'ok' then answers[k] = drop(route, claim, state)
  else answers[k] = 'current' end
end
wake()
return { 'ok', answers }
