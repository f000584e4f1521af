--- Sentences for the user.
local M = {}

---@param message string
---@param level? vim.log.levels
function M.tell(message, level)
  vim.schedule(function()
    vim.notify("dg: " .. message, level or vim.log.levels.INFO)
  end)
end

---@param message string
function M.warn(message)
  M.tell(message, vim.log.levels.WARN)
end

return M
