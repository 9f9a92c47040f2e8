// Changes as they come, by Server-Sent Events.

import { useEffect, useRef, useState } from 'preact/hooks';
import { address, type Change, type Params, type View } from './api';

export type StreamState = 'off' | 'connecting' | 'live' | 'lost';

interface Options {
  // from is the ID of the change after which to begin. Empty: with the next one.
  from: string;
  onChange: (change: Change) => void;
  onView: (view: View) => void;
  // onStart is called when a stream without from has begun: what was asked for before may miss changes.
  onStart: () => void;
}

// useStream listens while params is not null. The browser comes back by itself, and tells which change it saw last.
export function useStream(params: Params | null, options: Options): { state: StreamState; problem: string } {
  const [state, setState] = useState<StreamState>('off');
  const [problem, setProblem] = useState('');
  const current = useRef(options);
  current.current = options;
  const key = params === null ? null : JSON.stringify(params);

  useEffect(() => {
    if (key === null) {
      setState('off');
      return;
    }
    setState('connecting');
    setProblem('');
    const from = current.current.from;
    const source = new EventSource(address('stream', { ...(JSON.parse(key) as Params), cursor: from }));
    let begun = from !== '';
    const data = (event: Event): unknown => JSON.parse((event as MessageEvent<string>).data);
    source.addEventListener('change', (event) => current.current.onChange(data(event) as Change));
    source.addEventListener('view', (event) => {
      setState('live');
      current.current.onView(data(event) as View);
      if (!begun) current.current.onStart();
      begun = true;
    });
    source.addEventListener('failure', (event) => setProblem((data(event) as { message: string }).message));
    source.onerror = () => setState(source.readyState === EventSource.CLOSED ? 'lost' : 'connecting');
    return () => source.close();
  }, [key]);
  return { state, problem };
}
