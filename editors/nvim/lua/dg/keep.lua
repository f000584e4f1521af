--- Lines that a rewrite leaves as they are, marked by the person.
local M = {}

local NAMESPACE = vim.api.nvim_create_namespace("dg.keep")

---@param buf integer
---@param first integer Rows count from 0
---@param last integer
---@return vim.api.keyset.get_extmark_item[]
local function marks(buf, first, last)
  return vim.api.nvim_buf_get_extmarks(buf, NAMESPACE, { first, 0 }, { last, -1 }, {})
end

--- Mark the lines of a place, or unmark them if all of them are marked.
---@param place dg.Place
function M.toggle(place)
  local known = {}
  for _, mark in ipairs(marks(place.buf, place.start_row, place.end_row)) do
    known[mark[2]] = mark[1]
  end
  local all = vim.tbl_count(known) == place.end_row - place.start_row + 1
  for row = place.start_row, place.end_row do
    if all then
      vim.api.nvim_buf_del_extmark(place.buf, NAMESPACE, known[row])
    elseif not known[row] then
      vim.api.nvim_buf_set_extmark(place.buf, NAMESPACE, row, 0, {
        sign_text = "=",
        sign_hl_group = "Comment",
        invalidate = true,
        undo_restore = false,
      })
    end
  end
end

--- Lines of a place that stay, as the server counts them.
---@param place dg.Place
---@return integer[]
function M.rows(place)
  return vim.tbl_map(function(mark)
    return mark[2]
  end, marks(place.buf, place.start_row, place.end_row))
end

return M
