--- Switching suggestions on and off.
local notify = require("dg.notify")
local server = require("dg.server")

local M = {}

---@type table<string, table> What was switched, for servers that start later
local switched = {}

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
  local change = params(buf, scope, enabled)
  local where = scope == "language" and " for this language"
    or scope == "folder" and " in this folder"
    or ""
  client:request("dg/setEnabled", change, function(err)
    if err then
      notify.warn(err.message)
      return
    end
    switched[(change.language or "") .. "\n" .. (change.folder or "")] = change
    for _, other in ipairs(vim.lsp.get_clients({ name = server.NAME })) do
      if other.id ~= client.id then
        other:request("dg/setEnabled", change, function() end)
      end
    end
    client:request("dg/status", { uri = vim.uri_from_bufnr(buf) }, function(_, told)
      local off = enabled and vim.tbl_get(told or {}, "document", "off") or ""
      local here = off == "" and "" or " Here: " .. off
      notify.tell(("Suggestions are %s%s.%s"):format(enabled and "on" or "off", where, here))
    end, buf)
  end, buf)
end

--- What was switched counts for a server that has just started, too.
---@param client vim.lsp.Client
function M.repeat_for(client)
  for _, change in pairs(switched) do
    client:request("dg/setEnabled", change, function() end)
  end
end

--- The settings count from now on.
function M.forget()
  switched = {}
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
      M.set(scope, not told.enabled)
    end
  end, buf)
end

return M
