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
  next_edit = "<Tab>",
  next_edit_all = "<M-a>",
  next_edit_dismiss = "<Esc>",
  next_edit_ask = "<M-n>",
  edit_accept = "<CR>",
  edit_reject = "<Esc>",
  edit_next = "<Tab>",
  edit_previous = "<S-Tab>",
}

local MODES = { rewrite = { "n", "x" }, fix = { "n", "x" }, fill = { "n" }, next_edit_ask = { "n", "i" } }
--- Mapped only while a next edit is shown, with their modes. In insert mode Escape has its own work.
local WHILE_SHOWN = {
  next_edit = { "n", "i" },
  next_edit_all = { "n", "i" },
  next_edit_dismiss = { "n" },
}

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
    elseif not action:match("^edit_") and not WHILE_SHOWN[action] then
      vim.keymap.set(MODES[action] or "i", key, plug(action), { remap = true })
    end
  end
end

---@type { buf: integer, mode: string, key: string, was: table }[]
local mapped = {}

--- While a next edit is shown. Ghost text at the cursor comes first; where nothing is to be done, the key is the user's.
---@param bufs integer[]
function M.map_next_edit(bufs)
  M.unmap_next_edit()
  for action, modes in pairs(WHILE_SHOWN) do
    local key = M.chosen()[action]
    for _, buf in ipairs(key and bufs or {}) do
      for _, mode in ipairs(modes) do
        local was = vim.api.nvim_buf_call(buf, function()
          return vim.fn.maparg(key, mode, false, true)
        end)
        mapped[#mapped + 1] = { buf = buf, mode = mode, key = key, was = was }
        vim.keymap.set(mode, key, function()
          local dg = require("dg")
          local ghost = action == "next_edit" and mode == "i" and dg.accept()
          return (ghost or dg[action]()) and "" or key
        end, { buffer = buf, expr = true })
      end
    end
  end
end

function M.unmap_next_edit()
  for _, held in ipairs(mapped) do
    if vim.api.nvim_buf_is_valid(held.buf) then
      pcall(vim.keymap.del, held.mode, held.key, { buffer = held.buf })
      if held.was.buffer == 1 then
        vim.api.nvim_buf_call(held.buf, function()
          vim.fn.mapset(held.was)
        end)
      end
    end
  end
  mapped = {}
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
