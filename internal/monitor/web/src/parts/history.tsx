// The changes of one object, each with a way to compare the object before and after it.

import { useState } from 'preact/hooks';
import { address, ask, type Change, type Changes } from '../api';
import { toObject } from '../route';
import { Nothing } from './answer';
import { ChangeLine } from './change';

export interface About { kind: string; namespace?: string; name: string; uid?: string }

export function History({ of, about, next }: { of: Change[]; about: About; next?: string }) {
  const [older, setOlder] = useState<{ changes: Change[]; next?: string }>({ changes: [], next });
  const known = new Set(of.map((change) => change.id));
  const all = [...of, ...older.changes.filter((change) => !known.has(change.id))];
  const more = async () => {
    const answer = await ask<Changes>(address('history', { ...about, limit: '100', cursor: older.next }));
    setOlder({ changes: [...older.changes, ...answer.changes], next: answer.next });
  };
  if (all.length === 0) return <Nothing>The history has no change of it.</Nothing>;
  return (
    <>
      <ol class="changes">
        {all.map((change, i) => (
          <ChangeLine key={change.id} of={change} named={false}>
            {change.type !== 'Gap' && <Compare of={change} before={all[i + 1]} about={about} />}
          </ChangeLine>
        ))}
      </ol>
      {older.next && (
        <p>
          <button type="button" onClick={() => void more()}>
            Show older changes
          </button>
        </p>
      )}
    </>
  );
}

// Compare leads to the comparison of a change with the one before it.
function Compare({ of, before, about }: { of: Change; before?: Change; about: About }) {
  if (of.type === 'Baseline') return null;
  const from = of.type === 'Created' ? 'nothing' : before ? before.time : justBefore(of.time);
  const address = toObject(about.kind, about.namespace, about.name, { uid: about.uid, from, to: of.time });
  return (
    <a class="compare" href={address}>
      Compare with before
    </a>
  );
}

// justBefore is a millisecond earlier. The history goes back from the change, so it need not have one at that time.
const justBefore = (time: string): string => new Date(Date.parse(time) - 1).toISOString();
