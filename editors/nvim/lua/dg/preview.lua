--- Proposed edits to choose from: one is shown, others a step away, nothing is changed until it is accepted.
local config = require("dg.config")
local notify = require("dg.notify")
local proposal = require("dg.proposal")

local M = {}

---@alias dg.Others fun(shown: string, struck: lsp.Range[], before: dg.Candidate[])

---@class dg.Preview
---@field buf integer
---@field client vim.lsp.Client
---@field candidates dg.Candidate[]
---@field tick integer
---@field index integer
---@field others dg.Others?
---@field view { show: fun(buf: integer, lines: string[], footer: string), close: fun(buf: integer) }

---@type dg.Preview?
local open
local group = vim.api.nvim_create_augroup("dg.preview", { clear = true })

---@return table<string, string> keys By action; the commands where no keys are mapped
local function keys()
  local mapped = require("dg.keys").chosen()
  local function name(action)
    return mapped["edit_" .. action] or (":Dg %s"):format(action)
  end
  return { accept = name("accept"), next = name("next"), reject = name("reject") }
end

---@param held dg.Preview
---@return string
local function footer(held)
  local candidate, named = held.candidates[held.index], keys()
  return ("%d/%d · %d%% · %s   %s accepts, %s shows the next, %s leaves it"):format(
    held.index,
    #held.candidates,
    math.floor(candidate.confidence * 100 + 0.5),
    candidate.syntax,
    named.accept,
    named.next,
    named.reject
  )
end

local function show()
  local held = assert(open)
  local lines = proposal.lines(held.buf, held.candidates[held.index], held.client.offset_encoding)
  held.view.show(held.buf, lines, footer(held))
end

function M.close()
  local held = open
  open = nil
  vim.api.nvim_clear_autocmds({ group = group })
  if held then
    held.view.close(held.buf)
    require("dg.keys").unmap_edit()
  end
end

--- Show proposals for a buffer whose text is the one that they were made for.
---@param buf integer
---@param client vim.lsp.Client
---@param candidates dg.Candidate[]
---@param others dg.Others?
function M.open(buf, client, candidates, others)
  M.close()
  -- A diff stands beside the buffer's window.
  local view = vim.fn.bufwinid(buf) ~= -1 and config.current.edit.view or "inline"
  open = {
    buf = buf,
    client = client,
    candidates = candidates,
    tick = vim.api.nvim_buf_get_changedtick(buf),
    index = 1,
    others = others,
    view = require("dg.view." .. view),
  }
  show()
  require("dg.keys").map_edit(buf)
  vim.api.nvim_create_autocmd({ "TextChanged", "TextChangedI", "BufUnload", "BufFilePre" }, {
    group = group,
    buffer = buf,
    callback = M.close,
  })
end

---@return boolean
function M.is_open()
  return open ~= nil
end

function M.accept()
  local held = open
  M.close()
  if not held then
    notify.warn("Nothing is proposed; `:Dg rewrite` asks for something.")
  elseif vim.api.nvim_buf_get_changedtick(held.buf) ~= held.tick then
    notify.warn("The text has changed meanwhile; ask again.")
  else
    vim.cmd("let &g:undolevels = &g:undolevels")
    vim.lsp.util.apply_workspace_edit(held.candidates[held.index].edit, held.client.offset_encoding)
  end
end

---@param count integer
function M.step(count)
  if open then
    open.index = (open.index - 1 + count) % #open.candidates + 1
    show()
  end
end

--- Ask for something else wherever a text stands in what is proposed; the rest of the proposal stays.
---@param text string
function M.strike(text)
  local held = open
  if not held then
    notify.warn("Nothing is proposed; `:Dg rewrite` asks for something.")
  elseif not held.others then
    notify.warn("Only what a rewrite proposes can be asked for anew in part.")
  elseif text == "" then
    notify.warn("Say what shall be something else: `:Dg not {text}`.")
  else
    local candidate = held.candidates[held.index]
    local struck = proposal.ranges(held.buf, candidate, held.client.offset_encoding, text)
    if #struck == 0 then
      notify.warn(("`%s` is no part of what is proposed."):format(text))
    else
      local before = { candidate }
      vim.list_extend(before, held.candidates, held.index + 1)
      vim.list_extend(before, held.candidates, 1, held.index - 1)
      held.others(candidate.text, struck, before)
    end
  end
end

---@return string[] words Of what is proposed
function M.words()
  local held = open
  return held
      and proposal.words(held.buf, held.candidates[held.index], held.client.offset_encoding)
    or {}
end

return M
