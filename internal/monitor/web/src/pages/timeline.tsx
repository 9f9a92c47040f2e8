// What changed, the newest first, and live.

import { useEffect, useState } from 'preact/hooks';
import { address, ask, Failure, type Change, type Changes, type Kinds, type Params, type View } from '../api';
import { useAnswer } from '../load';
import { Head, Missing, Nothing } from '../parts/answer';
import { ChangeLine } from '../parts/change';
import { Filters } from '../parts/filters';
import { noteUnknown } from '../session';
import { useStream } from '../stream';
import { count, day } from '../text';

const most = 1000;

// merge adds changes that are new, the newest first. A change is known by its ID.
function merge(first: Change[], then: Change[]): Change[] {
  const known = new Set(first.map((change) => change.id));
  return [...first, ...then.filter((change) => !known.has(change.id))].slice(0, most);
}

interface List { changes: Change[]; next?: string; answer?: Changes; view?: View; at: number; failure?: Failure }

export function TimelinePage({ params }: { params: Params }) {
  const { since, until, ...filter } = params;
  const key = JSON.stringify(params);
  const [list, setList] = useState<List>({ changes: [], at: 0 });
  const [paused, setPaused] = useState(false);
  const [fresh, setFresh] = useState(0);
  const kinds = useAnswer<Kinds>(address('kinds'), false);
  const loaded = list.at > 0;

  const load = async (cursor?: string, signal?: AbortSignal) => {
    try {
      const answer = await ask<Changes>(address('changes', { ...params, cursor, limit: '50' }), signal);
      setList((before) => ({
        changes: merge(before.changes, answer.changes).sort(newestFirst(cursor === undefined)),
        next: cursor === undefined && before.next ? before.next : answer.next,
        answer,
        view: answer.view,
        at: Date.now(),
      }));
    } catch (error) {
      if (signal?.aborted) return;
      const failure = error instanceof Failure ? error : new Failure(0, 'Internal', String(error));
      noteUnknown(failure);
      setList((before) => ({ ...before, failure }));
    }
  };
  useEffect(() => {
    const control = new AbortController();
    setList({ changes: [], at: 0 });
    setFresh(0);
    void load(undefined, control.signal);
    return () => control.abort();
  }, [key]);

  const live = loaded && !until && !paused;
  const stream = useStream(live ? filter : null, {
    from: list.changes[0]?.id ?? '',
    onChange: (change) => {
      setList((before) => ({ ...before, changes: merge([change], before.changes), at: Date.now() }));
      setFresh((n) => n + 1);
    },
    onView: (view) => setList((before) => ({ ...before, view, at: Date.now() })),
    onStart: () => void load(),
  });

  return (
    <>
      <Head title="Timeline" view={list.view} at={list.at} failure={list.failure} reload={() => void load()} />
      <Filters params={params} kinds={kinds.answer?.kinds ?? []} />
      <Live state={until ? 'ended' : paused ? 'paused' : stream.state} problem={stream.problem} fresh={fresh} onToggle={() => setPaused(!paused)} />
      <Missing of={list.answer} />
      {loaded && list.changes.length === 0 && <Nothing>No change fits.</Nothing>}
      <Days of={list.changes} />
      {list.next && (
        <p>
          <button type="button" onClick={() => void load(list.next)}>
            Show older changes
          </button>
        </p>
      )}
    </>
  );
}

// newestFirst keeps the order of the monitor, unless changes that came in between were put in.
function newestFirst(needed: boolean): (a: Change, b: Change) => number {
  return (a, b) => (needed ? Date.parse(b.time) - Date.parse(a.time) : 0);
}

const states: Record<string, string> = {
  live: 'Live: new changes appear by themselves.',
  connecting: 'Connecting …',
  lost: 'The live connection was lost.',
  paused: 'Paused: new changes do not appear.',
  ended: 'This span of time has an end: no new changes appear.',
  off: '',
};

function Live({ state, problem, fresh, onToggle }: { state: string; problem: string; fresh: number; onToggle: () => void }) {
  return (
    <div class={`live ${state}`}>
      <span class="dot" aria-hidden="true" />
      <p role="status">
        {problem || states[state]} {fresh > 0 && `${count(fresh, 'new change')}.`}
      </p>
      {state !== 'ended' && (
        <button type="button" onClick={onToggle}>
          {state === 'paused' ? 'Go on' : 'Pause'}
        </button>
      )}
    </div>
  );
}

function Days({ of }: { of: Change[] }) {
  const days = Map.groupBy(of, (change) => day(change.time));
  return (
    <>
      {[...days].map(([name, changes]) => (
        <section key={name} aria-label={name}>
          <h2 class="day">{name}</h2>
          <ol class="changes">
            {changes.map((change) => (
              <ChangeLine key={change.id} of={change} named />
            ))}
          </ol>
        </section>
      ))}
    </>
  );
}
