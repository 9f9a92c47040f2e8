// An object at two times, side by side. On a narrow screen the sides stand one above the other, line by line.

import { useEffect, useRef } from 'preact/hooks';
import { address, type KubeObject } from '../api';
import { compare, type Row } from '../compare';
import { useAnswer } from '../load';
import { toObject } from '../route';
import { count, moment } from '../text';
import { orderly, yaml } from '../yaml';
import { Nothing, Problem } from './answer';
import type { About } from './history';

const text = (of?: KubeObject): string => (of?.object === undefined ? '' : yaml(orderly(of.object)));

export function Comparison({ about, from, to }: { about: About; from?: string; to?: string }) {
  const heading = useRef<HTMLHeadingElement>(null);
  const ask = (at?: string) => (at === 'nothing' ? null : objectAt(about, at));
  const before = useAnswer<KubeObject>(ask(from), false);
  const after = useAnswer<KubeObject>(ask(to), false);
  const ready = (from === 'nothing' || before.answer) && after.answer;
  useEffect(() => {
    if (!ready) return;
    heading.current?.focus({ preventScroll: true });
    heading.current?.scrollIntoView({ block: 'start' });
  }, [from, to, Boolean(ready)]);
  const failure = before.failure ?? after.failure;
  const rows = ready ? compare(text(before.answer), text(after.answer)) : [];
  return (
    <section aria-labelledby="comparison">
      <h2 id="comparison" ref={heading} tabIndex={-1}>
        Before and after {to ? moment(to) : 'now'}
      </h2>
      {failure && <Problem failure={failure} />}
      {ready && rows.every((row) => row.kind === 'skipped') && <Nothing>Both are the same, as far as the history keeps them.</Nothing>}
      {ready && rows.some((row) => row.kind !== 'skipped') && <Sides of={rows} />}
      <p class="links">
        {to && <a href={toObject(about.kind, about.namespace, about.name, { uid: about.uid, at: to })}>Everything as it was then</a>}{' '}
        <a href={toObject(about.kind, about.namespace, about.name, { uid: about.uid })}>Close the comparison</a>
      </p>
    </section>
  );
}

const objectAt = (about: About, at?: string): string => address('object', { ...about, at });

const signs = { same: ' ', removed: '−', added: '+', changed: '~', skipped: ' ' };

function Sides({ of }: { of: Row[] }) {
  return (
    <div class="scroll" role="group" aria-label="Comparison" tabIndex={0}>
      <table class="sides">
        <thead>
          <tr>
            <th scope="col">
              <span class="hidden">Line </span>
            </th>
            <th scope="col">Before</th>
            <th scope="col">
              <span class="hidden">Line </span>
            </th>
            <th scope="col">After</th>
          </tr>
        </thead>
        <tbody>
          {of.map((row, i) =>
            row.kind === 'skipped' ? (
              <tr key={i} class="skipped">
                <td colSpan={4}>{count(row.skipped ?? 0, 'line')} that {row.skipped === 1 ? 'is' : 'are'} the same</td>
              </tr>
            ) : (
              <tr key={i} class={row.kind}>
                <Side of={row.left} row={row} word="removed" />
                <Side of={row.right} row={row} word="added" />
              </tr>
            ),
          )}
        </tbody>
      </table>
    </div>
  );
}

function Side({ of, row, word }: { of?: { line: number; text: string }; row: Row; word: 'removed' | 'added' }) {
  if (!of) {
    return (
      <>
        <td class="line empty" />
        <td class="text empty" />
      </>
    );
  }
  const differs = row.kind !== 'same';
  const sign = word === 'removed' ? signs.removed : signs.added;
  return (
    <>
      <td class={`line ${differs ? word : ''}`}>{of.line}</td>
      <td class={`text ${differs ? word : ''}`}>
        <span class="sign" aria-hidden="true">
          {differs ? sign : ' '}
        </span>
        {differs && <span class="hidden">{word}: </span>}
        {of.text}
      </td>
    </>
  );
}
