// A table that can be scrolled with the keyboard where it is wider than the screen, and becomes a list on a narrow one.

import type { ComponentChildren } from 'preact';

export function Table({ label, heads, children }: { label: string; heads: string[]; children: ComponentChildren }) {
  return (
    <div class="scroll" role="group" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
