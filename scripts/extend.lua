-- Makes leases end later; never earlier than they would have.
--
-- ARGV[A + 1]  route     its number, from 1
-- ARGV[A + 2]  lease_ms  from now; then
-- ARGV[A + 3]  tokens
--
-- Returns {"ok", for each: settled | stale | "dropped:<reason>"}, or {"reload"}, {"unconfigured"}
local refused = load_cursors()
if refused then return refused end
read_sizes()
local route, lease_ms, tokens, answers = tonumber(ARGV[A + 1]), tonumber(ARGV[A + 2]), {}, {}
for i = A + 3, #ARGV do tokens[#tokens + 1] = ARGV[i] end
local claims = read_tokens(route, tokens)
for k = 1, #claims do
  local claim = claims[k]
  local state = claim.is_current and is_cleanup(claim.notice) and claim_state(claim) or 'ok'
  if not claim.is_current then answers[k] = 'stale'
  elseif state ~= 'ok' then answers[k] = drop(route, claim, state)
  else
    call('ZADD', due(route), text(max(floor(claim.score), now + lease_ms) + claim.fence / 1024), claim.notice)
    answers[k] = 'settled'
  end
end
return { 'ok', answers }
