// Whether the monitor knows who is asking.

import type { Failure } from './api';

let listener: () => void = () => undefined;

// onUnknown sets what happens when the monitor does not know the user, or not any more.
export function onUnknown(next: () => void): void {
  listener = next;
}

export function noteUnknown(failure: Failure): void {
  if (failure.code === 401) listener();
}
