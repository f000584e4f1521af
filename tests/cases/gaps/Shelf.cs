using System;
using System.Collections.Generic;
using System.Linq;

namespace Library
{
    public record Book(string Title, int Pages = 0);

    public class Shelf<T> where T : Book
    {
        private readonly Dictionary<string, List<T>> books = new();
        public int Count => books.Values.Sum(list => list.Count);
        public string Name { get; set; } = @"C:\shelf ""one"" (old)";

        public IEnumerable<T> Find(Func<T, bool> keep, params string[] tags)
        {
            foreach (var (key, list) in books)
                foreach (var book in list.Where(b => keep(b) && b.Pages >= 10))
                    yield return book;
        }

        public string Show(char sep = ')') => string.Join(sep, books.Select(p => $"{p.Key}: {(p.Value.Count > 1 ? "many" : "one")}"));
        public int? Half(int? n) => n is > 2 and < 9 ? n >> 1 : null; // isn't (it
    }
}
