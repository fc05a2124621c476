-- Removes deadlines and voids what waits of them, also while it is leased.
--
-- ARGV[A + 1]  ids
--
-- Returns {"ok", for each: removed | voided | unknown | foreign}, or {"reload"}, {"unconfigured"}
local refused = load_cursors()
if refused then return refused end
read_sizes()
call('ZCARD', bad)
if keyed then keyed.check_rights({ unpack(ARGV, A + 1) }) end
local answers = {}
for i = A + 1, #ARGV do answers[#answers + 1] = remove_deadline(ARGV[i]) end
return { 'ok', answers }
