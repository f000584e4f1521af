--- `:Dg`.
local M = {}

local SCOPES = { language = "language", folder = "folder" }
local NEXT_EDIT = { all = "next_edit_all", dismiss = "next_edit_dismiss" }
---@type table<string, table<string, string>> By command: the words that may follow it
local SECOND = { toggle = SCOPES, next_edit = NEXT_EDIT }

--- Whether a command's second word is one of its own, or none; else a sentence says so.
---@param words string[]
---@param without string What it is without one
---@return boolean
local function is_known(words, without)
  local those = SECOND[words[1]]
  if #words <= 2 and (not words[2] or those[words[2]]) then
    return true
  end
  local known = table.concat(vim.fn.sort(vim.tbl_keys(those)), " or ")
  require("dg.notify").warn(
    ("There is no `:Dg %s`; name %s, or nothing for %s."):format(table.concat(words, " "), known, without)
  )
  return false
end

---@param words string[]
local function toggle(words)
  if is_known(words, "everywhere") then
    require("dg").toggle(SCOPES[words[2]])
  end
end

---@param words string[]
local function next_edit(words)
  if not is_known(words, "the next one") then
    return
  end
  local action = NEXT_EDIT[words[2]] or "next_edit"
  if not require("dg")[action]() then
    require("dg").next_edit_ask()
  end
end

local function status()
  local guard, server, notify = require("dg.guard"), require("dg.server"), require("dg.notify")
  local buf = vim.api.nvim_get_current_buf()
  local client = server.client(buf)
  if not client then
    notify.warn(guard.refused[buf] or "The server is not running here; `:checkhealth dg` says why.")
    return
  end
  client:request("dg/status", { uri = vim.uri_from_bufnr(buf), engine = true }, function(err, told)
    if err then
      notify.warn(err.message)
      return
    end
    local engine = told.engine or {}
    local model = engine.model and ("%s on %s"):format(engine.model, engine.device) or ""
    local learnt = told.adapter ~= "" and ("it has learnt %s"):format(told.adapter) or ""
    local parts = { told.state, told.message, told.document.off, told.silence, told.origin }
    vim.list_extend(parts, { engine.error ~= told.message and engine.error or "", model, learnt })
    parts = vim.tbl_filter(function(part)
      return part ~= ""
    end, parts)
    notify.tell(table.concat(parts, " · "))
  end, buf)
end

local function log()
  local path = vim.lsp.log.get_filename and vim.lsp.log.get_filename() or vim.lsp.get_log_path()
  vim.cmd.split({ args = { vim.fn.fnameescape(path) } })
  vim.cmd.normal({ args = { "G" }, bang = true })
end

local function doctor()
  local notify = require("dg.notify")
  local command, why = require("dg.server").command()
  if not command then
    notify.warn(why --[[@as string]])
    return
  end
  vim.cmd.new()
  vim.fn.jobstart(
    vim.list_extend(vim.list_slice(command, 1, #command - 1), { "doctor" }),
    { term = true }
  )
end

--- Downloads a model; how far it has come is told as the progress of a language server.
---@param words string[]
local function pull(words)
  local notify = require("dg.notify")
  local client = require("dg.server").client(vim.api.nvim_get_current_buf())
  if not client then
    notify.warn("The server is not running here; `:checkhealth dg` says why.")
    return
  end
  local command = { command = "dg.pull", arguments = { { model = words[2] or "coder-1.5b" } } }
  client:request("workspace/executeCommand", command, function(err)
    if err then
      notify.warn(err.message)
    end
  end)
end

---@type table<string, fun(words: string[], given: table)>
local actions = {
  rewrite = function(words, given)
    local place = require("dg.place").of_command(given)
    require("dg").rewrite(words[2] and table.concat(words, " ", 2) or nil, place)
  end,
  fix = function(_, given)
    require("dg.edit").fix(require("dg.place").of_command(given))
  end,
  fill = function(_, given)
    if given.range > 0 then
      require("dg.edit").fill(require("dg.place").lines(given.line1, given.line2), true)
    else
      require("dg").fill()
    end
  end,
  keep = function(_, given)
    require("dg.keep").toggle((require("dg.place").of_command(given)))
  end,
  accept = function()
    require("dg").edit_accept()
  end,
  reject = function()
    require("dg").edit_reject()
  end,
  ["not"] = function(words)
    require("dg.preview").strike(table.concat(words, " ", 2))
  end,
  next = function()
    require("dg").edit_next()
  end,
  previous = function()
    require("dg").edit_previous()
  end,
  toggle = toggle,
  next_edit = next_edit,
  status = status,
  restart = function()
    require("dg.server").restart()
  end,
  log = log,
  pull = pull,
  doctor = doctor,
}

---@param given table As from nvim_create_user_command
function M.run(given)
  local words = given.fargs
  local action = actions[words[1]]
  if not action then
    local known = table.concat(vim.fn.sort(vim.tbl_keys(actions)), ", ")
    vim.notify(
      ("dg: There is no `:Dg %s`; there are %s."):format(words[1], known),
      vim.log.levels.WARN
    )
    return
  end
  action(words, given)
end

---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  local words = vim.split(line, "%s+")
  local second = #words > 2
  local offered = not second and vim.tbl_keys(actions)
    or words[2] == "not" and require("dg.preview").words()
    or vim.tbl_keys(SECOND[words[2]] or {})
  return vim.fn.sort(vim.tbl_filter(function(word)
    return vim.startswith(word, lead)
  end, offered))
end

return M
