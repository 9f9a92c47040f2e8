// Objects, and how they do.

import type { ObjectHealth } from '../api';
import { ObjectLink } from './names';
import { order, State } from './shape';
import { Table } from './table';

export function Troubled({ of, label }: { of: ObjectHealth[]; label: string }) {
  const worstFirst = [...of].sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state));
  return (
    <Table label={label} heads={['Object', 'Health', 'Why']}>
      {worstFirst.map((object) => (
        <tr key={`${object.kind} ${object.namespace} ${object.name}`}>
          <th scope="row">
            <ObjectLink of={object} word={object.kindName} />
          </th>
          <td>
            <State of={object.state} />
          </td>
          <td>
            <Why of={object} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

// Why says what a verdict was made of.
export function Why({ of }: { of: { reason?: string; message?: string; field?: string; value?: string } }) {
  const text = [of.reason, of.message].filter(Boolean).join(': ');
  return (
    <>
      {text}
      {of.field && (
        <code class="aside">
          {' '}
          {of.field}
          {of.value !== undefined && of.value !== '' && ` = ${of.value}`}
        </code>
      )}
    </>
  );
}
