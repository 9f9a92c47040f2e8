// What every page begins with: its heading, the age of what it shows, and what went wrong.

import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Answer, Failure, View } from '../api';
import type { Loaded } from '../load';
import { Age } from './age';

interface HeadProps {
  title: string;
  // above is a line over the title.
  above?: ComponentChildren;
  view?: View;
  // at is when the answer came. Missing: there is nothing to ask.
  at?: number;
  failure?: Failure;
  reload?: () => void;
  children?: ComponentChildren;
}

// Head takes the focus when the page changes, so that a screen reader reads the new title.
export function Head({ title, above, view, at, failure, reload, children }: HeadProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} – Slipway monitor`;
    heading.current?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [title]);
  return (
    <header class="head">
      {above && <p class="above">{above}</p>}
      <h1 ref={heading} tabIndex={-1}>
        {title}
      </h1>
      {at !== undefined && !(failure && !view) && <Age view={view} at={at} />}
      {failure && <Problem failure={failure} reload={reload} />}
      {children}
    </header>
  );
}

export function Problem({ failure, reload }: { failure: Failure; reload?: () => void }) {
  return (
    <div class="problem" role="alert">
      <p>{failure.message}</p>
      {reload && (
        <button type="button" onClick={reload}>
          Try again
        </button>
      )}
    </div>
  );
}

// Missing says what an answer does not have.
export function Missing({ of }: { of?: Answer }) {
  if (!of?.incomplete) return null;
  const texts = Array.isArray(of.incomplete) ? [...new Set(of.incomplete)] : ['There were more changes than were counted.'];
  return (
    <ul class="missing">
      {texts.map((text) => (
        <li key={text}>{text}</li>
      ))}
    </ul>
  );
}

// Part is a section of a page with its own answer: its failure does not take the rest away.
export function Part({ title, loaded, children }: { title: string; loaded: Loaded<Answer>; children: ComponentChildren }) {
  const id = `part-${title.toLowerCase().replace(/[^a-z]+/g, '-')}`;
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {loaded.failure && <Problem failure={loaded.failure} reload={loaded.reload} />}
      <Missing of={loaded.answer} />
      {children}
    </section>
  );
}

export const Nothing = ({ children }: { children: ComponentChildren }) => <p class="nothing">{children}</p>;
