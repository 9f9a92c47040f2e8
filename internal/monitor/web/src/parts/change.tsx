// One change, as a line that opens.

import type { ComponentChildren } from 'preact';
import type { Actor, Change, Field } from '../api';
import { count, kindName, moment, time, value } from '../text';
import { KindLink, ObjectLink } from './names';
import { State } from './shape';

export function ChangeLine({ of, named, children }: { of: Change; named: boolean; children?: ComponentChildren }) {
  const fields = of.fields ?? [];
  return (
    <li class="change">
      <div class="line">
        <time dateTime={of.time} title={of.time}>
          {named ? time(of.time) : moment(of.time)}
        </time>
        <State of={of.type} />
        {named && <Subject of={of} />}
        <ActorName of={of.actor} type={of.type} />
      </div>
      <Notes of={of} />
      {fields.length > 0 && (
        <details class="fields">
          <summary>{summary(fields)}</summary>
          <Fields of={fields} />
        </details>
      )}
      {children}
    </li>
  );
}

function Subject({ of }: { of: Change }) {
  const kind = kindName(of.kind);
  if (!of.name) return <KindLink name={kind} />;
  return <ObjectLink of={{ kind, namespace: of.namespace, name: of.name }} word={of.kind.kind} />;
}

// ActorName says who, and how sure that is.
function ActorName({ of, type }: { of: Actor; type: string }) {
  if (type === 'Gap' || type === 'Baseline') return null;
  if (!of.name) return <span class="actor">nobody knows by whom</span>;
  const sure = of.confidence === 'Exact' ? '' : ' (likely)';
  const others = of.others?.length ? `, and ${of.others.join(', ')}` : '';
  return (
    <span class="actor">
      by <b>{of.name}</b>
      {of.subresource && ` to ${of.subresource}`}
      {others}
      {sure}
    </span>
  );
}

function Notes({ of }: { of: Change }) {
  const notes = [
    of.type === 'Gap' && of.since && `Changes since ${moment(of.since)} may be missing.`,
    of.inGap && 'Found by comparing: there may have been others in between.',
    of.schemaDriven && 'Nobody wrote this: the definition changed.',
    of.withDefinition && 'It went with its definition.',
    of.metadataOnly && 'Only the metadata were kept.',
    of.truncated && 'There was more than was kept.',
    of.folded ? `${count(of.folded, 'change')} without a meaning left out.` : '',
    of.reason && sentence(of.reason),
  ].filter(Boolean);
  return notes.length > 0 ? <p class="notes">{notes.join(' ')}</p> : null;
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

function summary(fields: Field[]): string {
  const shown = fields.slice(0, 3).map((field) => field.path);
  const rest = fields.length - shown.length;
  return shown.join(', ') + (rest > 0 ? ` and ${rest} more` : '');
}

function Fields({ of }: { of: Field[] }) {
  return (
    <dl>
      {of.map((field) => (
        <div key={field.path}>
          <dt>
            {field.path} <span class="op">{field.op.toLowerCase()}</span>
          </dt>
          {field.old !== undefined && (
            <dd>
              <del>{value(field.old)}</del>
            </dd>
          )}
          {field.new !== undefined && (
            <dd>
              <ins>{value(field.new)}</ins>
            </dd>
          )}
        </div>
      ))}
    </dl>
  );
}
