package store

import (
	"context"
	"time"
)

// Loss is a part of the history, or of the last states, that is not there any more though it should be. Who commits records a gap
// for it, and names it in Batch.Told. Until then it stays, over restarts, too. What goes because of MaxBytes or MaxAge is no loss.
type Loss struct {
	ID int64
	// File is the file that was lost, Cause why (Corrupt or Missing), and Time when that was found.
	File  string
	Cause Trouble
	Time  time.Time
	// Records is how many changes are lost, with times from Since to Until.
	Records      int64
	Since, Until time.Time
	// Checkpoints reports whether it was the file of the last states. All checkpoints are gone, so every kind has to be listed again
	// and compared with the states that are left. States is how many those are.
	Checkpoints bool
	States      int64
}

const insertLoss = `INSERT INTO losses(file, cause, time, records, states, since, until, checkpoints) VALUES(?, ?, ?, ?, ?, ?, ?, ?)`

// noteLoss stores a loss in the transaction that makes up for it.
func (w *writer) noteLoss(db *database, loss Loss) error {
	s := w.store
	loss.Time = s.options.Clock.Now()
	s.options.Logger.Info("A file of the history is lost", "file", loss.File, "cause", loss.Cause, "changes", loss.Records,
		"checkpoints", loss.Checkpoints, "statesLeft", loss.States)
	err := db.exec(s.background, insertLoss, loss.File, string(loss.Cause), storedTime(loss.Time), loss.Records, loss.States,
		storedTime(loss.Since), storedTime(loss.Until), boolNumber(loss.Checkpoints))
	select {
	case s.lost <- struct{}{}:
	default: // it is known already that there is something to look at
	}
	return err
}

// Losses returns what was lost and not yet told of, oldest first.
func (s *Store) Losses(ctx context.Context) ([]Loss, error) {
	var losses []Loss
	err := s.readState(ctx, "reading the losses", `SELECT id, file, cause, time, records, states, since, until, checkpoints FROM losses ORDER BY id`,
		nil, func(row scanner) error {
			var loss Loss
			var found, since, until, checkpoints int64
			err := row.Scan(&loss.ID, &loss.File, &loss.Cause, &found, &loss.Records, &loss.States, &since, &until, &checkpoints)
			loss.Time, loss.Since, loss.Until, loss.Checkpoints = readTime(found), readTime(since), readTime(until), checkpoints != 0
			losses = append(losses, loss)
			return err
		})
	return losses, err
}
