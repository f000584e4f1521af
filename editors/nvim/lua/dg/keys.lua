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

---@class dg.Mapped
---@field owner "edit"|"next_edit"
---@field buf integer
---@field mode string
---@field key string
---@field was table What the key was before, as from maparg()

---@type dg.Mapped[] The newest last
local mapped = {}

---@param owner "edit"|"next_edit"
---@param buf integer
---@param mode string
---@param key string
---@param rhs string|function
---@param opts vim.keymap.set.Opts
local function take(owner, buf, mode, key, rhs, opts)
  local was = vim.api.nvim_buf_call(buf, function()
    return vim.fn.maparg(key, mode, false, true)
  end)
  mapped[#mapped + 1] = { owner = owner, buf = buf, mode = mode, key = key, was = was }
  opts.buffer = buf
  vim.keymap.set(mode, key, rhs, opts)
end

--- What was mapped before comes back, the newest first, and where somebody has taken the key since, with that one's end.
---@param owner "edit"|"next_edit"
local function give_back(owner)
  for index = #mapped, 1, -1 do
    local held = mapped[index]
    if held.owner == owner then
      table.remove(mapped, index)
      local since = vim.iter(mapped):skip(index - 1):find(function(other)
        return other.buf == held.buf
          and other.mode == held.mode
          and vim.keycode(other.key) == vim.keycode(held.key)
      end)
      if since then
        since.was = held.was
      elseif vim.api.nvim_buf_is_valid(held.buf) then
        -- Somebody else's map of that key may have replaced it.
        pcall(vim.keymap.del, held.mode, held.key, { buffer = held.buf })
        if held.was.buffer == 1 then
          vim.api.nvim_buf_call(held.buf, function()
            vim.fn.mapset(held.was)
          end)
        end
      end
    end
  end
end

--- While a next edit is shown. Ghost text at the cursor comes first; where nothing is to be done, the key is the user's.
---@param bufs integer[]
function M.map_next_edit(bufs)
  M.unmap_next_edit()
  for action, modes in pairs(WHILE_SHOWN) do
    local key = M.chosen()[action]
    for _, buf in ipairs(key and bufs or {}) do
      for _, mode in ipairs(modes) do
        take("next_edit", buf, mode, key, function()
          local dg = require("dg")
          local ghost = action == "next_edit" and mode == "i" and dg.accept()
          return (ghost or dg[action]()) and "" or key
        end, { expr = true })
      end
    end
  end
end

function M.unmap_next_edit()
  give_back("next_edit")
end

--- While an edit is proposed.
---@param buf integer
function M.map_edit(buf)
  for action, key in pairs(M.chosen()) do
    if action:match("^edit_") then
      take("edit", buf, "n", key, plug(action), { remap = true })
    end
  end
end

function M.unmap_edit()
  give_back("edit")
end

return M
