// How old a view is. Every page has it, above everything else.

import { useEffect, useState } from 'preact/hooks';
import type { View } from '../api';
import { ago, count, duration, number } from '../text';
import { State } from './shape';

// useNow ticks every second.
export function useNow(): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

export function Age({ view, at }: { view?: View; at: number }) {
  const now = useNow();
  if (!view) return <p class="age">Asking the monitor …</p>;
  const since = Math.max(0, (now - at) / 1000);
  if (view.complete) {
    return <p class="age">This view is {duration(Math.round(since + view.lagSeconds))} old. Every kind in it is covered.</p>;
  }
  return <Partial view={view} since={since} now={now} />;
}

function Partial({ view, since, now }: { view: View; since: number; now: number }) {
  const kinds = view.uncovered ?? [];
  const all = view.uncoveredCount ?? kinds.length;
  const behind = view.lagSeconds < 0 ? 'Of some, nothing was ever heard.' : `The oldest news is ${duration(since + view.lagSeconds)} old.`;
  return (
    <details class="age partial">
      <summary>
        This view is not complete: {count(all, 'kind is', 'kinds are')} not covered. {behind}
      </summary>
      <ul>
        {kinds.map((kind) => (
          <li key={kind.kind}>
            <State of={kind.state} /> <span class="name">{kind.kind}</span>
            {kind.since && ` since ${ago(kind.since, now)}`}
            {kind.reason && `: ${kind.reason}`}
          </li>
        ))}
        {all > kinds.length && <li>and {number(all - kinds.length)} more</li>}
      </ul>
    </details>
  );
}
