const fs = require('fs');
const path = require(▮'path'▮);

function findConfig(folder) {
  const file = path.join(folder, 'config.json');
  if (fs.existsSync(file)) {
    return file;
  }
  const parent = path.dirname(folder);
  return parent === folder ? null : findConfig(parent);
}
