--- The next edit: what else follows from the last change, shown at its place, a key away.
local config = require("dg.config")
local guard = require("dg.guard")
local keys = require("dg.keys")
local server = require("dg.server")

local M = {}

local METHOD = "textDocument/copilotInlineEdit"
local AUTOMATIC, INVOKED = 2, 1
local namespace = vim.api.nvim_create_namespace("dg.next_edit")
local hints = vim.api.nvim_create_namespace("dg.next_edit.hint")
local group = vim.api.nvim_create_augroup("dg.next_edit", { clear = true })
local timer = assert(vim.uv.new_timer())

---@class dg.NextPlace Where the extmark `id` stands, `text` could; the mark moves with what is accepted before it
---@field buf integer
---@field id integer
---@field new integer The mark of what is drawn of the text
---@field text string

---@class dg.NextEdit
---@field client vim.lsp.Client
---@field command? lsp.Command Of the first place, as long as that is not accepted
---@field dismissal any[] What tells the server which edit it was
---@field places dg.NextPlace[] The next one first

---@type dg.NextEdit?
local shown
---@type table<integer, integer> By buffer: its changedtick when all that is shown, or asked for, was right
local ticks = {}
---@type { client: vim.lsp.Client, id: integer }?
local under_way

local function cancel()
  timer:stop()
  if under_way then
    under_way.client:cancel_request(under_way.id)
    under_way = nil
  end
end

---@return integer[] buffers That something is shown in, the current one among them
local function concerned()
  local found = { vim.api.nvim_get_current_buf() }
  for _, place in ipairs(shown and shown.places or {}) do
    if not vim.list_contains(found, place.buf) then
      found[#found + 1] = place.buf
    end
  end
  return found
end

local function clear()
  cancel()
  keys.unmap_next_edit()
  shown = nil
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
    vim.api.nvim_buf_clear_namespace(buf, hints, 0, -1)
  end
end

---@param place dg.NextPlace
---@return integer start_row
---@return integer start_col
---@return integer end_row
---@return integer end_col
local function span(place)
  local mark = vim.api.nvim_buf_get_extmark_by_id(place.buf, namespace, place.id, { details = true })
  return mark[1], mark[2], mark[3].end_row, mark[3].end_col
end

--- What is off screen is shown at the edge behind which it lies.
local function hint()
  local buf = vim.api.nvim_get_current_buf()
  vim.api.nvim_buf_clear_namespace(buf, hints, 0, -1)
  local place = shown and shown.places[1]
  if not place then
    return
  end
  local row = span(place)
  local first, last = vim.fn.line("w0") - 1, vim.fn.line("w$") - 1
  local where, at
  if place.buf ~= buf then
    local name = vim.fs.basename(vim.api.nvim_buf_get_name(place.buf))
    where, at = ("→ %s:%d"):format(name, row + 1), last
  elseif row < first then
    where, at = ("↑ line %d"):format(row + 1), first
  elseif row > last then
    where, at = ("↓ line %d"):format(row + 1), last
  else
    return
  end
  local key = keys.chosen().next_edit or ":Dg next_edit"
  vim.api.nvim_buf_set_extmark(buf, hints, at, 0, {
    virt_text = { { (" %s %s "):format(where, key), "DgNextHint" } },
    virt_text_pos = "right_align",
  })
end

---@param edit { text: string, range: lsp.Range, textDocument: { uri: string, version: integer } }
---@param encoding string
---@return dg.NextPlace? place Nil where the text has changed meanwhile, or is not at hand
local function draw(edit, encoding)
  local buf = vim.iter(vim.api.nvim_list_bufs()):find(function(one)
    return vim.api.nvim_buf_is_loaded(one) and vim.uri_from_bufnr(one) == edit.textDocument.uri
  end)
  if
    not buf
    or guard.read_only(buf)
    or vim.lsp.util.buf_versions[buf] ~= edit.textDocument.version
  then
    return nil
  end
  local function at(position)
    local line = vim.api.nvim_buf_get_lines(buf, position.line, position.line + 1, false)[1]
    if line then
      return position.line, vim.str_byteindex(line, encoding, position.character, false)
    end
    -- After the last line.
    local last = vim.api.nvim_buf_line_count(buf) - 1
    return last, #vim.api.nvim_buf_get_lines(buf, last, last + 1, false)[1]
  end
  local row, col = at(edit.range.start)
  local end_row, end_col = at(edit.range["end"])
  local lines = vim.tbl_map(function(line)
    return { { line, "DgNew" } }
  end, vim.split(edit.text, "\n", { plain = true }))
  local id = vim.api.nvim_buf_set_extmark(buf, namespace, row, col, {
    end_row = end_row,
    end_col = end_col,
    hl_group = "DgStruck",
    priority = 250,
  })
  local new = vim.api.nvim_buf_set_extmark(buf, namespace, end_row, end_col, {
    virt_text = lines[1],
    virt_text_pos = "inline",
    virt_lines = #lines > 1 and vim.list_slice(lines, 2) or nil,
  })
  ticks[buf] = vim.api.nvim_buf_get_changedtick(buf)
  return { buf = buf, id = id, new = new, text = edit.text }
end

---@param client vim.lsp.Client
---@param edit table
local function show(client, edit)
  clear()
  local places = {}
  for _, each in ipairs({ edit, unpack(edit.linked or {}) }) do
    local place = draw(each, client.offset_encoding)
    if not place then
      clear()
      return
    end
    places[#places + 1] = place
  end
  shown = {
    client = client,
    command = edit.command,
    dismissal = edit.command and edit.command.arguments or {},
    places = places,
  }
  keys.map_next_edit(concerned())
  hint()
  client:notify("textDocument/didShowInlineEdit", { item = { command = edit.command } })
end

---@param kind integer
local function ask(kind)
  local buf = vim.api.nvim_get_current_buf()
  local client = server.client(buf)
  if not client or guard.read_only(buf) then
    return
  end
  cancel()
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.textDocument.version = vim.lsp.util.buf_versions[buf]
  params.context = { triggerKind = kind }
  local tick = vim.api.nvim_buf_get_changedtick(buf)
  local _, id = client:request(METHOD, params, function(err, result)
    under_way = nil
    local edit = not err and result and result.edits and result.edits[1]
    local same = vim.api.nvim_get_current_buf() == buf
      and vim.api.nvim_buf_get_changedtick(buf) == tick
    if edit and same then
      show(client, edit)
    elseif kind == INVOKED and not err then
      require("dg.notify").tell("Nothing follows from the last change.")
    end
  end, buf)
  under_way = id and { client = client, id = id } or nil
end

---@return boolean
local function asks_by_itself()
  return config.current.next_edit.enabled and (config.current.settings.next_edit or "auto") == "auto"
end

---@param buf integer
local function changed(buf)
  local tick = vim.api.nvim_buf_get_changedtick(buf)
  if ticks[buf] == tick then
    return
  end
  ticks[buf] = tick
  clear()
  if asks_by_itself() then
    timer:start(
      config.current.next_edit.debounce_ms,
      0,
      vim.schedule_wrap(function()
        if vim.api.nvim_get_current_buf() == buf then
          ask(AUTOMATIC)
        end
      end)
    )
  end
end

---@param buf integer
---@param on boolean
function M.enable(buf, on)
  vim.api.nvim_clear_autocmds({ group = group, buffer = buf })
  if not on then
    clear()
    ticks[buf] = nil
    return
  end
  ticks[buf] = vim.api.nvim_buf_get_changedtick(buf)
  vim.api.nvim_create_autocmd({ "TextChanged", "TextChangedI", "TextChangedP" }, {
    group = group,
    buffer = buf,
    callback = function()
      changed(buf)
    end,
  })
  vim.api.nvim_create_autocmd({ "CursorMoved", "CursorMovedI", "WinScrolled", "BufEnter" }, {
    group = group,
    buffer = buf,
    callback = hint,
  })
  vim.api.nvim_create_autocmd("BufUnload", { group = group, buffer = buf, callback = clear })
end

---@param place dg.NextPlace
local function jump(place)
  local row, col = span(place)
  vim.cmd("normal! m'")
  vim.api.nvim_win_set_buf(0, place.buf)
  vim.api.nvim_win_set_cursor(0, { row + 1, col })
  vim.cmd("normal! zv")
  hint()
end

--- Put the text of some places into their buffers. Each buffer can undo its own in one step.
---@param places dg.NextPlace[]
local function put(places)
  vim.cmd("let &g:undolevels = &g:undolevels")
  for _, place in ipairs(places) do
    local row, col, end_row, end_col = span(place)
    local lines = vim.split(place.text, "\n", { plain = true })
    vim.api.nvim_buf_del_extmark(place.buf, namespace, place.id)
    vim.api.nvim_buf_del_extmark(place.buf, namespace, place.new)
    vim.api.nvim_buf_set_text(place.buf, row, col, end_row, end_col, lines)
    ticks[place.buf] = vim.api.nvim_buf_get_changedtick(place.buf)
  end
end

---@param held dg.NextEdit
---@param all boolean
local function tell(held, all)
  local command = vim.deepcopy(held.command)
  if command then
    if all and command.arguments and type(command.arguments[1]) == "table" then
      command.arguments[1].all = true
    end
    held.client:exec_cmd(command, { bufnr = held.places[1].buf })
  end
end

--- After the last place the next one is requested.
local function go_on()
  clear()
  if asks_by_itself() then
    ask(AUTOMATIC)
  end
end

local function take()
  local held = assert(shown)
  local place = held.places[1]
  local row, col = span(place)
  put({ place })
  local lines = vim.split(place.text, "\n", { plain = true })
  local last = #lines == 1 and col + #lines[1] or #lines[#lines]
  vim.api.nvim_win_set_cursor(0, { row + #lines, last })
  tell(held, false)
  held.command = nil
  table.remove(held.places, 1)
  if #held.places == 0 then
    go_on()
    return
  end
  hint()
end

--- Whether something is shown, and stands to the text as it did. Keys that came together change it without an event.
---@return boolean
local function is_right()
  return shown ~= nil
    and vim.iter(shown.places):all(function(place)
      return ticks[place.buf] == vim.api.nvim_buf_get_changedtick(place.buf)
    end)
end

---@return boolean
function M.is_shown()
  return shown ~= nil
end

--- Jump to the next edit; where the cursor is on its line already, accept it. False where none is shown.
---@return boolean
function M.accept()
  if not is_right() then
    return false
  end
  local place = shown.places[1]
  keys.next(function()
    if shown and shown.places[1] == place then
      local row = vim.api.nvim_win_get_cursor(0)[1] - 1
      if vim.api.nvim_get_current_buf() == place.buf and row == span(place) then
        take()
      else
        jump(place)
      end
    end
  end)
  return true
end

--- Accept the next edit with all places that follow it, wherever they are. False where none is shown.
---@return boolean
function M.accept_all()
  if not is_right() then
    return false
  end
  keys.next(function()
    local held = shown
    if held then
      put(held.places)
      tell(held, true)
      go_on()
    end
  end)
  return true
end

--- Do not show this edit again. False where none is shown.
---@return boolean
function M.dismiss()
  local held = shown
  if not held then
    return false
  end
  vim.schedule(clear)
  held.client:exec_cmd({
    title = "Dismiss",
    command = "dg.dismissEdit",
    arguments = held.dismissal,
  }, { bufnr = held.places[1].buf })
  return true
end

--- Ask for the next edit now.
function M.ask()
  clear()
  ask(INVOKED)
end

return M
