--- Rewriting a range, mending it, filling at the cursor: ask, show the canvas settle, offer what came.
local config = require("dg.config")
local guard = require("dg.guard")
local notify = require("dg.notify")
local preview = require("dg.preview")
local server = require("dg.server")
local working = require("dg.working")

local M = {}

---@type { client: vim.lsp.Client, id: integer, token: string, buf: integer }?
local under_way
local asked = 0

---@param client vim.lsp.Client
---@param command string
---@return boolean
local function offers(client, command)
  local commands = vim.tbl_get(client, "server_capabilities", "executeCommandProvider", "commands")
    or {}
  return vim.list_contains(commands, command)
end

---@param place dg.Place
---@param encoding string
---@return lsp.Range
local function range_of(place, encoding)
  local function position(row, col)
    local line = vim.api.nvim_buf_get_lines(place.buf, row, row + 1, false)[1] or ""
    return { line = row, character = vim.str_utfindex(line, encoding, math.min(col, #line), false) }
  end
  return {
    start = position(place.start_row, place.start_col),
    ["end"] = position(place.end_row, place.end_col),
  }
end

---@param buf integer
---@param command string
---@return vim.lsp.Client?
---@return string? why
local function ready(buf, command)
  local why = guard.read_only(buf)
  if why then
    return nil, why
  end
  local client = server.client(buf)
  if not client then
    return nil, guard.refused[buf] or "The server is not running here; `:checkhealth dg` says why."
  end
  if not offers(client, command) then
    return nil, ("This dg-lsp can't do %s; upgrade it."):format(command)
  end
  return client
end

--- Ask for proposals. `what` names the work; `arguments` are those of the command beside uri and draftToken; `others`
--- asks for other ones, and `before` is shown again where there are none.
---@param command string
---@param what string
---@param place dg.Place
---@param arguments fun(range: lsp.Range): table
---@param others dg.Others?
---@param before dg.Candidate[]?
local function ask(command, what, place, arguments, others, before)
  M.cancel()
  preview.close()
  local buf = place.buf
  local client, why = ready(buf, command)
  if not client then
    notify.warn(why --[[@as string]])
    return
  end
  asked = asked + 1
  local token = ("dg-%d-%d"):format(vim.fn.getpid(), asked)
  local argument = arguments(range_of(place, client.offset_encoding))
  argument.uri, argument.draftToken = vim.uri_from_bufnr(buf), token
  local tick = vim.api.nvim_buf_get_changedtick(buf)
  working.begin(token, place, what)
  local _, id = client:request(
    "workspace/executeCommand",
    { command = command, arguments = { argument } },
    function(err, result)
      working.finish(token)
      under_way = under_way and under_way.token ~= token and under_way or nil
      -- Whoever cancels knows.
      if err and err.code == vim.lsp.protocol.ErrorCodes.RequestCancelled then
        return
      end
      local candidates = not err and result and result.candidates or {}
      local said = err and err.message or result and result.message or ""
      if #candidates == 0 then
        said = said ~= "" and said or "The model has no proposal here."
        candidates = before or {}
      end
      if said ~= "" then
        notify.warn(said)
      end
      if #candidates == 0 then
        return
      end
      if not vim.api.nvim_buf_is_valid(buf) or vim.api.nvim_buf_get_changedtick(buf) ~= tick then
        notify.warn("The text has changed meanwhile; ask again.")
      else
        preview.open(buf, client, candidates, others)
      end
    end,
    buf
  )
  under_way = id and { client = client, id = id, token = token, buf = buf } or nil
end

--- Stop what is under way.
---@return boolean
function M.cancel()
  local held = under_way
  under_way = nil
  if held then
    working.finish(held.token)
    held.client:cancel_request(held.id)
  end
  return held ~= nil
end

--- A server has ended, and Neovim calls nobody back for what it was asked.
---@param client vim.lsp.Client
function M.ended(client)
  if under_way and under_way.client.id == client.id then
    M.cancel()
  end
end

--- A buffer is no longer the document that it was.
---@param buf integer
function M.left(buf)
  if under_way and under_way.buf == buf then
    M.cancel()
  end
end

---@return boolean
function M.is_busy()
  return under_way ~= nil
end

---@param place dg.Place
---@param instruction string
---@param shown string? What was proposed
---@param struck lsp.Range[]? What of it shall be something else
---@param before dg.Candidate[]?
function M.rewrite(place, instruction, shown, struck, before)
  ask("dg.rewrite", "rewriting", place, function(range)
    return {
      range = range,
      instruction = instruction ~= "" and instruction or nil,
      strength = config.current.edit.strength,
      n = config.current.edit.candidates,
      keep = require("dg.keep").rows(place),
      shown = shown,
      struck = struck,
    }
  end, function(...)
    M.rewrite(place, instruction, ...)
  end, before)
end

---@param place dg.Place
---@param limited boolean Whether a range was given
function M.fix(place, limited)
  ask("dg.fix", "mending", place, function(range)
    return { range = limited and range or nil }
  end)
end

---@param place dg.Place
---@param limited boolean Whether a range was given, whose lines are all looked at
function M.fill(place, limited)
  ask("dg.fillHere", "filling", place, function(range)
    if not limited then
      return { position = range.start }
    end
    local positions = {}
    for row = place.start_row, place.end_row do
      local line = vim.api.nvim_buf_get_lines(place.buf, row, row + 1, false)[1]
      -- A blank takes one unit in every encoding.
      positions[#positions + 1] = { line = row, character = #line:match("^[ \t]*") }
    end
    return { positions = positions }
  end)
end

return M
