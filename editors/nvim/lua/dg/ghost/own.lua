--- Ghost text for Neovim 0.11, which has none of its own.
local config = require("dg.config")
local keys = require("dg.keys")
local server = require("dg.server")
local suggestion = require("dg.suggestion")

local M = {}

local METHOD = "textDocument/inlineCompletion"
local AUTOMATIC, INVOKED = 2, 1
local namespace = vim.api.nvim_create_namespace("dg.ghost")
local group = vim.api.nvim_create_augroup("dg.ghost", { clear = true })
local timer = assert(vim.uv.new_timer())

---@class dg.Shown
---@field buf integer
---@field items dg.Suggestion[]
---@field index integer

---@type dg.Shown?
local shown
---@type table<integer, true>
local enabled = {}
---@type { client: vim.lsp.Client, id: integer }?
local under_way

local function clear()
  for buf in pairs(enabled) do
    if vim.api.nvim_buf_is_valid(buf) then
      vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
    end
  end
end

---@return dg.Suggestion?
local function current()
  return shown and shown.buf == vim.api.nvim_get_current_buf() and shown.items[shown.index] or nil
end

local function draw()
  clear()
  local held = current()
  local rest = held and suggestion.rest(shown.buf, held)
  if not rest then
    shown = nil
    return
  end
  local row, col = suggestion.cursor()
  local lines = vim.split(rest, "\n", { plain = true })
  local virtual = vim.tbl_map(function(line)
    return { { line, "DgGhost" } }
  end, lines)
  if #shown.items > 1 then
    table.insert(virtual[#virtual], { (" (%d/%d)"):format(shown.index, #shown.items), "DgHint" })
  end
  vim.api.nvim_buf_set_extmark(shown.buf, namespace, row, col, {
    virt_text = virtual[1],
    virt_lines = #virtual > 1 and vim.list_slice(virtual, 2) or nil,
    virt_text_pos = "inline",
    hl_mode = "combine",
  })
end

local function cancel()
  timer:stop()
  if under_way then
    under_way.client:cancel_request(under_way.id)
    under_way = nil
  end
end

---@param client vim.lsp.Client
---@param item lsp.InlineCompletionItem
---@param row integer Of the cursor, in the text as it is
---@param col integer
---@param line string
---@return dg.Suggestion
local function converted(client, item, row, col, line)
  -- On the cursor's line, as all of the server's.
  local range = item.range
  local function column(position)
    return vim.str_byteindex(line, client.offset_encoding, position.character, false)
  end
  return {
    text = type(item.insertText) == "string" and item.insertText or item.insertText.value,
    start_row = row,
    start_col = range and column(range.start) or col,
    suffix = line:sub(col + 1),
    replaces = range and math.max(column(range["end"]) - col, 0) or 0,
    command = item.command,
    client_id = client.id,
  }
end

---@param kind integer
---@param index? integer
local function ask(kind, index)
  local buf = vim.api.nvim_get_current_buf()
  local client = server.client(buf)
  if not client or not enabled[buf] then
    return
  end
  cancel()
  local row, col = suggestion.cursor()
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.context = { triggerKind = kind }
  local tick = vim.api.nvim_buf_get_changedtick(buf)
  local _, id = client:request(METHOD, params, function(err, result)
    under_way = nil
    local stale = vim.api.nvim_get_current_buf() ~= buf
      or vim.api.nvim_buf_get_changedtick(buf) ~= tick
    if err or stale or vim.api.nvim_get_mode().mode:sub(1, 1) ~= "i" then
      return
    end
    local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1]
    local items = vim.tbl_map(function(item)
      return converted(client, item, row, col, line)
    end, result and (result.items or result) or {})
    shown =
      { buf = buf, items = items, index = #items > 0 and ((index or 1) - 1) % #items + 1 or 1 }
    draw()
  end, buf)
  under_way = id and { client = client, id = id } or nil
end

---@param buf integer
function M.detach(_, buf)
  vim.api.nvim_clear_autocmds({ group = group, buffer = buf })
  M.dismiss()
  enabled[buf] = nil
end

---@param buf integer
function M.attach(_, buf)
  M.detach(_, buf)
  if not config.current.ghost.enabled then
    return
  end
  enabled[buf] = true
  vim.api.nvim_create_autocmd({ "InsertEnter", "CursorMovedI", "TextChangedI", "TextChangedP" }, {
    group = group,
    buffer = buf,
    callback = function()
      draw()
      timer:start(config.current.ghost.debounce_ms, 0, vim.schedule_wrap(M.refresh))
    end,
  })
  vim.api.nvim_create_autocmd({ "InsertLeave", "BufLeave" }, {
    group = group,
    buffer = buf,
    callback = function()
      M.dismiss()
    end,
  })
  M.refresh()
end

--- Ask again, where somebody is waiting.
function M.refresh()
  if vim.api.nvim_get_mode().mode:sub(1, 1) == "i" then
    ask(AUTOMATIC)
  end
end

function M.setup()
  vim.api.nvim_set_hl(0, "DgGhost", { default = true, link = "Comment" })
end

---@param portion "all"|"word"|"line"
---@return boolean
function M.accept(portion)
  local held, buf = current(), vim.api.nvim_get_current_buf()
  if not held or not suggestion.rest(buf, held) then
    return false
  end
  keys.next(function()
    if current() == held then
      clear()
      suggestion.take(buf, held, portion)
    end
  end)
  return true
end

---@return boolean
function M.dismiss()
  local held = current() ~= nil
  cancel()
  clear()
  shown = nil
  return held
end

---@param count integer
function M.step(count)
  if shown and #shown.items > 1 then
    shown.index = (shown.index - 1 + count) % #shown.items + 1
    draw()
  else
    ask(INVOKED, shown and 1 + count or 1)
  end
end

return M
