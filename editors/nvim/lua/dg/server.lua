--- The language server: where it is, starting it, and what happens when it ends by itself.
local config = require("dg.config")
local guard = require("dg.guard")
local notify = require("dg.notify")

local M = {}

M.NAME = "dg"
M.NEEDS = "0.1.0"
local CRASHES_COUNT_MS = 3 * 60 * 1000
local ENDS_MS = 2000
local SIGTERM = 15

---@type integer[] When it crashed, in milliseconds
local crashes = {}
---@type table<integer, true> Clients that were asked to end
local stopping = {}
---@type table<vim.lsp.rpc.PublicClient, integer>
local pids = setmetatable({}, { __mode = "k" })

---@return string? program Path of `dg-lsp`
local function find()
  local venv = vim.env.VIRTUAL_ENV
  local inside = venv
    and vim.fs.joinpath(venv, vim.fn.has("win32") == 1 and "Scripts" or "bin", "dg-lsp")
  if inside and vim.fn.executable(inside) == 1 then
    return inside
  end
  local found = vim.fn.exepath("dg-lsp")
  return found ~= "" and found or nil
end

---@return string[]? command
---@return string? why A sentence, where there is no command
function M.command()
  local given = config.current.cmd
  if given then
    if vim.fn.executable(given[1]) == 1 then
      return given
    end
    return nil, ("%s, the `cmd` in setup(), can't be run; correct it."):format(given[1])
  end
  local program = find()
  if program then
    return { program, "serve" }
  end
  return nil,
    "The server dg-lsp was not found; run `pipx install .` in a clone of dg-lsp, or set `cmd` in setup()."
end

---@return vim.lsp.Client[] clients Those that do not answer yet, or are to end, too
local function all()
  return vim.lsp.get_clients({ name = M.NAME, _uninitialized = true })
end

---@return vim.lsp.Client?
function M.client(buf)
  local clients = vim.lsp.get_clients({ name = M.NAME, bufnr = buf })
  return vim.iter(clients):find(function(client)
    return not client:is_stopped()
  end)
end

---@param client vim.lsp.Client
local function begin(client)
  local told = vim.tbl_get(client, "server_info", "version") or "0"
  local version = vim.version.parse(told, { strict = false })
  if version and vim.version.ge(version, M.NEEDS) then
    require("dg.switch").repeat_for(client)
    return
  end
  notify.warn(
    ("dg-lsp %s is too old, this plugin needs %s; run `pipx install --force .` in an updated clone."):format(
      told,
      M.NEEDS
    )
  )
  M.stop()
end

---@param buf integer
---@param on_dir fun(folder: string)
local function root_dir(buf, on_dir)
  local why = guard.refusal(buf)
  local _, missing = M.command()
  if missing and not why then
    vim.schedule(function()
      vim.notify_once("dg: " .. missing, vim.log.levels.WARN)
    end)
  end
  guard.refused[buf] = why or missing
  if not guard.refused[buf] then
    on_dir(vim.fs.root(buf, config.current.root_markers) or vim.fn.getcwd())
  end
end

--- What a buffer was refused for may be over, as where it has a name by now.
---@param buf integer
function M.look_again(buf)
  if guard.refused[buf] then
    -- As if it were opened now: Neovim starts what it has enabled, or nothing.
    vim.api.nvim_exec_autocmds(
      "FileType",
      { group = "nvim.lsp.enable", buffer = buf, modeline = false }
    )
  end
end

--- A buffer's name is about to change, and with it the document that it is.
---@param buf integer
function M.rename(buf)
  for _, client in ipairs(all()) do
    if client.attached_buffers[buf] then
      guard.refused[buf] = "This buffer gets another name."
      vim.lsp.buf_detach_client(buf, client.id)
    end
  end
  -- Also where the name was refused.
  vim.schedule(function()
    if vim.api.nvim_buf_is_loaded(buf) then
      M.look_again(buf)
    end
  end)
end

---@return boolean
function M.is_enabled()
  -- Not every 0.11 can tell.
  return not vim.lsp.is_enabled or vim.lsp.is_enabled(M.NAME)
end

---@param code integer
---@param signal integer
---@param id integer
local function on_exit(code, signal, id)
  -- A server that is told to end does so without an error, or by the signal that Neovim gives it.
  local told = code == 0 and (signal == 0 or signal == SIGTERM)
  if stopping[id] or told or vim.v.exiting ~= vim.NIL then
    stopping[id] = nil
    return
  end
  local now = vim.uv.now()
  crashes = vim.tbl_filter(function(at)
    return now - at < CRASHES_COUNT_MS
  end, crashes)
  crashes[#crashes + 1] = now
  vim.schedule(function()
    if #crashes <= config.current.restarts then
      vim.defer_fn(function()
        if M.is_enabled() then
          M.start()
        end
      end, 200 * #crashes)
      return
    end
    M.stop()
    notify.warn(
      ("The server ended %d times by itself (exit code %d, signal %d); `:Dg log` says why, `:Dg restart` tries again."):format(
        #crashes,
        code,
        signal
      )
    )
  end)
end

--- Neovim does not tell which process it has started.
---@param dispatchers vim.lsp.rpc.Dispatchers
---@return vim.lsp.rpc.PublicClient
local function spawn(dispatchers)
  local function children()
    return vim.api.nvim_get_proc_children(vim.fn.getpid())
  end
  local before = children()
  local rpc = vim.lsp.rpc.start(assert(M.command()), dispatchers, { env = config.current.cmd_env })
  pids[rpc] = vim.iter(children()):find(function(pid)
    return not vim.list_contains(before, pid)
  end)
  return rpc
end

--- Tell Neovim of the server. `handlers` are for its own messages.
---@param handlers table<string, lsp.Handler>
function M.configure(handlers)
  local capabilities = vim.lsp.protocol.make_client_capabilities()
  -- 0.11 shows inline completion through this plugin and does not say so by itself.
  capabilities.textDocument.inlineCompletion = { dynamicRegistration = false }
  capabilities.experimental = { dgStatus = true, dgReopen = true }
  vim.lsp.config(M.NAME, {
    cmd = spawn,
    root_dir = root_dir,
    capabilities = capabilities,
    init_options = config.current.settings,
    settings = { ["dg-lsp"] = config.current.settings },
    handlers = handlers,
    on_init = begin,
    on_exit = on_exit,
  })
end

--- The settings are others now, to servers that run, too.
function M.tell_settings()
  for _, client in ipairs(vim.lsp.get_clients({ name = M.NAME })) do
    client.settings = { ["dg-lsp"] = config.current.settings }
    client:notify("workspace/didChangeConfiguration", { settings = client.settings })
  end
end

---@param of function
---@param name string
local function upvalue(of, name)
  for index = 1, debug.getinfo(of, "u").nups do
    local found, value = debug.getupvalue(of, index)
    if found == name then
      return value
    end
  end
end

---@type table<integer, true>
local followed = {}

--- A buffer that is changed while no server is there is listened to no longer, by any Neovim so far, but stands among those
--- that are: whoever comes next would hear of no change. So it is taken off that list, by a listener that ends with Neovim's.
---@param buf integer That a server is attached to
function M.follow(buf)
  if followed[buf] then
    return
  end
  local function forget()
    followed[buf] = nil
  end
  followed[buf] = vim.api.nvim_buf_attach(buf, false, {
    on_lines = function()
      if #vim.lsp.get_clients({ bufnr = buf, _uninitialized = true }) > 0 then
        return
      end
      forget()
      local attach = upvalue(vim.lsp.buf_attach_client, "buf_attach")
      local listened = attach and upvalue(attach, "attached_buffers")
      if listened then
        listened[buf] = nil
      end
      return true
    end,
    -- Without it a reload would be the end.
    on_reload = function() end,
    on_detach = forget,
  }) or nil
end

--- Send the text of a document anew, of which the server has lost track.
---@param client_id integer
---@param uri string
function M.reopen(client_id, uri)
  local client = vim.lsp.get_client_by_id(client_id)
  for buf in pairs(client and vim.deepcopy(client.attached_buffers) or {}) do
    if vim.uri_from_bufnr(buf) == uri then
      vim.lsp.buf_detach_client(buf, client_id)
      vim.lsp.buf_attach_client(buf, client_id)
    end
  end
end

function M.start()
  vim.lsp.enable(M.NAME)
end

function M.stop()
  for _, client in ipairs(all()) do
    stopping[client.id] = true
    -- Neovim stops only those that have answered.
    if not client.initialized then
      client:stop()
    end
  end
  vim.lsp.enable(M.NAME, false)
end

function M.restart()
  crashes = {}
  M.stop()
  local function ended()
    return #all() == 0
  end
  if not vim.wait(ENDS_MS, ended, 20) then
    -- Neovim's own way of force leaves a process be that is stopped itself.
    for _, client in ipairs(all()) do
      if pids[client.rpc] then
        vim.uv.kill(pids[client.rpc], "sigkill")
      end
    end
    vim.wait(ENDS_MS, ended, 20)
  end
  M.start()
end

return M
