// Writes JSON as YAML. Whatever could be read as something else is in quotes, so no text in an object can pretend to be a field.

import { visible } from './text';

const plain = /^[A-Za-z_./][A-Za-z0-9_./-]*$/;
const reserved = /^(true|false|null|yes|no|on|off|y|n|~|\.inf|\.nan|-?\.inf)$/i;

function scalar(value: unknown): string {
  if (typeof value === 'string') return plain.test(value) && !reserved.test(value) ? value : visible(JSON.stringify(value));
  return JSON.stringify(value) ?? 'null';
}

const isEmpty = (value: object): boolean => Object.keys(value).length === 0;

// lines returns the lines of a value, without indentation of its own.
function lines(value: unknown): string[] {
  if (value === null || typeof value !== 'object') return [scalar(value)];
  if (Array.isArray(value)) return isEmpty(value) ? ['[]'] : value.flatMap(item);
  if (isEmpty(value)) return ['{}'];
  return Object.entries(value).flatMap(([key, inner]) => entry(scalar(key), inner));
}

function item(value: unknown): string[] {
  const [first = '', ...rest] = lines(value);
  return [`- ${first}`, ...rest.map((line) => `  ${line}`)];
}

function entry(key: string, value: unknown): string[] {
  const inner = lines(value);
  const single = value === null || typeof value !== 'object' || isEmpty(value);
  if (single) return [`${key}: ${inner[0]}`];
  return [`${key}:`, ...inner.map((line) => (Array.isArray(value) ? line : `  ${line}`))];
}

export const yaml = (value: unknown): string => `${lines(value).join('\n')}\n`;

// orderly puts the fields of an object into the order in which people read them.
export function orderly(object: unknown): unknown {
  if (object === null || typeof object !== 'object') return object;
  const { apiVersion, kind, metadata, spec, status, ...rest } = object as Record<string, unknown>;
  return Object.fromEntries(Object.entries({ apiVersion, kind, metadata, spec, ...rest, status }).filter(([, v]) => v !== undefined));
}
