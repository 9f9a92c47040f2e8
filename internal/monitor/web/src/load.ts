// Asking again and again, so that what is shown is never old without a word.

import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, Failure, type Answer } from './api';
import { noteUnknown } from './session';

export interface Loaded<T> {
  answer?: T;
  // at is when the answer came, by the clock of the browser.
  at: number;
  failure?: Failure;
  reload: () => void;
}

const every = 15_000;

// useAnswer asks at once, when the address changes, and every 15 seconds while the page can be seen. After a failure the last
// answer stays, and says how old it is.
export function useAnswer<T extends Answer>(address: string | null, again = true): Loaded<T> {
  const [state, setState] = useState<{ of: string | null; answer?: T; at: number; failure?: Failure }>({ of: address, at: 0 });
  const [round, setRound] = useState(0);
  const timer = useRef(0);

  useEffect(() => {
    if (address === null) return;
    const control = new AbortController();
    const load = async () => {
      clearTimeout(timer.current);
      try {
        const answer = await ask<T>(address, control.signal);
        setState({ of: address, answer, at: Date.now() });
      } catch (error) {
        if (control.signal.aborted) return;
        const failure = error instanceof Failure ? error : new Failure(0, 'Internal', String(error));
        noteUnknown(failure);
        setState((before) => ({ ...(before.of === address ? before : { at: 0 }), of: address, failure }));
      }
      if (again && !control.signal.aborted) timer.current = window.setTimeout(next, every);
    };
    const next = () => {
      if (document.visibilityState === 'visible') void load();
    };
    const visible = () => {
      if (again) next();
    };
    document.addEventListener('visibilitychange', visible);
    void load();
    return () => {
      control.abort();
      clearTimeout(timer.current);
      document.removeEventListener('visibilitychange', visible);
    };
  }, [address, again, round]);

  const current = state.of === address ? state : { at: 0 };
  return { ...current, reload: () => setRound((n) => n + 1) };
}
