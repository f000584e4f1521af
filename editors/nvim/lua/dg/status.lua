--- How things stand, as the server tells it; for a status line.
local M = {}

---@class dg.Status
---@field state "starting"|"loading"|"ready"|"busy"|"off"|"error"|"stopped"
---@field percent? number
---@field message? string
---@field server? string
---@field adapter? string

---@type dg.Status
M.current = { state = "stopped" }

local SIGNS = {
  starting = "…",
  loading = "…",
  ready = "",
  busy = "↻",
  off = "off",
  error = "!",
  stopped = "-",
}

---@param status dg.Status
function M.set(status)
  M.current = status
  vim.api.nvim_exec_autocmds("User", { pattern = "DgStatus", modeline = false })
  vim.cmd.redrawstatus({ bang = true })
end

--- A few characters for a status line.
---@return string
function M.line()
  local status = M.current
  -- A percentage that is not known comes as vim.NIL.
  local known = status.state == "loading" and type(status.percent) == "number"
  local sign = known and ("%d%%%%"):format(status.percent) or SIGNS[status.state] or status.state
  local name = sign == "" and "dg" or "dg " .. sign
  -- Where text goes, if it leaves the machine.
  local host = (status.server or ""):gsub("^%a+://", "")
  return host == "" and name or ("%s → %s"):format(name, host)
end

return M
