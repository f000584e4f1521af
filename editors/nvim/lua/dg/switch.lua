--- Switching suggestions on and off.
local notify = require("dg.notify")
local server = require("dg.server")

local M = {}

---@param buf integer
---@param scope? "language"|"folder"
---@param enabled boolean
---@return table
local function params(buf, scope, enabled)
  local client = assert(server.client(buf))
  return {
    enabled = enabled,
    language = scope == "language" and client.get_language_id(buf, vim.bo[buf].filetype) or nil,
    folder = scope == "folder" and vim.uri_from_fname(client.root_dir or vim.fn.getcwd()) or nil,
  }
end

---@param scope? "language"|"folder"
---@param enabled boolean
function M.set(scope, enabled)
  local buf = vim.api.nvim_get_current_buf()
  local client = server.client(buf)
  if not client then
    notify.warn("The server is not running here; `:checkhealth dg` says why.")
    return
  end
  client:request("dg/setEnabled", params(buf, scope, enabled), function(err)
    if err then
      notify.warn(err.message)
    else
      local where = scope == "language" and " for this language"
        or scope == "folder" and " in this folder"
        or ""
      notify.tell(("Suggestions are %s%s."):format(enabled and "on" or "off", where))
    end
  end, buf)
end

---@param scope? "language"|"folder"
function M.toggle(scope)
  local buf = vim.api.nvim_get_current_buf()
  local client = server.client(buf)
  if not client then
    M.set(scope, true)
    return
  end
  client:request("dg/status", { uri = vim.uri_from_bufnr(buf) }, function(err, told)
    if err then
      notify.warn(err.message)
    else
      M.set(scope, told.document.off ~= "")
    end
  end, buf)
end

return M
