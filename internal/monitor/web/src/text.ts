// How times, numbers and names are written.

const timeOfDay = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
const dayOf = new Intl.DateTimeFormat(undefined, { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' });
const shortDay = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
const plainNumber = new Intl.NumberFormat();

export const time = (at: string): string => timeOfDay.format(new Date(at));
export const day = (at: string): string => dayOf.format(new Date(at));
export const number = (n: number): string => plainNumber.format(n);

// moment is a time with its day, unless that is today.
export function moment(at: string): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return at;
  const today = date.toDateString() === new Date().toDateString();
  return today ? timeOfDay.format(date) : `${shortDay.format(date)}, ${timeOfDay.format(date)}`;
}

// duration is a length of time in seconds, in its largest unit.
export function duration(seconds: number): string {
  if (seconds < 10 && seconds % 1 >= 0.1) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

export const ago = (at: string, now: number): string => `${duration(Math.max(0, (now - Date.parse(at)) / 1000))} ago`;

// count writes a number with its word.
export const count = (n: number, word: string, words = `${word}s`): string => `${number(n)} ${n === 1 ? word : words}`;

// kindName is how requests name a kind.
export const kindName = (kind: { group: string; resource: string }): string =>
  kind.group ? `${kind.resource}.${kind.group}` : kind.resource;

// value writes a JSON value on few lines.
export function value(of: unknown): string {
  if (of === undefined) return '';
  const short = JSON.stringify(of);
  return visible(short.length <= 60 ? short : JSON.stringify(of, null, 2));
}

// visible writes out the characters that turn the direction of writing around, so that they cannot hide what a value is.
export const visible = (json: string): string =>
  json.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
