--- Which buffers the server is kept from, and why.
local config = require("dg.config")

local M = {}

---@type table<integer, string>
M.refused = {}

---@param buf integer
---@return string? why A sentence, or nil where nothing is against it
function M.refusal(buf)
  local name = vim.api.nvim_buf_get_name(buf)
  if vim.bo[buf].buftype ~= "" then
    return "This buffer is no file."
  end
  -- Without a name it would be the same document as any other that has none.
  if name == "" then
    return "This buffer has no name yet; write it to a file to get suggestions."
  end
  if name:match("^%a[%w+.-]+://") then
    return "This file is on another machine; start Neovim there to get suggestions."
  end
  local nbytes = vim.api.nvim_buf_get_offset(buf, vim.api.nvim_buf_line_count(buf))
  if nbytes > config.current.max_file_bytes then
    return ("This file has %d bytes, more than max_file_bytes (%d) in setup()."):format(
      nbytes,
      config.current.max_file_bytes
    )
  end
end

---@param buf integer
---@return string? why
function M.read_only(buf)
  if not vim.bo[buf].modifiable or vim.bo[buf].readonly then
    return "This buffer is read-only."
  end
end

return M
