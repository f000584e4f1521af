--- What users can set, with defaults. A wrong key or type is an error that names it.
local M = {}

---@class dg.GhostConfig
---@field enabled boolean Show suggestions while typing
---@field debounce_ms integer Rest after a key before asking; Neovim 0.11 only, 0.12 has its own

---@class dg.NextEditConfig
---@field enabled boolean Ask by itself where else a change belongs
---@field debounce_ms integer Rest after a change before asking

---@class dg.EditConfig
---@field view "inline"|"split" Show a proposed edit in the buffer, or as a diff in a split
---@field candidates integer Proposals to choose from
---@field strength? number Share of the selection that is written anew, in (0, 1]; nil: the server's choice

---@class dg.Config
---@field cmd? string[] Command line of the server, `serve` last; nil: that of $VIRTUAL_ENV or $PATH
---@field cmd_env? table<string, string> Environment of the server
---@field root_markers string[] Names that mark a project's folder
---@field max_file_bytes integer Longer files are left alone
---@field restarts integer Times a crashed server is started again within three minutes
---@field settings table Settings of the server, as in its settings.schema.json
---@field ghost dg.GhostConfig
---@field next_edit dg.NextEditConfig
---@field edit dg.EditConfig
---@field keys false|true|table<string, string|false> No keys, the suggested ones, or changes to them

---@type dg.Config
local defaults = {
  root_markers = { "dg-lsp.toml", ".git" },
  max_file_bytes = 1000000,
  restarts = 3,
  settings = {},
  ghost = { enabled = true, debounce_ms = 75 },
  next_edit = { enabled = true, debounce_ms = 250 },
  edit = { view = "inline", candidates = 3 },
  keys = false,
}

---@type table<string, type[]>
local types = {
  cmd = { "table", "nil" },
  cmd_env = { "table", "nil" },
  root_markers = { "table" },
  max_file_bytes = { "number" },
  restarts = { "number" },
  settings = { "table" },
  ghost = { "table" },
  next_edit = { "table" },
  edit = { "table" },
  keys = { "boolean", "table" },
  ["ghost.enabled"] = { "boolean" },
  ["ghost.debounce_ms"] = { "number" },
  ["next_edit.enabled"] = { "boolean" },
  ["next_edit.debounce_ms"] = { "number" },
  ["edit.view"] = { "string" },
  ["edit.candidates"] = { "number" },
  ["edit.strength"] = { "number", "nil" },
}

---@type dg.Config
M.current = vim.deepcopy(defaults)

---@param config table
---@param prefix string
local function check(config, prefix)
  for key, value in pairs(config) do
    local name = prefix .. key
    local expected = types[name]
    if not expected then
      error(("dg.setup: unknown option %q; `:help dg-options` has them all"):format(name), 0)
    end
    if not vim.list_contains(expected, type(value)) then
      error(
        ("dg.setup: %s is a %s, not a %s"):format(name, table.concat(expected, " or "), type(value)),
        0
      )
    end
    if name == "ghost" or name == "next_edit" or name == "edit" then
      check(value, name .. ".")
    end
  end
end

---@param given? table
---@return dg.Config
function M.set(given)
  given = given or {}
  check(given, "")
  local config = vim.tbl_deep_extend("force", vim.deepcopy(defaults), given)
  if config.edit.view ~= "inline" and config.edit.view ~= "split" then
    error(('dg.setup: edit.view is "inline" or "split", not %q'):format(config.edit.view), 0)
  end
  for action, key in pairs(type(config.keys) == "table" and config.keys or {}) do
    if not require("dg.keys").suggested[action] then
      error(
        ("dg.setup: keys has no action %q; `:help dg-keys` has them all"):format(tostring(action)),
        0
      )
    end
    if key ~= false and type(key) ~= "string" then
      error(("dg.setup: keys.%s is a key or false, not a %s"):format(action, type(key)), 0)
    end
  end
  M.current = config
  return config
end

return M
