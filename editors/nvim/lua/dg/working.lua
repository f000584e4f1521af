--- What a range looks like while the model is at work on it: the canvas settles before your eyes.
local M = {}

local namespace = vim.api.nvim_create_namespace("dg.working")

---@class dg.Place A range in bytes, end exclusive
---@field buf integer
---@field start_row integer
---@field start_col integer
---@field end_row integer
---@field end_col integer

---@type table<string, { buf: integer, id: integer }> By token
local marks = {}

---@param token string
---@param place dg.Place
---@param what string
function M.begin(token, place, what)
  local id = vim.api.nvim_buf_set_extmark(place.buf, namespace, place.start_row, place.start_col, {
    end_row = place.end_row,
    end_col = place.end_col,
    hl_group = "DgWorking",
    virt_text = { { (" %s… "):format(what), "DgHint" } },
    virt_text_pos = "eol",
  })
  marks[token] = { buf = place.buf, id = id }
end

--- A draft came: the text that would be the answer now.
---@param draft { token: string, step: integer, text: string }
function M.draft(draft)
  local mark = marks[draft.token]
  if not mark or not vim.api.nvim_buf_is_valid(mark.buf) then
    return
  end
  local found = vim.api.nvim_buf_get_extmark_by_id(mark.buf, namespace, mark.id, { details = true })
  local row, col, details = found[1], found[2], found[3]
  if not row or not details or details.invalid then
    return
  end
  local lines = vim.tbl_map(function(line)
    return { { line, "DgDraft" } }
  end, vim.split(draft.text, "\n", { plain = true }))
  -- Lines of a mark stand below its first line; those of a second mark below the range's last.
  vim.api.nvim_buf_clear_namespace(mark.buf, namespace, 0, -1)
  mark.id = vim.api.nvim_buf_set_extmark(mark.buf, namespace, row, col, {
    end_row = details.end_row,
    end_col = details.end_col,
    hl_group = "DgWorking",
    virt_text = { { (" step %d "):format(draft.step), "DgHint" } },
    virt_text_pos = "eol",
  })
  vim.api.nvim_buf_set_extmark(mark.buf, namespace, details.end_row, 0, { virt_lines = lines })
end

---@param token string
function M.finish(token)
  local mark = marks[token]
  marks[token] = nil
  if mark and vim.api.nvim_buf_is_valid(mark.buf) then
    vim.api.nvim_buf_clear_namespace(mark.buf, namespace, 0, -1)
  end
end

return M
