--- Ghost text by Neovim itself, from 0.12 on.
local server = require("dg.server")
local suggestion = require("dg.suggestion")

local M = {}

local METHOD = "textDocument/inlineCompletion"
---@type table<integer, [integer, integer]> By buffer: the cursor when its latest suggestion was asked for
local asked = {}

---@param buf integer
---@param item vim.lsp.inline_completion.Item
---@return dg.Suggestion
local function converted(buf, item)
  local row, col = suggestion.cursor()
  local at = asked[buf] or { row, col }
  local range = item.range and { item.range:to_extmark() } or { row, col, row, col }
  return {
    text = type(item.insert_text) == "string" and item.insert_text or item.insert_text.value,
    start_row = range[1],
    start_col = range[2],
    end_row = range[3],
    end_col = range[4],
    asked_row = at[1],
    asked_col = at[2],
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

---@param buf integer
---@param enabled boolean
function M.enable(buf, enabled)
  vim.lsp.inline_completion.enable(enabled, { bufnr = buf })
  M.refresh()
end

--- Ask again, where somebody is waiting.
function M.refresh()
  local drawn = completor(vim.api.nvim_get_current_buf())
  if drawn and vim.api.nvim_get_mode().mode:sub(1, 1) == "i" then
    drawn:request(vim.lsp.protocol.InlineCompletionTriggerKind.Automatic)
  end
end

--- Neovim goes on showing what the text has left behind, until another suggestion comes.
---@param buf integer
local function drop_outdated(buf)
  local drawn = completor(buf)
  local item = drawn and drawn.current
  local client = item and vim.lsp.get_client_by_id(item.client_id)
  if client and client.name == server.NAME and not suggestion.rest(buf, converted(buf, item)) then
    drawn.current = nil
    drawn:hide()
  end
end

function M.setup()
  local group = vim.api.nvim_create_augroup("dg.ghost", { clear = true })
  vim.api.nvim_create_autocmd("CursorMovedI", {
    group = group,
    callback = function(event)
      drop_outdated(event.buf)
    end,
  })
  vim.api.nvim_create_autocmd("LspRequest", {
    group = group,
    callback = function(event)
      local request = event.data.request
      local pending = request.type == "pending" and request.method == METHOD
      if pending and event.buf == vim.api.nvim_get_current_buf() then
        asked[event.buf] = { suggestion.cursor() }
      end
    end,
  })
end

---@param portion "all"|"word"|"line"
---@return boolean
function M.accept(portion)
  -- Keys that came together move the cursor without an event between them.
  drop_outdated(vim.api.nvim_get_current_buf())
  -- Neovim's own way replaces the range as it was when asked for, and doubles what was typed since.
  return vim.lsp.inline_completion.get({
    on_accept = function(item)
      local buf = vim.api.nvim_get_current_buf()
      suggestion.take(buf, converted(buf, item), portion)
    end,
  })
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
  if not client or not drawn or drawn:count_items() > 1 then
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
