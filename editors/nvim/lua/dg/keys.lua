--- Keys, for those who ask for them.
local config = require("dg.config")

local M = {}

---@type table<string, string>
M.suggested = {
  accept = "<Tab>",
  accept_word = "<M-w>",
  accept_line = "<M-l>",
  next = "<M-]>",
  previous = "<M-[>",
  dismiss = "<M-c>",
  rewrite = "<Leader>dr",
  fix = "<Leader>df",
  fill = "<Leader>di",
  edit_accept = "<CR>",
  edit_reject = "<Esc>",
  edit_next = "<Tab>",
  edit_previous = "<S-Tab>",
}

local MODES = { rewrite = { "n", "x" }, fix = { "n", "x" }, fill = { "n" } }

--- The keys by action, as chosen.
---@return table<string, string>
function M.chosen()
  local given = config.current.keys
  if not given then
    return {}
  end
  local keys = vim.tbl_extend("force", M.suggested, given == true and {} or given)
  return vim.iter(keys):fold({}, function(kept, action, key)
    kept[action] = key or nil
    return kept
  end)
end

---@param action string
---@return string
local function plug(action)
  return ("<Plug>(dg-%s)"):format((action:gsub("_", "-")))
end

function M.map()
  for action, key in pairs(M.chosen()) do
    if action == "accept" then
      vim.keymap.set("i", key, function()
        return require("dg").accept() and "" or key
      end, { expr = true, desc = "Accept the suggestion" })
    elseif not action:match("^edit_") then
      vim.keymap.set(MODES[action] or "i", key, plug(action), { remap = true })
    end
  end
end

--- While an edit is proposed.
---@param buf integer
function M.map_edit(buf)
  for action, key in pairs(M.chosen()) do
    if action:match("^edit_") then
      vim.keymap.set("n", key, plug(action), { buffer = buf, remap = true })
    end
  end
end

---@param buf integer
function M.unmap_edit(buf)
  for action, key in pairs(M.chosen()) do
    if action:match("^edit_") and vim.api.nvim_buf_is_valid(buf) then
      -- Somebody else's map of that key may have replaced it.
      pcall(vim.keymap.del, "n", key, { buffer = buf })
    end
  end
end

return M
