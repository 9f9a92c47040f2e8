// Links to objects and kinds.

import { to, toObject } from '../route';

interface Named { kind: string; namespace?: string; name: string }

export function ObjectLink({ of, word }: { of: Named; word?: string }) {
  return (
    <span class="name">
      {word && <span class="word">{word} </span>}
      <a href={toObject(of.kind, of.namespace, of.name)}>
        {of.namespace && <span class="namespace">{of.namespace}/</span>}
        {of.name}
      </a>
    </span>
  );
}

export function KindLink({ name }: { name: string }) {
  return (
    <a class="name" href={to('kind', { name })}>
      {name}
    </a>
  );
}
