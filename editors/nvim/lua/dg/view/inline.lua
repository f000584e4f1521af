--- A proposed edit inside the buffer: lines that go are marked, lines that come stand below them.
local proposal = require("dg.proposal")

local M = {}

local namespace = vim.api.nvim_create_namespace("dg.preview")

---@param lines string[]
---@param hunk dg.Hunk
---@return [string, string][][]
local function coming(lines, hunk)
  local added = vim.list_slice(lines, hunk.new_start, hunk.new_start + hunk.new_count - 1)
  return vim.tbl_map(function(line)
    return { { line == "" and " " or line, "DgNew" } }
  end, added)
end

---@param buf integer
---@param hunk dg.Hunk
---@param virtual [string, string][][]
local function draw(buf, hunk, virtual)
  if hunk.old_count > 0 then
    vim.api.nvim_buf_set_extmark(buf, namespace, hunk.old_start - 1, 0, {
      end_row = hunk.old_start - 1 + hunk.old_count,
      hl_group = "DgOld",
      hl_eol = true,
      strict = false,
    })
  end
  local above = hunk.old_start == 0
  local row = hunk.old_count > 0 and hunk.old_start + hunk.old_count - 2
    or math.max(hunk.old_start - 1, 0)
  vim.api.nvim_buf_set_extmark(
    buf,
    namespace,
    row,
    0,
    { virt_lines = virtual, virt_lines_above = above }
  )
end

--- What is folded away shows no lines that come.
---@param buf integer
---@param hunk dg.Hunk
local function unfold(buf, hunk)
  local first = math.max(hunk.old_start, 1)
  local last = math.max(hunk.old_start + hunk.old_count - 1, first)
  for _, window in ipairs(vim.fn.win_findbuf(buf)) do
    vim.api.nvim_win_call(window, function()
      vim.cmd(("silent! %d,%dfoldopen!"):format(first, last))
    end)
  end
end

---@param buf integer
---@param lines string[] The buffer's, after the edit
---@param footer string
function M.show(buf, lines, footer)
  M.close(buf)
  local hunks = proposal.hunks(vim.api.nvim_buf_get_lines(buf, 0, -1, false), lines)
  for index, hunk in ipairs(hunks) do
    local virtual = coming(lines, hunk)
    if index == #hunks then
      virtual[#virtual + 1] = { { footer, "DgHint" } }
    end
    draw(buf, hunk, virtual)
    unfold(buf, hunk)
  end
end

---@param buf integer
function M.close(buf)
  if vim.api.nvim_buf_is_valid(buf) then
    vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  end
end

return M
