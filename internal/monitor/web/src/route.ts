// Which page is shown stands after the # of the address, such as #/object?kind=widgets.example.com&name=blue. The server does not
// see it.

import { useEffect, useState } from 'preact/hooks';
import { query, type Params } from './api';

export interface Route { page: string; params: Params }

export function readRoute(hash: string): Route {
  const [page = '', text = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  return { page: page || 'overview', params: Object.fromEntries(new URLSearchParams(text)) };
}

// to is the address of a page.
export const to = (page: string, params: Params = {}): string => `#/${page}${query(params)}`;

export const toObject = (kind: string, namespace: string | undefined, name: string, more: Params = {}): string =>
  to('object', { kind, namespace, name, ...more });

// go shows a page. With replace, the way back does not lead to the page before.
export function go(address: string, replace = false): void {
  if (replace) location.replace(address);
  else location.hash = address;
}

// useRoute follows the address.
export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = () => setHash(location.hash);
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  return readRoute(hash);
}
