// What owns an object, and what it owns, each with its health. More levels are asked for when they are opened.

import { useEffect, useState } from 'preact/hooks';
import { address, ask, type KubeObject, type Relative } from '../api';
import { ObjectLink } from './names';
import { State } from './shape';

// highest is how many levels of owners are looked for.
const highest = 8;

export function Tree({ of }: { of: KubeObject }) {
  const owners = useOwners(of);
  const self = (
    <li>
      <span class="relative self" aria-current="true">
        <span class="name">{of.name}</span> {of.health && <State of={of.health.state} />} <span class="aside">this object</span>
      </span>
      <Children of={of.children ?? []} />
    </li>
  );
  const whole = owners.reduce(
    (inner, owner) => (
      <li>
        <One of={owner} />
        <ul>{inner}</ul>
      </li>
    ),
    self,
  );
  return <ul class="tree">{whole}</ul>;
}

// useOwners climbs from owner to owner, the next first. Of several owners it follows the first.
function useOwners(of: KubeObject): Relative[] {
  const [owners, setOwners] = useState<Relative[]>(of.owners?.slice(0, 1) ?? []);
  useEffect(() => {
    const control = new AbortController();
    const climb = async () => {
      const found: Relative[] = [];
      let next = of.owners?.[0];
      while (next && found.length < highest) {
        found.push(next);
        if (!next.kind) break;
        const params = { kind: next.kind, namespace: next.namespace, name: next.name };
        next = (await ask<KubeObject>(address('object', params), control.signal)).owners?.[0];
      }
      return found;
    };
    climb()
      .then(setOwners)
      .catch(() => undefined); // the nearest owner is known, and what is above may not be seen
    return () => control.abort();
  }, [of]);
  return owners;
}

function Children({ of }: { of: Relative[] }) {
  if (of.length === 0) return null;
  return (
    <ul>
      {of.map((child) => (
        <li key={`${child.kind} ${child.namespace} ${child.name}`}>
          <One of={child} />
          <Below of={child} />
        </li>
      ))}
    </ul>
  );
}

function One({ of }: { of: Relative }) {
  return (
    <span class="relative">
      {of.kind ? (
        <ObjectLink of={{ kind: of.kind, namespace: of.namespace, name: of.name }} word={of.kindName} />
      ) : (
        <span class="name">
          <span class="word">{of.kindName}</span> {of.name}
        </span>
      )}{' '}
      {of.health && <State of={of.health.state} />}
      {of.health?.message && <span class="aside"> {of.health.message}</span>}
    </span>
  );
}

// Below shows the children of a child, once they are asked for.
function Below({ of }: { of: Relative }) {
  const [children, setChildren] = useState<Relative[]>();
  const [problem, setProblem] = useState('');
  const open = async (event: Event) => {
    if (!(event.currentTarget as HTMLDetailsElement).open || children) return;
    try {
      const answer = await ask<KubeObject>(address('object', { kind: of.kind, namespace: of.namespace, name: of.name }));
      setChildren(answer.children ?? []);
    } catch (error) {
      setProblem((error as Error).message);
    }
  };
  return (
    <details class="below" onToggle={open}>
      <summary>Children of {of.name}</summary>
      {problem && <p role="alert">{problem}</p>}
      {children?.length === 0 && <p class="nothing">It has none that are known.</p>}
      {children && <Children of={children} />}
    </details>
  );
}
