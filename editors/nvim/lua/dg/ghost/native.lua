--- Ghost text by Neovim itself, from 0.12 on.
local config = require("dg.config")
local keys = require("dg.keys")
local server = require("dg.server")
local suggestion = require("dg.suggestion")

local M = {}

local METHOD = "textDocument/inlineCompletion"
---@class dg.Requested The cursor when suggestions were requested, and the text after it on its line
---@field col integer
---@field suffix string

---@type table<integer, table<integer|"latest", dg.Requested>> By buffer, and by the version of its text since insert mode began
local asked = {}

---@param buf integer
---@param item vim.lsp.inline_completion.Item
---@return dg.Suggestion
local function converted(buf, item)
  local row, col = suggestion.cursor()
  local known = asked[buf] or {}
  -- An answer may be older than what was asked for last. Our server says which text it was made for.
  local version = vim.tbl_get(item, "command", "arguments", 1, "version")
  local at = known[version] or known.latest or { col = col, suffix = "" }
  local start_row, start_col, end_col = row, col, col
  if item.range then
    start_row, start_col, _, end_col = item.range:to_extmark()
  end
  return {
    text = type(item.insert_text) == "string" and item.insert_text or item.insert_text.value,
    start_row = start_row,
    start_col = start_col,
    suffix = at.suffix,
    replaces = math.max(end_col - at.col, 0),
    command = item.command,
    client_id = item.client_id,
  }
end

--- Neovim asks by itself only after a key, and for one suggestion; it has no public way to ask otherwise.
---@param buf integer
local function completor(buf)
  local found, capability = pcall(require, "vim.lsp._capability")
  return found and vim.tbl_get(capability, "all", "inline_completion", "active", buf) or nil
end

--- Whether a buffer shows suggestions is for all of its servers to use: it is switched on for ours, and never off.
---@param client vim.lsp.Client
---@param buf integer
function M.attach(client, buf)
  if config.current.ghost.enabled then
    vim.lsp.inline_completion.enable(true, { bufnr = buf })
    -- Where that is on already, Neovim takes the client in a little later.
    vim.defer_fn(M.refresh, 0)
  else
    vim.lsp.inline_completion.enable(false, { client_id = client.id })
  end
end

---@param drawn table
local function hide(drawn)
  drawn.current = nil
  drawn:hide()
end

---@param client vim.lsp.Client
---@param buf integer
function M.detach(client, buf)
  local drawn = completor(buf)
  if drawn and drawn.current and drawn.current.client_id == client.id then
    hide(drawn)
  end
end

--- Ask again, where somebody is waiting.
function M.refresh()
  local drawn = completor(vim.api.nvim_get_current_buf())
  if drawn and vim.api.nvim_get_mode().mode:sub(1, 1) == "i" then
    drawn:request(vim.lsp.protocol.InlineCompletionTriggerKind.Automatic)
  end
end

---@param item vim.lsp.inline_completion.Item
---@return boolean
local function is_ours(item)
  local client = vim.lsp.get_client_by_id(item.client_id)
  return client ~= nil and client.name == server.NAME
end

--- Neovim goes on showing a suggestion that the text has moved past, until another suggestion comes.
---@param buf integer
local function drop_outdated(buf)
  local drawn = completor(buf)
  local item = drawn and drawn.current
  if item and is_ours(item) and not suggestion.rest(buf, converted(buf, item)) then
    hide(drawn)
  end
end

function M.setup()
  local group = vim.api.nvim_create_augroup("dg.ghost", { clear = true })
  -- With an open completion menu there is but the last of them.
  vim.api.nvim_create_autocmd({ "CursorMovedI", "TextChangedI", "TextChangedP" }, {
    group = group,
    callback = function(event)
      drop_outdated(event.buf)
    end,
  })
  vim.api.nvim_create_autocmd("InsertLeave", {
    group = group,
    callback = function(event)
      asked[event.buf] = nil
    end,
  })
  vim.api.nvim_create_autocmd("LspRequest", {
    group = group,
    callback = function(event)
      local request = event.data.request
      local pending = request.type == "pending" and request.method == METHOD
      if pending and event.buf == vim.api.nvim_get_current_buf() then
        local _, col = suggestion.cursor()
        local at = { col = col, suffix = vim.api.nvim_get_current_line():sub(col + 1) }
        local known = asked[event.buf] or {}
        known[vim.lsp.util.buf_versions[event.buf]], known.latest = at, at
        asked[event.buf] = known
      end
    end,
  })
end

---@param portion "all"|"word"|"line"
---@return boolean
function M.accept(portion)
  local buf = vim.api.nvim_get_current_buf()
  -- Keys that came together move the cursor without an event between them.
  drop_outdated(buf)
  local drawn = completor(buf)
  -- Neovim's own way replaces the range as it was when asked for, and doubles what was typed since.
  local function take(item)
    local plain = type(item.insert_text) == "string"
    local taken = plain and suggestion.take(buf, converted(buf, item), portion)
    return not taken and portion == "all" and not is_ours(item) and item or nil
  end
  if not drawn then
    return vim.lsp.inline_completion.get({ on_accept = take })
  end
  if not drawn.current then
    return false
  end
  -- It also waits until no key is left that was typed ahead.
  keys.next(function()
    local item = drawn.current
    drawn:abort()
    local others = item and take(item)
    if others then
      drawn:accept(others)
    end
  end)
  return true
end

---@return boolean
function M.dismiss()
  return vim.lsp.inline_completion.get({
    on_accept = function() end,
  })
end

---@param count integer
function M.step(count)
  local buf = vim.api.nvim_get_current_buf()
  local client, drawn = server.client(buf), completor(buf)
  -- What is hidden has its items still.
  if not client or not drawn or (drawn.current and drawn:count_items() > 1) then
    vim.lsp.inline_completion.select({ count = count })
    return
  end
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.context = { triggerKind = vim.lsp.protocol.InlineCompletionTriggerKind.Invoked }
  local tick = vim.api.nvim_buf_get_changedtick(buf)
  local shown = drawn.current ~= nil
  client:request(METHOD, params, function(err, result, context)
    if err or not result or vim.api.nvim_buf_get_changedtick(buf) ~= tick then
      return
    end
    drawn:handler(err, result, context)
    if shown then
      vim.lsp.inline_completion.select({ bufnr = buf, count = count })
    end
  end, buf)
end

return M
