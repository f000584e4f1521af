-- Finds its way through a maze.
local Walker = {}
Walker.__index = Walker

local steps = { n = { 0, -1 }, s = { 0, 1 }, e = { 1, 0 }, w = { -1, 0 } }

function Walker.new(maze, x, y)
  local self = setmetatable({ maze = maze, x = x or 1, y = y or 1, path = {} }, Walker)
  return self
end

function Walker:free(direction)
  local step = steps[direction]
  if not step then
    error("no way " .. tostring(direction))
  end
  local row = self.maze[self.y + step[2]]
  return row ~= nil and row:sub(self.x + step[1], self.x + step[1]) ~= "#"
end

function Walker:go(direction)
  if self:free(direction) then
    self.x = self.x + steps[direction][1]
    self.y = self.y + steps[direction][2]
    self.path[#self.path + 1] = direction
    return true
  elseif #self.path > 100 then
    return nil, [[too far]]
  else
    return false
  end
end

function Walker:run(order)
  for direction in order:gmatch("%a") do
    while self:go(direction) do
      if self.x == 1 then break end
    end
  end
  return table.concat(self.path, ",")
end

return Walker
