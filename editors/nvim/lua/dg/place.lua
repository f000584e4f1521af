--- Ranges of the current buffer that people point at.
local M = {}

---@param row integer
---@return string
local function line(row)
  return vim.api.nvim_buf_get_lines(0, row, row + 1, false)[1] or ""
end

---@param first integer Lines count from 1
---@param last integer
---@return dg.Place
function M.lines(first, last)
  local buf = vim.api.nvim_get_current_buf()
  return {
    buf = buf,
    start_row = first - 1,
    start_col = 0,
    end_row = last - 1,
    end_col = #line(last - 1),
  }
end

---@return dg.Place
function M.cursor()
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  local buf = vim.api.nvim_get_current_buf()
  return { buf = buf, start_row = row - 1, start_col = col, end_row = row - 1, end_col = col }
end

---@param from integer[] As from getpos()
---@param to integer[]
---@param mode string
---@return dg.Place
local function between(from, to, mode)
  if from[2] > to[2] or (from[2] == to[2] and from[3] > to[3]) then
    from, to = to, from
  end
  if mode ~= "v" then
    return M.lines(from[2], to[2])
  end
  local last = line(to[2] - 1)
  -- The mark stands on the first byte of the last character, or after it; of one character at the least.
  local beyond = vim.o.selection == "exclusive" and not vim.deep_equal(from, to)
  local at = math.min(to[3] - (beyond and 1 or 0), #last)
  local end_col = at == 0 and 0 or at + vim.str_utf_end(last, at)
  local buf = vim.api.nvim_get_current_buf()
  return {
    buf = buf,
    start_row = from[2] - 1,
    start_col = from[3] - 1,
    end_row = to[2] - 1,
    end_col = end_col,
  }
end

--- The visual selection, which ends, or else the cursor's line.
---@return dg.Place
---@return boolean selected
function M.selection()
  local mode = vim.api.nvim_get_mode().mode
  if mode:match("^[vV\22]") then
    local place = between(vim.fn.getpos("v"), vim.fn.getpos("."), mode)
    vim.cmd.normal({ args = { "\27" }, bang = true })
    return place, true
  end
  local row = vim.api.nvim_win_get_cursor(0)[1]
  return M.lines(row, row), false
end

--- The range of a command; where it came from a selection of characters, those.
---@param given { range: integer, line1: integer, line2: integer }
---@return dg.Place
---@return boolean selected
function M.of_command(given)
  local from, to = vim.fn.getpos("'<"), vim.fn.getpos("'>")
  if
    given.range == 2
    and vim.fn.visualmode() == "v"
    and from[2] == given.line1
    and to[2] == given.line2
  then
    return between(from, to, "v"), true
  end
  return M.lines(given.line1, given.line2), given.range > 0
end

return M
