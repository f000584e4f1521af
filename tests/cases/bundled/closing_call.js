const fs = require('fs');

function readJson(path, callback) {
  fs.readFile(path, 'utf8', function (error, text) {
    if (error) {
      return callback(error);
    }
    callback(null, JSON.parse(text▮))▮;
  });
}

module.exports = readJson;
