// Package queue holds jobs until a worker is free.
package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrFull is returned when no more jobs fit.
var ErrFull = errors.New("queue: full")

type Job func(ctx context.Context) error

type Queue struct {
	mu    sync.Mutex
	jobs  []Job
	limit int
}

func New(limit int) *Queue {
	return &Queue{jobs: make([]Job, 0, limit), limit: limit}
}

func (q *Queue) Put(job Job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.jobs) == q.limit {
		return fmt.Errorf("put: %w (%d)", ErrFull, q.limit)
	}
	q.jobs = append(q.jobs, job)
	return nil
}

func (q *Queue) Run(ctx context.Context, workers int) (done int, err error) {
	results := make(chan error)
	for i := 0; i < workers; i++ {
		go func(id int) {
			for _, job := range q.take(id, workers) {
				results <- job(ctx)
			}
		}(i)
	}
	for done < len(q.jobs) {
		select {
		case err = <-results:
			if err != nil {
				return done, err
			}
			done++
		case <-ctx.Done():
			return done, ctx.Err()
		}
	}
	return done, nil
}

func (q *Queue) take(id, of int) []Job {
	var mine []Job
	for index, job := range q.jobs {
		if index%of == id {
			mine = append(mine, job)
		}
	}
	return mine
}
