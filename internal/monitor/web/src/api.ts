// The answers of the monitor, as docs/monitor-api.md describes them, and how they are asked for.

export interface View {
  time: string;
  lagSeconds: number;
  complete: boolean;
  uncovered?: { kind: string; state: string; since?: string; reason?: string }[];
  uncoveredCount?: number;
}

export interface Answer {
  view: View;
  incomplete?: string[] | boolean;
}

export interface Whoami extends Answer { user: string }

export interface Kind { name: string; group: string; version: string; kind: string; namespaced: boolean; state: string; objects?: number }
export interface Kinds extends Answer { kinds: Kind[] }

export interface Covered { name: string; version: string; state: string; since?: string; reason?: string; lastHeard?: string; lagSeconds: number; gaps: number }
export interface Coverage extends Answer { complete: boolean; states: Record<string, number>; kinds: Covered[] }

export type ChangeType = 'Baseline' | 'Created' | 'Updated' | 'Deleted' | 'Gap';
export interface Field { path: string; op: 'Added' | 'Removed' | 'Changed'; old?: unknown; new?: unknown }
export interface Actor { name?: string; operation?: string; subresource?: string; confidence: 'Exact' | 'Likely' | 'Unknown'; source?: string; others?: string[] }
export interface Change {
  id: string;
  kind: { group: string; version: string; kind: string; resource: string; namespaced: boolean };
  namespace?: string;
  name?: string;
  uid?: string;
  resourceVersion?: string;
  type: ChangeType;
  time: string;
  since?: string;
  fields?: Field[];
  actor: Actor;
  inGap?: boolean;
  schemaDriven?: boolean;
  withDefinition?: boolean;
  metadataOnly?: boolean;
  folded?: number;
  redacted?: number;
  truncated?: boolean;
  reason?: string;
}
export interface Changes extends Answer { changes: Change[]; next?: string }

export interface Health { state: string; reason?: string; message?: string; field?: string; value?: string }
export interface ObjectHealth extends Health { kind: string; kindName: string; namespace?: string; name: string }
export type Counts = Record<string, number>;
export interface HealthSummary extends Answer { counts: Counts; kinds: { kind: string; counts: Counts }[]; objects: ObjectHealth[] }

export interface Condition { type: string; status: string; reason?: string; message?: string; since?: string }
export interface Relative { kind?: string; apiVersion?: string; kindName: string; namespace?: string; name: string; health?: Health }
export interface KubeObject extends Answer {
  kind: string;
  namespace?: string;
  name: string;
  uid?: string;
  at?: string;
  exists: boolean;
  object?: unknown;
  metadataOnly?: boolean;
  reason?: string;
  lastChange?: Change;
  health?: Health;
  conditions?: Condition[];
  owners?: Relative[];
  children?: Relative[];
}

export interface Finding { severity: 'Breaking' | 'Risky' | 'Info'; version?: string; path?: string; code: string; message: string }
export interface DefinitionVersion {
  generation: number;
  time: string;
  uid: string;
  versions?: { name: string; served: boolean; storage: boolean; deprecated?: boolean }[];
  findings?: Finding[];
  problem?: string;
  objects?: CheckedObjects;
}
export interface CheckedObjects {
  version?: string;
  time: string;
  checked: number;
  fine: number;
  breaksOnEdit: number;
  breaks: number;
  unknown: number;
  examples?: CheckedObject[];
  problem?: string;
}
export interface CheckedObject { namespace?: string; name: string; state: string; field?: string; message?: string; more?: number }
export interface Definitions extends Answer { name: string; versions: DefinitionVersion[] }

export interface Rate extends Answer { widthSeconds: number; buckets: { start: string; changes: number }[] }

export interface Rule { name: string; severity?: string; summary?: string; problem?: string; firing: number }
export interface Alarm { rule: string; severity?: string; message?: string; kind: string; namespace?: string; name: string; since: string }
export interface Rules extends Answer { rules?: Rule[]; alarms: Alarm[] }

// Failure is a request that failed. The message is for people.
export class Failure extends Error {
  constructor(readonly code: number, readonly reason: string, message: string) {
    super(message);
  }
}

export type Params = Record<string, string | undefined>;

// query writes parameters, without those that are empty.
export function query(params: Params): string {
  const text = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value) text.set(name, value);
  }
  return text.size > 0 ? `?${text}` : '';
}

// address is relative, so that the page also works below a path.
export const address = (endpoint: string, params: Params = {}): string => `api/v1/${endpoint}${query(params)}`;

// seen is the headers of the last answer: of whom the page is served.
export const seen = { throughProxy: false };

async function read(response: Response): Promise<unknown> {
  seen.throughProxy = response.headers.get('Slipway-Proxy') !== null;
  const body: unknown = await response.json().catch(() => null);
  if (response.ok) return body;
  const failure = body as { reason?: string; message?: string } | null;
  throw new Failure(response.status, failure?.reason ?? 'Internal', failure?.message ?? `The monitor answered with HTTP ${response.status}.`);
}

async function send(to: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(to, { ...init, credentials: 'same-origin' });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new Failure(0, 'Unavailable', 'The monitor does not answer.');
  }
}

// ask asks for an answer.
export async function ask<T extends Answer>(to: string, signal?: AbortSignal): Promise<T> {
  return (await read(await send(to, { signal }))) as T;
}

// login turns a token into a cookie that no script can read.
export async function login(token: string): Promise<void> {
  const headers = { 'Content-Type': 'application/json' };
  await read(await send('login', { method: 'POST', headers, body: JSON.stringify({ token }) }));
}

// logout takes the cookie away.
export async function logout(): Promise<void> {
  await send('logout', { method: 'POST', headers: { 'Content-Type': 'application/json' } });
}
