-- The ids are no keys: there is nothing behind them to look at.
local keyed = nil
