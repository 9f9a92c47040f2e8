// Links to objects and kinds.

import { to, toObject } from '../route';

interface Named { kind: string; namespace?: string; name: string }

export function ObjectLink({ of, word }: { of: Named; word?: string }) {
  return (
    <a class="name" href={toObject(of.kind, of.namespace, of.name)}>
      {word && <span class="word">{word} </span>}
      {of.namespace && <span class="namespace">{of.namespace}/</span>}
      {of.name}
    </a>
  );
}

export function KindLink({ name }: { name: string }) {
  return (
    <a class="name" href={to('kind', { name })}>
      {name}
    </a>
  );
}
