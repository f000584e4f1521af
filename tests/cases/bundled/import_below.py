import sys
import ▮json▮
from pathlib import Path


def main():
    path = Path(sys.argv[1])
    data = json.loads(path.read_text())
    for key in sorted(data):
        print(key, json.dumps(data[key]))


if __name__ == "__main__":
    main()
