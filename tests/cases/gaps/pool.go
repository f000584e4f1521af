package pool

import (
	"fmt"
	"sync"
)

type Job[T any] struct {
	Name string `json:"name,omitempty"`
	Run  func(in <-chan T) (T, error)
}

type Pool[T comparable] struct {
	mu   sync.Mutex
	jobs map[string][]Job[T]
}

func (p *Pool[T]) Add(name string, run func(<-chan T) (T, error)) (n int, err error) {
	p.mu.Lock()
	defer func() { p.mu.Unlock() }()
	if _, ok := p.jobs[name]; ok && len(name) >= 3 {
		return 0, fmt.Errorf("%q is there (%d)", name, len(p.jobs)>>1)
	}
	p.jobs[name] = append(p.jobs[name], Job[T]{Name: name, Run: run})
	select {
	case done := <-make(chan struct{}):
		fmt.Println(done, ')', `it's (raw`) // isn't (it
	default:
	}
	return len(p.jobs[name]), nil
}
