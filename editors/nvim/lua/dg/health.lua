--- `:checkhealth dg`.
local M = {}

local WAIT_MS = 5000

---@param command string[]
local function check_program(command)
  local asking = vim.list_extend(vim.list_slice(command, 1, #command - 1), { "--version" })
  -- It throws where the program can't be started, as a script whose interpreter is gone.
  local ran, done = pcall(function()
    return vim.system(asking, { text = true }):wait(WAIT_MS)
  end)
  if not ran then
    done = { code = -1, stderr = tostring(done) }
  end
  local server = require("dg.server")
  local version = vim.version.parse(done.stdout or "", { strict = false })
  if done.code ~= 0 or not version then
    vim.health.error(
      ("`%s` failed"):format(table.concat(asking, " ")),
      { "Install dg-lsp again.", done.stderr or "" }
    )
  elseif vim.version.lt(version, server.NEEDS) then
    vim.health.error(
      ("dg-lsp %s is older than %s"):format(version, server.NEEDS),
      "Run `pipx install --force .` in an updated clone of dg-lsp."
    )
  else
    vim.health.ok(("dg-lsp %s: %s"):format(version, table.concat(command, " ")))
  end
end

---@param client vim.lsp.Client
local function check_client(client)
  local answer, err = client:request_sync("dg/status", { engine = true }, WAIT_MS)
  local told = answer and answer.result
  if not told then
    vim.health.error(
      "The server does not answer: " .. (err or vim.inspect(answer)),
      "Run `:Dg restart`."
    )
    return
  end
  local engine = told.engine or {}
  if engine.error or told.state == "error" then
    vim.health.error(engine.error or told.message, "Run `:Dg doctor`.")
  elseif told.state == "off" then
    vim.health.warn(told.message)
  else
    vim.health.ok(
      ("The server is %s, the engine runs %s on %s"):format(told.state, engine.model, engine.device)
    )
    for _, adapter in ipairs(engine.adapters or {}) do
      if adapter.trouble == "" then
        vim.health.ok("The adapter of " .. adapter.folder .. " is in use")
      else
        vim.health.warn(adapter.trouble)
      end
    end
  end
end

function M.check()
  local server, guard = require("dg.server"), require("dg.guard")
  vim.health.start("dg")
  if vim.fn.has("nvim-0.11") == 0 then
    vim.health.error("Neovim is older than 0.11", "Upgrade Neovim.")
    return
  end
  local native = vim.lsp.inline_completion ~= nil
  vim.health.ok(
    ("Ghost text by %s"):format(native and "Neovim" or "this plugin, as Neovim 0.11 has none")
  )
  local command, why = server.command()
  if not command then
    vim.health.error(why --[[@as string]])
    return
  end
  check_program(command)
  if not server.is_enabled() then
    vim.health.warn(
      "The server is not enabled",
      'Call require("dg").setup(), or run `:Dg restart` where it ended too often by itself.'
    )
    return
  end
  for buf, reason in pairs(guard.refused) do
    if vim.api.nvim_buf_is_valid(buf) then
      vim.health.info(("%s: %s"):format(vim.api.nvim_buf_get_name(buf), reason))
    end
  end
  local client = server.client()
  if client then
    check_client(client)
  else
    vim.health.info("No buffer that the server is for is open.")
  end
end

return M
