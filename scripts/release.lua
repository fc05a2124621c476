-- Gives claims back unhandled: ready at once for another worker, no attempt burnt.
--
-- ARGV[A + 1]  route   its number, from 1; then
-- ARGV[A + 2]  tokens
--
-- Returns {"ok", for each: settled | stale | "dropped:<reason>"}, or {"reload"}, {"unconfigured"}
local refused = load_cursors()
if refused then return refused end
read_sizes()
local route, tokens, answers = tonumber(ARGV[A + 1]), {}, {}
for i = A + 2, #ARGV do tokens[#tokens + 1] = ARGV[i] end
local claims = read_tokens(route, tokens)
for k = 1, #claims do
  local claim = claims[k]
  local state = claim.is_current and claim_state(claim)
  if not claim.is_current then answers[k] = 'stale'
  elseif state ~= 'ok' then answers[k] = drop(route, claim, state)
  else
    call('ZADD', due(route), due_score(now, claim.n, 0), claim.notice)
    comes_due(now)
    answers[k] = 'settled'
  end
end
wake(route)
return { 'ok', answers }
