using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading.Tasks;

namespace Timing
{
    /// <summary>Rings when it is time.</summary>
    public sealed class Clock : IDisposable
    {
        private readonly List<Alarm> _alarms = new();
        private const int Limit = 10;

        public event Action<string>? Rang;

        public string Name { get; set; } = "clock";

        public int Count => _alarms.Count;

        private record Alarm(DateTime At, string Text);

        public void Add(DateTime at, string text = "")
        {
            if (_alarms.Count >= Limit)
            {
                throw new InvalidOperationException($"more than {Limit} alarms");
            }
            _alarms.Add(new Alarm(at, text));
        }

        public async Task<int> RunAsync(TimeSpan step)
        {
            var rung = 0;
            foreach (var alarm in _alarms.Where(a => a.At > DateTime.Now).OrderBy(a => a.At))
            {
                while (alarm.At > DateTime.Now)
                {
                    await Task.Delay(step);
                }
                Rang?.Invoke(alarm.Text switch { "" => "now", var text => text });
                rung++;
            }
            return rung;
        }

        public void Dispose() => _alarms.Clear();
    }
}
