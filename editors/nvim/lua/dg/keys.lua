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

---@param keys string
---@param mode string As nvim_feedkeys has it
local function feed(keys, mode)
  vim.api.nvim_feedkeys(vim.keycode(keys), mode, false)
end

---@type fun()?
local due

--- Do something before the next key that is typed ahead: an <expr> mapping may change neither text nor buffer.
---@param act fun()
function M.next(act)
  due = act
  -- A completion that goes on takes back all that stands after its beginning.
  local completing = vim.startswith(vim.api.nvim_get_mode().mode, "ic")
  feed((completing and "<C-x><C-z>" or "") .. "<Cmd>lua require('dg.keys').now()<CR>", "in")
end

function M.now()
  local act = due
  due = nil
  if act then
    act()
  end
end

local OWN = "<Plug>(dg-own)"
--- In insert mode; where there is nothing to do, the key is what it was before.
---@type table<string, [string, fun(): boolean]>
local ON_SUGGESTION = {
  accept = {
    "Accept the suggestion",
    function()
      return require("dg").accept()
    end,
  },
  accept_word = {
    "Accept a word of the suggestion",
    function()
      return require("dg").accept("word")
    end,
  },
  accept_line = {
    "Accept a line of the suggestion",
    function()
      return require("dg").accept("line")
    end,
  },
  dismiss = {
    "Hide the suggestion",
    function()
      return require("dg").dismiss()
    end,
  },
}
---@type table<string, table> What these keys were before, by action, as from maparg()
local before = {}

--- Whether a key that nobody has mapped is Escape and a letter, which no one means who asks for a suggestion.
---@param key string
---@return boolean
local function is_meta(key)
  return key:match("^<[MmAa]%-") ~= nil
end

--- Neovim's own completion menu, or that of a plugin that draws one itself.
---@return boolean
local function menu_is_open()
  local cmp, blink = package.loaded["cmp"], package.loaded["blink.cmp"]
  return vim.fn.pumvisible() == 1
    or cmp and cmp.visible and cmp.visible()
    or blink and blink.is_menu_visible and blink.is_menu_visible()
    or false
end

--- Whether an open completion menu has work for a key: somebody mapped it, or it is one of those that choose.
---@param key string
---@param was table
---@return boolean
local function is_menus(key, was)
  if not menu_is_open() then
    return false
  end
  -- Neovim's own mapping of Tab has none.
  local own = not vim.tbl_isempty(was) and not vim.startswith(was.desc or "", "vim.snippet.jump")
  return own
    or vim.keycode(key) ~= "\t"
      and not is_meta(key)
      and vim.fn.complete_info({ "selected" }).selected >= 0
end

--- A mapping that is what the key was before wherever `act` has nothing to do. No <expr>: Neovim evaluates such a mapping
--- before the keys that were typed ahead of it are in the text.
---@param mode string
---@param key string
---@param was table As from maparg()
---@param act fun(): boolean
---@return fun()
local function or_else(mode, key, was, act)
  local again = false
  return function()
    local is_own = again or (mode == "i" and is_menus(key, was))
    if not is_own and act() then
      return
    end
    -- A mapping that may be mapped again, and ends in its own key, leads back here.
    if again or vim.tbl_isempty(was) then
      if again or not is_meta(key) then
        feed(key, "in")
      end
      again = false
      return
    end
    again = was.noremap == 0
    vim.schedule(function()
      again = false
    end)
    local own = vim.tbl_extend("force", was, { lhs = OWN, lhsraw = vim.keycode(OWN) })
    own.lhsrawalt = nil
    vim.fn.mapset(own)
    feed(OWN, "im")
  end
end

---@param action string
---@param key string
local function map_on_suggestion(action, key)
  local desc, act = unpack(ON_SUGGESTION[action])
  local was = vim.iter(vim.api.nvim_get_keymap("i")):find(function(map)
    return map.lhsraw == vim.keycode(key)
  end) or {}
  if was.desc ~= desc then
    before[action] = was
  end
  vim.keymap.set("i", key, or_else("i", key, before[action] or {}, act), { desc = desc })
end

function M.map()
  for action, key in pairs(M.chosen()) do
    if ON_SUGGESTION[action] then
      map_on_suggestion(action, key)
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
---@return table was As from maparg()
local function take(owner, buf, mode, key)
  local was = vim.api.nvim_buf_call(buf, function()
    return vim.fn.maparg(key, mode, false, true)
  end)
  mapped[#mapped + 1] = { owner = owner, buf = buf, mode = mode, key = key, was = was }
  return was
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
        local was = take("next_edit", buf, mode, key)
        local act = or_else(mode, key, was, function()
          local dg = require("dg")
          local ghost = action == "next_edit" and mode == "i" and dg.accept()
          return ghost or dg[action]()
        end)
        vim.keymap.set(mode, key, act, { buffer = buf })
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
      take("edit", buf, "n", key)
      vim.keymap.set("n", key, plug(action), { buffer = buf, remap = true })
    end
  end
end

function M.unmap_edit()
  give_back("edit")
end

return M
