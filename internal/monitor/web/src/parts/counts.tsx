// How many objects are in which state.

import type { Counts } from '../api';
import { number } from '../text';
import { order, Shape } from './shape';

const listed = (counts: Counts): string[] => [...order, ...Object.keys(counts).filter((state) => !order.includes(state))];

// BigCounts names every state, also those with nothing in them.
export function BigCounts({ of }: { of: Counts }) {
  return (
    <dl class="counts">
      {listed(of).map((state) => (
        <div key={state} class={of[state] ? '' : 'zero'}>
          <dt>
            <Shape of={state} />
            {state}
          </dt>
          <dd>{number(of[state] ?? 0)}</dd>
        </div>
      ))}
    </dl>
  );
}

// SmallCounts fits into a table.
export function SmallCounts({ of }: { of: Counts }) {
  return (
    <span class="small-counts">
      {listed(of)
        .filter((state) => of[state])
        .map((state) => (
          <span key={state} class="state">
            <Shape of={state} />
            {number(of[state] ?? 0)} <span class="word">{state.toLowerCase()}</span>
          </span>
        ))}
    </span>
  );
}
